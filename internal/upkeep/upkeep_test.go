package upkeep_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/upkeep"
)

// ears hear how chores went.
type ears struct {
	mu     sync.Mutex
	here   map[string][]upkeep.Record
	others map[string]upkeep.Record
	leads  bool
}

func (e *ears) Chore(r upkeep.Record, here bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if here {
		e.here[r.Name] = append(e.here[r.Name], r)
	} else {
		e.others[r.Name] = r
	}
}

func (e *ears) DoesChores(yes bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leads = yes
}

func (e *ears) does() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leads
}

func (e *ears) ofOthers(name string) upkeep.Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.others[name]
}

func (e *ears) heard(name string) []upkeep.Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.here[name]
}

type process struct {
	*upkeep.Keeper
	ears  *ears
	end   context.CancelFunc
	ended chan struct{}
}

func start(t *testing.T, db upkeep.Store, name string, shared ...upkeep.Chore) *process {
	t.Helper()
	return startLists(t, db, name, shared)
}

func startLists(t *testing.T, db upkeep.Store, name string, shared ...[]upkeep.Chore) *process {
	t.Helper()
	p := &process{ears: &ears{here: map[string][]upkeep.Record{}, others: map[string]upkeep.Record{}}, ended: make(chan struct{})}
	p.Keeper = upkeep.New(upkeep.Options{Store: db, Owner: name, Shared: shared, Metrics: p.ears, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	ctx, end := context.WithCancel(t.Context())
	p.end = end
	go func() {
		defer close(p.ended)
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return p
}

func (p *process) stop() {
	p.end()
	<-p.ended
}

// bubble gives a test its own time, and a database.
func bubble(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Parallel()
	url := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), store.Options{URL: url, SecretKey: storetest.SecretKey})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, db)
	})
}

func TestOneProcessDoesTheChoresAndAnotherTakesOver(t *testing.T) {
	bubble(t, func(t *testing.T, db *store.DB) {
		var mu sync.Mutex
		did := map[string]int{}
		chore := func(who string) upkeep.Chore {
			return upkeep.Chore{Name: "c", Every: time.Minute, Batch: func(context.Context, int64) (upkeep.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				did[who]++
				return upkeep.Result{Done: 2}, nil
			}}
		}
		one := start(t, db, "one", chore("one"))
		synctest.Wait()
		two := start(t, db, "two", chore("two"))
		time.Sleep(5*time.Minute + time.Second)
		mu.Lock()
		if did["one"] < 5 || did["two"] != 0 {
			t.Errorf("they did %v", did)
		}
		mu.Unlock()
		if r := two.ears.ofOthers("c"); r.Done != 2 || r.SucceededAt.IsZero() {
			t.Errorf("the other heard %+v", r)
		}
		one.stop() // gives them up at once
		time.Sleep(2 * upkeep.Renewal)
		if !two.ears.does() || one.ears.does() {
			t.Error("nobody has taken over")
		}
		mu.Lock()
		before := did["one"]
		if did["two"] != 0 {
			t.Error("it was not due yet")
		}
		mu.Unlock()
		time.Sleep(2 * time.Minute)
		mu.Lock()
		if did["two"] < 1 || did["one"] != before {
			t.Errorf("they did %v", did)
		}
		mu.Unlock()
		two.stop()
	})
}

// A process that died or stood still has lost the chores after the lease, and
// nothing that it still writes counts.
func TestWhoHasLostTheChoresChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		dead, claimed, err := db.ClaimUpkeep(ctx, "dead", time.Now(), time.Now().Add(upkeep.Length))
		if err != nil || !claimed {
			t.Fatal(claimed, err)
		}
		p := start(t, db, "next", upkeep.Chore{Name: "c", Every: time.Hour, Batch: func(context.Context, int64) (upkeep.Result, error) {
			return upkeep.Result{}, nil
		}})
		time.Sleep(upkeep.Length / 2)
		if len(p.ears.heard("c")) != 0 {
			t.Error("it took the chores of somebody who has them")
		}
		time.Sleep(upkeep.Length)
		if len(p.ears.heard("c")) != 1 {
			t.Error("nobody took them over")
		}
		if err := db.RenewUpkeep(ctx, dead, time.Now().Add(time.Hour)); !errors.Is(err, upkeep.ErrLost) {
			t.Errorf("renewed: %v", err)
		}
		if _, err := db.Fenced(dead).DeleteExpired(ctx, time.Now()); !errors.Is(err, upkeep.ErrLost) {
			t.Errorf("deleted: %v", err)
		}
		if err := db.RecordChore(ctx, dead, upkeep.Record{Name: "c", Done: 99}); !errors.Is(err, upkeep.ErrLost) {
			t.Errorf("recorded: %v", err)
		}
		if err := db.ReleaseUpkeep(ctx, dead); err != nil {
			t.Error(err)
		}
		if _, claimed, err := db.ClaimUpkeep(ctx, "third", time.Now(), time.Now().Add(time.Minute)); claimed || err != nil {
			t.Errorf("released what is another's: %v", err)
		}
		p.stop()
	})
}

