package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// bench is the room on a real database, and what it tells others.
type bench struct {
	*operator.Service
	t     *testing.T
	db    *store.DB
	ada   access.Caller
	woken int
	sent  int
	ended []ids.Run
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := &bench{t: t, db: db, ada: storetest.Owner(t, db, "ada")}
		b.Service = operator.NewService(operator.Options{
			Operators: db, Runs: db, Keeping: db, Changes: db, Notices: db, Mailbox: db, Catalog: credits.DefaultCatalog(), Now: storetest.NewClock().Now,
			SendSoon: func() { b.sent++ }, Wake: func() { b.woken++ }, Cancel: func(id ids.Run) { b.ended = append(b.ended, id) },
			Disk: func() operator.Disk { return operator.Disk{Total: 10, Free: 4} },
		})
		test(t, b)
	})
}

// team is ada's, as operators see it.
func (b *bench) team() operator.Team {
	b.t.Helper()
	list, _, err := b.Teams(b.t.Context(), "", 100)
	for _, team := range list {
		if team.ID == b.ada.Team {
			return team
		}
	}
	b.t.Fatalf("%+v, %v", list, err)
	return operator.Team{}
}

func TestCreditsAreGrantedWithinBounds(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const most = 1_000_000_000 * credits.Credit
		before := b.team().Left
		for _, tt := range []struct {
			credits credits.Amount
			reason  string
			field   string // that is wrong
		}{
			{0, "", "credits"},
			{most + 1, "", "credits"},
			{-most - 1, "", "credits"},
			{credits.Credit, strings.Repeat("ä", 201), "reason"},
			{credits.Credit, "two\nlines", "reason"},
			{credits.Credit, "NUL \x00", "reason"},
			{credits.Credit, strings.Repeat("ä", 200), ""},
			{2 * credits.Credit, "  ", ""},
			{-credits.Credit, "a mistake", ""},
			{1, "the least", ""},
			{most, "the most", ""},
			{-most, "and back", ""},
		} {
			err := b.Grant(t.Context(), operator.Grant{Team: b.ada.Team, Credits: tt.credits, Reason: tt.reason})
			if tt.field == "" {
				storetest.Refused(t, tt.reason, err, "")
				continue
			}
			if e, ok := errors.AsType[*fault.Error](err); !ok || e.Kind != fault.KindInvalid || len(e.Details) != 1 || e.Details[0].Path != tt.field {
				t.Errorf("%v %q: %v", tt.credits, tt.reason, err)
			}
		}
		if got := b.team().Left; got != before+2*credits.Credit+1 {
			t.Errorf("%v credits are left of %v", got, before)
		}
		storetest.Refused(t, "no such team", b.Grant(t.Context(), operator.Grant{Team: "team_x", Credits: 1}), fault.KindNotFound)
	})
}

func TestPlansAndSuspensions(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, team := t.Context(), b.ada.Team
		storetest.Refused(t, "no such plan", b.SetPlan(ctx, team, "gold"), fault.KindInvalid)
		storetest.Refused(t, "no such team", b.SetPlan(ctx, "team_x", credits.Pro), fault.KindNotFound)
		storetest.Refused(t, "another plan", b.SetPlan(ctx, team, credits.Pro), "")
		storetest.Refused(t, "the same again", b.SetPlan(ctx, team, credits.Pro), "")
		if got := b.team(); got.Plan != credits.Pro || !got.SuspendedAt.IsZero() || got.Members != 1 || got.Name != "ada's team" {
			t.Errorf("%+v", got)
		}
		storetest.Refused(t, "suspending nobody", b.Suspend(ctx, "team_x", true), fault.KindNotFound)
		if b.woken != 0 {
			t.Error("workers were woken for nothing")
		}
		storetest.Refused(t, "suspending", b.Suspend(ctx, team, true), "")
		if b.team().SuspendedAt.IsZero() {
			t.Error("it is not suspended")
		}
		storetest.Refused(t, "lifting that", b.Suspend(ctx, team, false), "")
		if !b.team().SuspendedAt.IsZero() || b.woken != 2 {
			t.Errorf("it is still suspended, or the %d wakings too few", b.woken)
		}
		storetest.Refused(t, "draining nobody", b.Drain(ctx, "nobody", true), fault.KindNotFound)
		_, err := b.End(ctx, "run_x")
		storetest.Refused(t, "ending nothing", err, fault.KindNotFound)
		if b.woken != 2 || len(b.ended) > 0 {
			t.Errorf("%d wakings, %v ended", b.woken, b.ended)
		}
		storetest.Refused(t, "a mail", b.TestMail(ctx, "ada@example.org"), "")
		if b.sent != 1 {
			t.Error("nobody is told to send it")
		}
	})
}

