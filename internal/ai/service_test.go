package ai_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

const (
	mill  = "10.1000/mill"
	wheel = "10.1000/wheel"
)

// world is the papers there are outside, and what becomes of whoever fetches one.
type world struct {
	find func(context.Context, doi.DOI) (ai.Found, error)
	text func(context.Context) (ai.Text, error)

	mu    sync.Mutex
	asked int // for texts
}

func (w *world) Find(ctx context.Context, name doi.DOI) (ai.Found, error) {
	if w.find != nil {
		return w.find(ctx, name)
	}
	return ai.Found{Paper: ai.Paper{DOI: name, Title: "On Mills", Source: "crossref"}}, nil
}

func (w *world) Text(ctx context.Context, _ ai.Payer, _ []string) (ai.Text, error) {
	w.mu.Lock()
	w.asked++
	w.mu.Unlock()
	if w.text != nil {
		return w.text(ctx)
	}
	return ai.Text{Pages: []reader.Page{{Number: 1, Text: "We ground grain."}}, Of: 1}, nil
}

func (w *world) PDFText(ctx context.Context, p ai.Payer, _ string) (ai.Text, error) {
	return w.Text(ctx, p, nil)
}

func (w *world) texts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// bench is the room on a real database, with a team.
type bench struct {
	*ai.Service
	t     *testing.T
	db    *store.DB
	clock *storetest.Clock
	world *world
	ada   access.Caller
	owner ai.Owner
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := &bench{t: t, db: db, clock: storetest.NewClock(), world: &world{}, ada: storetest.Owner(t, db, "ada")}
		b.owner = ai.OwnerOf(b.ada)
		b.Service = b.room(func(*ai.Options) {})
		test(t, b)
	})
}

// room is another server on the same database.
func (b *bench) room(change func(*ai.Options)) *ai.Service {
	o := ai.Options{
		Store: b.db, Queue: b.db, Use: b.db, Failed: b.db, Library: b.world, PDFs: b.world, Limits: ai.DefaultLimits(),
		Patience: ai.Patience{Idle: 5 * time.Millisecond}, Worker: "w", Log: slog.New(slog.DiscardHandler), Now: b.clock.Now,
	}
	change(&o)
	return ai.NewService(o)
}

// run starts a server's work; what it returns ends it.
func run(t *testing.T, s *ai.Service) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (b *bench) ask(name string) ai.Analysis {
	b.t.Helper()
	a, err := b.Analyze(b.t.Context(), b.owner, name)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// ended waits for the end of an analysis.
func (b *bench) ended(s *ai.Service, a ai.Analysis) ai.Analysis {
	b.t.Helper()
	a, err := s.Follow(b.t.Context(), a, func(ai.Analysis, bool) error { return nil })
	if err != nil || !a.Status.Terminal() {
		b.t.Fatalf("%+v, %v", a, err)
	}
	return a
}

func (b *bench) charged() int {
	b.t.Helper()
	c, err := b.db.Charged(b.t.Context(), b.owner, ai.DayOf(b.clock.Now()))
	if err != nil {
		b.t.Fatal(err)
	}
	return c.Owner
}

// failedPDFs counts those of the team by how many more it may have.
func (b *bench) failedPDFs() int {
	b.t.Helper()
	for most := range 20 {
		l := ai.DefaultLimits()
		l.FailedPerOwner = most + 1
		now := b.clock.Now()
		err := b.db.TakePDF(b.t.Context(), b.owner.Payer(), l, now)
		if fault.Is(err, fault.KindLimited) {
			continue
		}
		if err == nil {
			err = b.db.ReturnPDF(b.t.Context(), b.owner.Payer(), ai.DayOf(now))
		}
		if err != nil {
			b.t.Fatal(err)
		}
		return most
	}
	b.t.Fatal("too many to count")
	return 0
}

func TestAServerThatStopsPutsItsReadingBack(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		begun := make(chan struct{})
		b.world.text = func(ctx context.Context) (ai.Text, error) {
			close(begun)
			<-ctx.Done()
			return ai.Text{}, errors.Join(ctx.Err(), ai.ErrUnreadable)
		}
		a := b.ask(mill)
		stop := run(t, b.Service)
		<-begun
		stop()
		now, err := b.Analysis(t.Context(), b.ada, a.ID)
		if err != nil || now.Status != ai.Queued {
			t.Fatalf("%+v, %v", now, err)
		}
		if n := b.failedPDFs(); n != 0 {
			t.Errorf("the team has %d unreadable PDFs", n)
		}
		b.world.text = nil
		r, err := b.db.ClaimReading(t.Context(), "next", ai.Crowd{PerOwner: 1, PerAddress: 1}, b.clock.Now(), b.clock.Now())
		if err != nil || r.Attempt != 1 {
			t.Errorf("it counts as attempt %d, %v", r.Attempt, err)
		}
		b.clock.Pass(time.Minute)
		next := b.room(func(*ai.Options) {})
		run(t, next)
		if a = b.ended(next, a); a.Status != ai.Completed || a.Result.Paper.Title != "On Mills" {
			t.Errorf("%+v", a)
		}
	})
}

