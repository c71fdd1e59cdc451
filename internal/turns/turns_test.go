package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// However many come and leave at once, the limits hold, for a team and in all, and
// nothing is left of those who have gone.
func TestTurnsAreGivenBack(t *testing.T) {
	t.Parallel()
	const teams, people, inAll, perTeam = 6, 300, 8, 2
	turns := New[string](inAll, perTeam)
	var all, refused atomic.Int64
	var own [teams]atomic.Int64
	var wg sync.WaitGroup
	for i := range people {
		wg.Go(func() {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if i%3 == 0 {
				go leave() // before, while or after it waits
			}
			giveBack, err := turns.Take(ctx, fmt.Sprint(i%teams))
			if err != nil {
				if refused.Add(1); !errors.Is(err, context.Canceled) || i%3 != 0 {
					t.Errorf("%d is refused: %v", i, err)
				}
				return
			}
			if n := own[i%teams].Add(1); n > perTeam {
				t.Errorf("%d of a team have a turn at once", n)
			}
			if n := all.Add(1); n > inAll {
				t.Errorf("%d have a turn at once", n)
			}
			all.Add(-1)
			own[i%teams].Add(-1)
			giveBack()
			giveBack() // a second time changes nothing
		})
	}
	wg.Wait()
	if turns.Len() != 0 || len(turns.teams) != 0 || len(turns.all) != 0 {
		t.Errorf("%d teams and %d turns are left", len(turns.teams), len(turns.all))
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 100 { // who has left may still get a turn, and gives it back
		if giveBack, err := turns.Take(gone, "red"); err == nil {
			giveBack()
		}
	}
	if turns.Len() != 0 || len(turns.teams) != 0 || len(turns.all) != 0 {
		t.Errorf("%d teams and %d turns are left", len(turns.teams), len(turns.all))
	}
}

// A team that holds all its turns, and has many more waiting, leaves the others theirs.
func TestTeamThatUsesItsTurnsLeavesOthersTheirs(t *testing.T) {
	t.Parallel()
	turns := New[string](3, 2)
	for range 2 {
		if _, err := turns.Take(t.Context(), "slow"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 20 {
		waiting.Go(func() {
			if _, err := turns.Take(ctx, "slow"); err == nil {
				t.Error("the team has more turns than it may")
			}
		})
	}
	for range 3 {
		giveBack, err := turns.Take(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		giveBack()
	}
	leave()
	waiting.Wait()
}