func TestTeamsArePagedByTheirIDs(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for i := range 4 {
			storetest.Owner(t, b.db, fmt.Sprint("bob", i))
		}
		seen := map[ids.Team]bool{}
		var after ids.Team
		for page := range 4 {
			list, more, err := b.Teams(t.Context(), after, 2)
			if err != nil || more != (page < 2) || len(list) == 0 {
				t.Fatalf("page %d: %+v, %v, %v", page, list, more, err)
			}
			for _, team := range list {
				if team.ID <= after || seen[team.ID] {
					t.Errorf("%s comes after %s", team.ID, after)
				}
				seen[team.ID], after = true, team.ID
			}
			if !more {
				break
			}
		}
		if len(seen) != 5 {
			t.Errorf("%d teams", len(seen))
		}
		if list, more, err := b.Teams(t.Context(), after, 2); err != nil || more || len(list) != 0 {
			t.Errorf("after the last: %+v, %v, %v", list, more, err)
		}
	})
}

func TestAnEmptyInstallationIsSeen(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		kept, disk, err := b.Storage(t.Context())
		if err != nil || kept.Bytes != 0 || kept.Database <= 0 || disk.Free != 4 {
			t.Errorf("%+v, %+v, %v", kept, disk, err)
		}
		queue, err := b.Queue(t.Context(), 10)
		if err != nil || queue.Queued+queue.Running+len(queue.Runs) != 0 {
			t.Errorf("%+v, %v", queue, err)
		}
		workers, err := b.Workers(t.Context())
		if err != nil || len(workers) != 0 {
			t.Errorf("%+v, %v", workers, err)
		}
		chores, err := b.Chores(t.Context())
		if err != nil || len(chores) != 0 {
			t.Errorf("%+v, %v", chores, err)
		}
		if is, err := b.IsOperator(t.Context(), b.ada.User); is || err != nil {
			t.Errorf("whoever signs up is an operator: %v, %v", is, err)
		}
	})
}

// slow is a database that takes its time.
type slow struct {
	operator.FailureStore
	begun, proceed chan struct{}
}

func (s slow) RecordFailure(ctx context.Context, f operator.Failure) error {
	s.begun <- struct{}{}
	<-s.proceed
	return s.FailureStore.RecordFailure(ctx, f)
}

// Whoever fails is not made to wait for the record of it.
func TestFailuresAreRecordedBesideTheRequests(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		s := slow{b.db, make(chan struct{}, 200), make(chan struct{})}
		r := operator.NewRecorder(s, "host-1", storetest.NewClock().Now)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		r.Record("req_0", "GET /api/runs", "internal")
		<-s.begun
		for i := range 150 { // more than wait: the rest is in the log alone
			r.Record(fmt.Sprint("req_", i+1), "GET /api/runs", "internal")
		}
		close(s.proceed)
		for range 100 {
			<-s.begun
		}
		r.Record("req_last", "POST /api/files", "database")
		<-s.begun // the hundredth is written
		stop()
		running.Wait()
		list, err := b.Failures(t.Context(), 1000)
		if err != nil || len(list) < 101 || len(list) > 102 {
			t.Fatalf("%d failures, %v", len(list), err)
		}
		oldest := list[len(list)-1]
		if oldest.RequestID != "req_0" || oldest.Host != "host-1" || oldest.Route != "GET /api/runs" || oldest.Code != "internal" || oldest.At.After(time.Now().AddDate(10, 0, 0)) {
			t.Errorf("%+v", oldest)
		}
		if few, err := b.Failures(t.Context(), 3); err != nil || len(few) != 3 || few[0].At.Before(few[2].At) {
			t.Errorf("%+v, %v", few, err)
		}
	})
}