func TestAChoreThatFailsOrPanicsIsTriedAgainAndStopsNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, db *store.DB) {
		fails := 3
		p := start(t, db, "one",
			upkeep.Chore{Name: "panics", Every: time.Hour, Batch: func(context.Context, int64) (upkeep.Result, error) { panic("oh") }},
			upkeep.Chore{Name: "fails", Every: time.Hour, Batch: func(context.Context, int64) (upkeep.Result, error) {
				if fails--; fails >= 0 {
					return upkeep.Result{}, errors.New("no")
				}
				return upkeep.Result{Done: 1, Skipped: 1, Why: errors.New("one is broken")}, nil
			}},
		)
		time.Sleep(10 * time.Minute)
		if list := p.ears.heard("fails"); len(list) != 4 || list[2].Error != "no" || !list[3].FailedAt.IsZero() || list[3].Skipped != 1 {
			t.Errorf("it went %+v", list)
		}
		if list := p.ears.heard("panics"); len(list) < 9 || !list[0].SucceededAt.IsZero() {
			t.Errorf("it went %+v", list)
		}
		p.stop()
		known, err := db.Chores(t.Context())
		if err != nil || len(known) != 2 || known[0].Name != "fails" || known[0].Done != 1 || known[0].SucceededAt.IsZero() || known[1].FailedAt.IsZero() {
			t.Errorf("known is %+v, %v", known, err)
		}
	})
}

// What is renewed while a long batch goes on is not lost, and the next batch
// begins where the last one ended.
func TestALongChoreKeepsTheLeaseAndItsPlace(t *testing.T) {
	bubble(t, func(t *testing.T, db *store.DB) {
		var places []string
		p := start(t, db, "one", upkeep.Chore{Name: "long", Every: time.Hour, Batch: upkeep.Paged(
			func(ctx context.Context, fence int64, after string) (upkeep.Result, string, error) {
				places = append(places, after)
				time.Sleep(3 * upkeep.Length)
				if err := db.RecordChore(ctx, fence, upkeep.Record{Name: "other"}); err != nil {
					t.Error(err)
				}
				return upkeep.Result{Done: 1, More: after != "xx"}, after + "x", nil
			})})
		time.Sleep(15 * time.Minute)
		if list := p.ears.heard("long"); len(list) != 1 || list[0].Done != 3 || len(places) != 3 || places[2] != "xx" {
			t.Errorf("it went %+v by %q", list, places)
		}
		p.stop()
	})
}

// A chore whose batch hangs is cut short and fails. Chores of its own list wait until
// then, those of other lists do not.
func TestAHangingChoreHoldsUpNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, db *store.DB) {
		works := func(name string) upkeep.Chore {
			return upkeep.Chore{Name: name, Every: 10 * time.Second, Batch: func(context.Context, int64) (upkeep.Result, error) { return upkeep.Result{Done: 1}, nil }}
		}
		p := startLists(t, db, "one",
			[]upkeep.Chore{
				{Name: "hangs", Every: time.Hour, Limit: 2 * time.Minute, Batch: func(ctx context.Context, _ int64) (upkeep.Result, error) {
					<-ctx.Done()
					return upkeep.Result{}, ctx.Err()
				}},
				works("beside"),
			},
			[]upkeep.Chore{works("elsewhere")},
		)
		time.Sleep(time.Minute)
		if beside, elsewhere := p.ears.heard("beside"), p.ears.heard("elsewhere"); len(beside) != 0 || len(elsewhere) < 5 {
			t.Errorf("while it hangs: %d and %d times", len(beside), len(elsewhere))
		}
		time.Sleep(2 * time.Minute)
		if list := p.ears.heard("hangs"); len(list) != 1 || list[0].Error != context.DeadlineExceeded.Error() {
			t.Errorf("it went %+v", list)
		}
		if beside := p.ears.heard("beside"); len(beside) == 0 {
			t.Error("the chore after it is not done")
		}
		p.stop()
	})
}
