package git

import (
	"context"
	"sync"

	"github.com/millrace/millrace/internal/domain/ids"
)

// How many repositories are fetched at once: each may take a gigabyte of disk and
// minutes of a slow host. A team has so few that its slow hosts keep nobody else
// from fetching.
const (
	atOnce     = 8
	teamAtOnce = 2
)

// turns are who fetches now. Its methods may be called at the same time.
type turns struct {
	all chan struct{}

	mu    sync.Mutex
	teams map[ids.Team]*teamTurns // of those who fetch, or wait
}

type teamTurns struct {
	free chan struct{}
	used int // by so many
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, atOnce), teams: map[ids.Team]*teamTurns{}}
}

// take waits until a team may fetch, or ctx ends. Who has taken a turn gives it
// back.
func (t *turns) take(ctx context.Context, team ids.Team) (giveBack func(), err error) {
	own := t.join(team)
	for i, queue := range []chan struct{}{own.free, t.all} {
		select {
		case queue <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-own.free
			}
			t.leave(team)
			return nil, ctx.Err()
		}
	}
	return func() {
		<-t.all
		<-own.free
		t.leave(team)
	}, nil
}

func (t *turns) join(team ids.Team) *teamTurns {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.teams[team]
	if own == nil {
		own = &teamTurns{free: make(chan struct{}, teamAtOnce)}
		t.teams[team] = own
	}
	own.used++
	return own
}

func (t *turns) leave(team ids.Team) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.teams[team]; own.used > 1 {
		own.used--
		return
	}
	delete(t.teams, team)
}
