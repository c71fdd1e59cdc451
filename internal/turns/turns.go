// Package turns limits how many transfers run at once, in all and for each team.
// A team whose hosts are slow uses up its own turns and nobody else's.
//
// One account can make ten teams a day, which together must not use up all turns. Where a
// transfer mostly waits for the network, which costs little, the limit in all is
// therefore more than ten times that of a team.
package turns

import (
	"context"
	"sync"
)

// Turns limits transfers. Its methods may be called at the same time.
type Turns[Team comparable] struct {
	all     chan struct{}
	perTeam int

	mu    sync.Mutex
	teams map[Team]*teamTurns // of teams that have a turn, or wait for one
}

type teamTurns struct {
	taken chan struct{}
	users int // who have a turn, or wait for one
}

// New returns turns for so many transfers at once, of which a team has at most
// perTeam.
func New[Team comparable](all, perTeam int) *Turns[Team] {
	return &Turns[Team]{all: make(chan struct{}, all), perTeam: perTeam, teams: map[Team]*teamTurns{}}
}

// Take waits for a turn of a team, or until ctx ends. The caller gives it back.
func (t *Turns[Team]) Take(ctx context.Context, team Team) (giveBack func(), err error) {
	own := t.join(team)
	// A team waits for its own turn first, so that only perTeam of its transfers
	// are ever in the queue that all teams share.
	for i, queue := range []chan struct{}{own.taken, t.all} {
		select {
		case queue <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-own.taken
			}
			t.leave(team)
			return nil, ctx.Err()
		}
	}
	return sync.OnceFunc(func() {
		<-t.all
		<-own.taken
		t.leave(team)
	}), nil
}

// Len is how many have a turn, or wait for one.
func (t *Turns[Team]) Len() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, own := range t.teams {
		n += own.users
	}
	return n
}

func (t *Turns[Team]) join(team Team) *teamTurns {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.teams[team]
	if own == nil {
		own = &teamTurns{taken: make(chan struct{}, t.perTeam)}
		t.teams[team] = own
	}
	own.users++
	return own
}

func (t *Turns[Team]) leave(team Team) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.teams[team]
	if own.users--; own.users == 0 {
		delete(t.teams, team)
	}
}
