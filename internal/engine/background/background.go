// Package background runs functions in the background, one after the other.
package background

import "sync"

// Queue is what is still to be run. The zero value is ready to use.
type Queue struct {
	mu   sync.Mutex
	todo []func()
	busy bool
	idle sync.WaitGroup
}

// Add runs f after everything that was added before. A panic of f ends the process.
func (q *Queue) Add(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.todo = append(q.todo, f)
	if !q.busy {
		q.busy = true
		q.idle.Go(q.work)
	}
}

// Wait returns when everything that was added has run.
func (q *Queue) Wait() { q.idle.Wait() }

func (q *Queue) work() {
	for {
		q.mu.Lock()
		todo := q.todo
		q.todo = nil
		q.busy = len(todo) > 0
		q.mu.Unlock()
		if len(todo) == 0 {
			return
		}
		for _, f := range todo {
			f()
		}
	}
}
