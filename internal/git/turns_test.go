package git

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
)

// However many come and leave at once, so few fetch at a time, of a team and in all, and
// nothing is left of those who have gone.
func TestTurnsAreGivenBack(t *testing.T) {
	t.Parallel()
	const teams, people = 6, 300
	turns := newTurns()
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
			giveBack, err := turns.take(ctx, ids.Team(fmt.Sprint(i%teams)))
			if err != nil {
				if refused.Add(1); !errors.Is(err, context.Canceled) || i%3 != 0 {
					t.Errorf("%d is refused: %v", i, err)
				}
				return
			}
			if n := own[i%teams].Add(1); n > teamAtOnce {
				t.Errorf("%d of a team fetch at once", n)
			}
			if n := all.Add(1); n > atOnce {
				t.Errorf("%d fetch at once", n)
			}
			all.Add(-1)
			own[i%teams].Add(-1)
			giveBack()
		})
	}
	wg.Wait()
	if len(turns.teams) != 0 || len(turns.all) != 0 {
		t.Errorf("%d teams and %d turns are left", len(turns.teams), len(turns.all))
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 100 { // who has left may still be given a turn, and gives it back
		if giveBack, err := turns.take(gone, "red"); err == nil {
			giveBack()
		}
	}
	if len(turns.teams) != 0 || len(turns.all) != 0 {
		t.Errorf("%d teams and %d turns are left", len(turns.teams), len(turns.all))
	}
}
