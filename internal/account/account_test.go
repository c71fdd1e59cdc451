package account_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
	"github.com/millrace/millrace/internal/workflows"
)

var lifetimes = account.Lifetimes{UploadLink: 5 * time.Minute, Transfer: 6 * time.Hour}

// bench is the room on a real database, beside parts that fail when told to.
type bench struct {
	*account.Service
	t     *testing.T
	db    *store.DB
	clock *storetest.Clock
	owner access.Caller

	mu      sync.Mutex
	emptied []string   // prefixes of objects that were deleted
	mails   []ids.Team // of teams with mails on this machine
	broken  error      // of the object store
	busy    []ids.Run  // at work on this machine
}

func (b *bench) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *bench) DeletePrefix(_ context.Context, prefix string) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken == nil {
		b.emptied = append(b.emptied, prefix)
	}
	return 1, b.broken
}

func (b *bench) Cancel(ids.Run) {}

func (b *bench) LocalRuns(context.Context) ([]ids.Run, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.busy), nil
}

func (b *bench) Teams(context.Context) ([]ids.Team, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.mails), nil
}

func (b *bench) Forget(_ context.Context, team ids.Team) error {
	b.set(func() { b.mails = slices.DeleteFunc(b.mails, func(t ids.Team) bool { return t == team }) })
	return nil
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := &bench{t: t, db: db, clock: storetest.NewClock(), owner: storetest.Owner(t, db, "ada")}
		b.Service = account.NewService(account.Options{
			Store: db, Eraser: db, People: db, Runs: db, Objects: b, Engine: b, Mailbox: b, Lifetimes: lifetimes, Log: slog.New(slog.DiscardHandler), Now: b.clock.Now,
		})
		if _, err := workflows.NewService(db.WorkflowStores(), b.clock.Now).Create(t.Context(), b.owner, workflows.New{Name: "w"}); err != nil {
			t.Fatal(err)
		}
		test(t, b)
	})
}

// works runs the room until the test has ended, or until it is stopped.
func (b *bench) works() (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	b.t.Cleanup(stop)
	return stop
}

func (b *bench) left() int {
	b.t.Helper()
	rows, err := b.db.Workflows(b.t.Context(), b.owner.Team, "", 10)
	if err != nil && !fault.Is(err, fault.KindNotFound) {
		b.t.Fatal(err)
	}
	return len(rows)
}

func TestOnlyAnOwnerWhoMeansItErasesATeam(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, role := range []access.Role{access.Admin, access.Member, access.Viewer, access.GuestEditor} {
			as := b.owner
			as.Role = role
			_, err := b.Erase(t.Context(), as, string(as.Team))
			storetest.Refused(t, string(role), err, fault.KindForbidden)
		}
		for _, confirm := range []string{"", "yes", string(b.owner.Team) + " "} {
			_, err := b.Erase(t.Context(), b.owner, confirm)
			storetest.Refused(t, confirm, err, fault.KindInvalid)
		}
		if b.left() != 1 {
			t.Error("something is gone")
		}
	})
}

func TestWhatIsErasedIsGoneEverywhere(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		other := storetest.Owner(t, b.db, "mia")
		b.mails = []ids.Team{b.owner.Team, other.Team}
		b.works()
		e, err := b.Erase(t.Context(), b.owner, string(b.owner.Team))
		if err != nil || !e.Erased || e.Counts["workflows"] != 1 {
			t.Fatalf("%+v, %v", e, err)
		}
		b.set(func() {
			if !slices.Equal(b.mails, []ids.Team{other.Team}) || !slices.Contains(b.emptied, "teams/"+string(b.owner.Team)+"/") {
				t.Errorf("mails of %v, emptied %v", b.mails, b.emptied)
			}
			for _, prefix := range b.emptied {
				if prefix != "teams/"+string(b.owner.Team)+"/" {
					t.Errorf("emptied %s", prefix)
				}
			}
		})
		if b.left() != 0 {
			t.Error("its workflows are there")
		}
		if _, err := b.db.Balance(t.Context(), other.Team, b.clock.Now()); err != nil {
			t.Errorf("another team: %v", err)
		}
	})
}

