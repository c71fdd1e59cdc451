package papers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/fault"
)

// hall is a queue whose turns end when the test says so.
type hall struct {
	turns *turns
	busy  sync.WaitGroup

	mu      sync.Mutex
	order   []string
	reading map[string]func()
	errs    map[string]error
}

func newHall(c Crowd) *hall {
	return &hall{turns: newTurns(c), reading: map[string]func(){}, errs: map[string]error{}}
}

// comes lets somebody wait for a turn under a name of its own.
func (h *hall) comes(ctx context.Context, name string, p ai.Payer) {
	h.busy.Go(func() {
		done, err := h.turns.take(ctx, p)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.errs[name] = err; err == nil {
			h.order, h.reading[name] = append(h.order, name), done
		}
	})
	synctest.Wait()
}

// ends lets readers end, one after the other.
func (h *hall) ends(names ...string) {
	for _, name := range names {
		h.mu.Lock()
		done := h.reading[name]
		delete(h.reading, name)
		h.mu.Unlock()
		done()
		synctest.Wait()
	}
}

func (h *hall) now() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for name := range h.reading {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (h *hall) want(t *testing.T, reading ...string) {
	t.Helper()
	if diff := cmp.Diff(reading, h.now()); diff != "" {
		t.Error(diff)
	}
}

func from(visitor, address string) ai.Payer {
	return ai.Owner{Visitor: visitor, Address: address}.Payer()
}

func team(name string) ai.Payer { return ai.Payer{Owner: name} }

// Whatever one visitor or one address sends, somebody else reads at once.
func TestBombsDelayNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(DefaultCrowd())
		for i := range 4 {
			h.comes(t.Context(), fmt.Sprint("bomb", i), from("bomber", "a"))
		}
		h.want(t, "bomb0")
		h.comes(t.Context(), "near", from("neighbour", "a"))
		h.want(t, "bomb0", "near")
		// A bomber who forgets their cookie every time has an address all the same.
		for i := range 4 {
			h.comes(t.Context(), fmt.Sprint("fresh", i), from(fmt.Sprint("nobody", i), "a"))
		}
		h.want(t, "bomb0", "near")
		h.comes(t.Context(), "far", from("honest", "b"))
		h.want(t, "bomb0", "far", "near")
		h.ends("far")
		h.comes(t.Context(), "team", team("red"))
		h.want(t, "bomb0", "near", "team")
		for len(h.now()) > 0 {
			h.ends(h.now()...)
		}
		h.busy.Wait()
	})
}

// When all places are taken, it goes round: by address and team, then by
// visitor.
func TestTurnsGoRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(Crowd{Reading: 1, PerOwner: 1, PerAddress: 1, Waiting: 100, WaitingPerOwner: 100, WaitingPerAddress: 100, Patience: time.Hour})
		h.comes(t.Context(), "a1", from("anna", "a"))
		h.comes(t.Context(), "a2", from("anna", "a"))
		h.comes(t.Context(), "a3", from("anna", "a"))
		h.comes(t.Context(), "n1", from("nora", "a"))
		h.comes(t.Context(), "r1", team("red"))
		h.comes(t.Context(), "r2", team("red"))
		h.comes(t.Context(), "b1", from("bert", "b"))
		for range 3 {
			h.ends(h.now()...)
		}
		h.comes(t.Context(), "z1", from("zoe", "z")) // whoever comes late waits for those who came before
		for len(h.now()) > 0 {
			h.ends(h.now()...)
		}
		want := []string{"a1", "a2", "r1", "b1", "n1", "r2", "z1", "a3"}
		if diff := cmp.Diff(want, h.order); diff != "" {
			t.Error(diff)
		}
		if h.turns.places != 0 || len(h.turns.reading) != 0 || len(h.turns.waiting) != 0 {
			t.Errorf("left behind: %+v", h.turns)
		}
		h.busy.Wait()
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(Crowd{Reading: 1, PerOwner: 1, PerAddress: 1, Waiting: 4, WaitingPerOwner: 1, WaitingPerAddress: 2, Patience: time.Minute})
		h.comes(t.Context(), "first", team("red"))
		refused := func(name string, p ai.Payer, kind fault.Kind, code string) {
			t.Helper()
			h.comes(t.Context(), name, p)
			if e, ok := errors.AsType[*fault.Error](h.errs[name]); !ok || e.Kind != kind || e.Code != code || e.RetryAfter != 30*time.Second {
				t.Errorf("%s: %v", name, h.errs[name])
			}
		}
		h.comes(t.Context(), "second", team("red"))
		refused("third of one", team("red"), fault.KindLimited, "papers_waiting")
		h.comes(t.Context(), "a", from("anna", "a"))
		h.comes(t.Context(), "n", from("nora", "a"))
		refused("third of an address", from("mia", "a"), fault.KindLimited, "papers_waiting")
		ctx, cancel := context.WithCancel(t.Context())
		h.comes(ctx, "b", team("blue"))
		refused("fifth", team("green"), fault.KindUnavailable, "papers_busy")
		cancel() // whoever leaves makes place
		synctest.Wait()
		if !errors.Is(h.errs["b"], context.Canceled) {
			t.Errorf("got %v", h.errs["b"])
		}
		h.comes(t.Context(), "green", team("green"))
		time.Sleep(time.Minute) // of the bubble: nobody's turn comes
		synctest.Wait()
		for _, name := range []string{"second", "a", "n", "green"} {
			if e, ok := errors.AsType[*fault.Error](h.errs[name]); !ok || e.Code != "papers_busy" {
				t.Errorf("%s: %v", name, h.errs[name])
			}
		}
		h.ends("first")
		h.comes(t.Context(), "later", team("red"))
		h.want(t, "later")
		h.ends("later")
		h.busy.Wait()
	})
}
