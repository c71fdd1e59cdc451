// Package pool does slow work beside the loops of runs, so much of it at a time, by
// turns for teams and for their runs.
package pool

import (
	"sync"

	"github.com/millrace/millrace/internal/domain/ids"
)

// Pool bounds how much work of all queues is done at a time. One piece of each queue
// always is: work that hangs never keeps another queue from going on.
type Pool struct {
	shared int // how much is done at a time beyond one piece of each queue

	mu      sync.Mutex
	beyond  int
	waiting map[*Queue]bool  // queues with something to do
	busy    map[ids.Team]int // pieces that are being done for a team
	idle    chan struct{}    // as that of a queue
}

// Queue is the work of one kind for one run. One goroutine adds to it.
type Queue struct {
	pool *Pool
	team ids.Team
	most int
	todo []func()
	busy int
	idle chan struct{} // closed when nothing is left to do; nil: nobody waits for that
}

// New makes a pool.
func New(shared int) *Pool {
	return &Pool{shared: shared, waiting: map[*Queue]bool{}, busy: map[ids.Team]int{}}
}

// Queue makes a queue of which no more than most pieces are done at a time.
func (p *Pool) Queue(team ids.Team, most int) *Queue { return &Queue{pool: p, team: team, most: most} }

// Add has work done when it is its turn. A panic of the work ends the process.
func (q *Queue) Add(work func()) {
	q.pool.mu.Lock()
	defer q.pool.mu.Unlock()
	q.todo = append(q.todo, work)
	q.pool.waiting[q] = true
	if q.mayStart() { // no other one could before
		q.start()
	}
}

// Idle is closed when nothing is left to do.
func (q *Queue) Idle() <-chan struct{} {
	q.pool.mu.Lock()
	defer q.pool.mu.Unlock()
	return waitFor(&q.idle, q.busy == 0)
}

// Idle is closed when nothing is left to do in any queue.
func (p *Pool) Idle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return waitFor(&p.idle, len(p.busy) == 0)
}

func waitFor(idle *chan struct{}, now bool) <-chan struct{} {
	if *idle == nil {
		*idle = make(chan struct{})
	}
	waited := *idle
	noteIdle(idle, now)
	return waited
}

func noteIdle(idle *chan struct{}, now bool) {
	if now && *idle != nil {
		close(*idle)
		*idle = nil
	}
}

// mayStart reports whether another piece may be begun. The lock is held, as in all that
// follows.
func (q *Queue) mayStart() bool {
	return q.busy == 0 || q.busy < q.most && q.pool.beyond < q.pool.shared
}

// start begins the next piece.
func (q *Queue) start() {
	p, work := q.pool, q.todo[0]
	if q.todo = q.todo[1:]; len(q.todo) == 0 {
		delete(p.waiting, q)
	}
	p.begin(q)
	go func() {
		work()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.end(q)
		for next := p.next(); next != nil; next = p.next() {
			next.start()
		}
		noteIdle(&q.idle, q.busy == 0)
		noteIdle(&p.idle, len(p.busy) == 0)
	}()
}

// next is the queue whose turn it is, or nil: one of which nothing is done yet, or one of
// the team, and in that of the run, for which the least is done.
func (p *Pool) next() (turn *Queue) {
	for q := range p.waiting {
		switch {
		case q.busy == 0:
			return q
		case !q.mayStart():
		case turn == nil, p.busy[q.team] < p.busy[turn.team], p.busy[q.team] == p.busy[turn.team] && q.busy < turn.busy:
			turn = q
		}
	}
	return turn
}

func (p *Pool) begin(q *Queue) {
	if q.busy > 0 {
		p.beyond++
	}
	q.busy++
	p.busy[q.team]++
}

func (p *Pool) end(q *Queue) {
	if q.busy--; q.busy > 0 {
		p.beyond--
	}
	if p.busy[q.team]--; p.busy[q.team] == 0 {
		delete(p.busy, q.team)
	}
}