// Whoever leaves, and whatever fails on the way, it goes on until all is done.
func TestAnErasureGoesOnAfterTrouble(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.broken = errors.New("the object store is away")
		stop := b.works()
		ctx, leave := context.WithCancel(t.Context())
		answered := make(chan error, 1)
		go func() {
			_, err := b.Erase(ctx, b.owner, string(b.owner.Team))
			answered <- err
		}()
		if !waittest.Until(func() bool {
			_, err := b.db.Erasure(t.Context(), b.owner.Team)
			return err == nil
		}) {
			t.Fatal("the team is never closed")
		}
		leave()
		if err := <-answered; !fault.Is(err, fault.KindUnavailable) && !errors.Is(err, context.Canceled) {
			t.Errorf("who leaves is told %v", err)
		}
		stop()
		if e, err := b.db.Erasure(t.Context(), b.owner.Team); err != nil || e.Erased || b.left() != 1 {
			t.Errorf("rows go before their bytes: %+v, %v", e, err)
		}
		b.set(func() { b.broken = nil })
		b.clock.Pass(time.Minute) // the one that failed is nobody's by then
		b.works()
		if !waittest.Until(func() bool {
			e, err := b.db.Erasure(t.Context(), b.owner.Team)
			return err == nil && e.Erased
		}) {
			t.Error("it never ends")
		}
	})
}

// An address that was open when the team was closed may still bring bytes:
// they go until none can come any more, and then the tombstone goes, too.
func TestWhatArrivesLateIsSweptUntilNothingCan(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		now := b.clock.Now()
		begun := files.Reservation{
			Key: "teams/" + string(b.owner.Team) + "/uploads/f/a.csv", Team: b.owner.Team, ID: "f", Name: "a.csv",
			ContentType: "text/csv", Size: 1, CreatedBy: b.owner.User, CreatedAt: now, ExpiresAt: now.Add(lifetimes.UploadLink),
		}
		if err := b.db.Reserve(t.Context(), begun, 0); err != nil {
			t.Fatal(err)
		}
		stop := b.works()
		if _, err := b.Erase(t.Context(), b.owner, string(b.owner.Team)); err != nil {
			t.Fatal(err)
		}
		stop()
		sweeps := func() (n int) {
			b.set(func() { n = len(b.emptied) })
			return n
		}
		before := sweeps()
		b.clock.Pass(10 * time.Minute)
		stop = b.works()
		if !waittest.Until(func() bool { return sweeps() > before }) {
			t.Fatal("nobody sweeps")
		}
		stop()
		if _, err := b.db.Erasure(t.Context(), b.owner.Team); err != nil {
			t.Errorf("the tombstone is gone while bytes may come: %v", err)
		}
		b.clock.Pass(24 * time.Hour)
		b.works()
		if !waittest.Until(func() bool {
			_, err := b.db.Erasure(t.Context(), b.owner.Team)
			return fault.Is(err, fault.KindNotFound)
		}) {
			t.Error("the tombstone stays")
		}
	})
}

// Mails on this machine go although another server erased their team.
func TestLettersOfATeamThatAnotherServerErasedGo(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		other := account.NewService(account.Options{
			Store: b.db, Eraser: b.db, People: b.db, Runs: b.db, Objects: b, Engine: b, Lifetimes: lifetimes, Log: slog.New(slog.DiscardHandler), Now: b.clock.Now,
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- other.Run(ctx) }()
		b.set(func() { b.mails = []ids.Team{b.owner.Team} })
		if _, err := other.Erase(t.Context(), b.owner, string(b.owner.Team)); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		b.works()
		if !waittest.Until(func() (gone bool) {
			b.set(func() { gone = len(b.mails) == 0 })
			return gone
		}) {
			t.Error("a mail stays")
		}
	})
}