func TestAPaperThatBreaksTheReaderFailsAlone(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.world.find = func(_ context.Context, name doi.DOI) (ai.Found, error) {
			if name == mill {
				panic("a strange paper with the secret 4711")
			}
			return ai.Found{Paper: ai.Paper{Title: "On Wheels"}}, nil
		}
		strange, other := b.ask(mill), b.ask(wheel)
		run(t, b.Service)
		got := b.ended(b.Service, strange)
		if got.Status != ai.Failed || got.Failure.Kind != fault.KindInternal || strings.Contains(got.Failure.Message, "4711") {
			t.Errorf("%+v", got.Failure)
		}
		if got := b.ended(b.Service, other); got.Status != ai.Completed {
			t.Errorf("the other is %+v", got)
		}
		if n := b.charged(); n != 1 {
			t.Errorf("the team pays for %d", n)
		}
	})
}

// What the askers are told of a failure, and whether it costs them one of the
// PDFs that may fail.
func TestAFailedReadingSaysWhy(t *testing.T) {
	waits := func(ctx context.Context) (ai.Text, error) {
		<-ctx.Done()
		return ai.Text{}, ctx.Err()
	}
	says := func(err error) func(context.Context) (ai.Text, error) {
		return func(context.Context) (ai.Text, error) { return ai.Text{}, err }
	}
	for name, tt := range map[string]struct {
		text   func(context.Context) (ai.Text, error)
		want   ai.Failure
		failed int
	}{
		"foreseen":           {says(fault.Conflict("it is closed").WithCode("closed_access")), ai.Failure{Kind: fault.KindConflict, Code: "closed_access", Message: "it is closed"}, 0},
		"without a code":     {says(fault.NotFound("no copy")), ai.Failure{Kind: fault.KindNotFound, Code: "not_found", Message: "no copy"}, 0},
		"an unreadable copy": {says(fault.Invalid("damaged").WithCause(ai.ErrUnreadable)), ai.Failure{Kind: fault.KindInvalid, Code: "invalid", Message: "damaged"}, 1},
		"too slow": {
			waits, ai.Failure{Kind: fault.KindUnavailable, Code: "analysis_timeout", Message: "reading this paper took too long; try again later"}, 0,
		},
		"unforeseen": {
			says(errors.New("10.0.0.7 refused")),
			ai.Failure{Kind: fault.KindInternal, Code: "internal", Message: "something went wrong on our side while reading this paper; try again"},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bench) {
				b.world.text = tt.text
				s := b.room(func(o *ai.Options) {
					if name == "too slow" {
						o.Patience.Reading = 20 * time.Millisecond
					}
				})
				a := b.ask(mill)
				run(t, s)
				if a = b.ended(s, a); a.Failure == nil || *a.Failure != tt.want {
					t.Errorf("%+v", a.Failure)
				}
				if e := a.Failure.Err(); e.Kind != tt.want.Kind || e.Code != tt.want.Code || e.Message != tt.want.Message {
					t.Errorf("the caller gets %+v", e)
				}
				if n := b.failedPDFs(); n != tt.failed {
					t.Errorf("the team has %d unreadable PDFs, want %d", n, tt.failed)
				}
				if n := b.charged(); n != 0 {
					t.Errorf("the team pays for %d", n)
				}
			})
		})
	}
}
