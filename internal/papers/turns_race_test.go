package papers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/ai"
)

// However many come at once, and leave while they wait, never more read than may,
// each of the others has a turn, and nothing is left behind.
func TestTurnsWhenManyComeAtOnce(t *testing.T) {
	t.Parallel()
	turns := newTurns(Crowd{Reading: 5, PerOwner: 2, PerAddress: 3, Waiting: 1000, WaitingPerOwner: 1000, WaitingPerAddress: 1000, Patience: time.Minute})
	var mu sync.Mutex
	reading, had := map[string]int{}, 0
	count := func(p ai.Payer, by int) {
		mu.Lock()
		defer mu.Unlock()
		reading["all"] += by
		reading[p.Owner] += by
		if p.Address != "" {
			reading["at "+p.Address] += by
		}
		if reading["all"] > 5 || reading[p.Owner] > 2 || reading["at "+p.Address] > 3 {
			t.Errorf("too many read: %v", reading)
		}
		had += max(0, by)
	}
	var wg sync.WaitGroup
	stayed := 0
	start := make(chan struct{})
	for i := range 300 {
		p := ai.Payer{Owner: fmt.Sprint("owner", i%7)}
		if i%2 == 0 {
			p = ai.Payer{Owner: fmt.Sprint("visitor", i%11), Address: fmt.Sprint(i % 4)}
		}
		ctx, leave := context.WithCancel(t.Context())
		leaves := i%5 == 0
		if !leaves {
			stayed++
		}
		wg.Go(func() {
			defer leave()
			<-start
			if leaves {
				go leave()
			}
			done, err := turns.take(ctx, p)
			if err != nil {
				if !leaves || !errors.Is(err, context.Canceled) {
					t.Errorf("%v: %v", p, err)
				}
				return
			}
			count(p, 1)
			runtime.Gosched() // somebody else's turn
			count(p, -1)
			done()
		})
	}
	close(start)
	wg.Wait()
	if had < stayed {
		t.Errorf("%d had a turn of %d", had, stayed)
	}
	if turns.places != 0 || len(turns.reading) != 0 || len(turns.waiting) != 0 {
		t.Errorf("left behind: %+v", turns)
	}
}
