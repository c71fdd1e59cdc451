package workflows_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
	"github.com/millrace/millrace/internal/workflows"
)

// hosts are several, of which the slow one does not answer once it is told so, and the
// panicking one then has what nobody can read.
type hosts struct {
	slow  atomic.Bool
	asked chan ids.Team
}

func (h *hosts) Latest(ctx context.Context, team ids.Team, s source.Source) (string, error) {
	if !h.slow.Load() {
		return firstCommit, nil
	}
	if strings.Contains(s.Git, "slow") {
		h.asked <- team
		<-ctx.Done()
		return "", ctx.Err()
	}
	return secondCommit, nil
}

func (h *hosts) File(_ context.Context, _ ids.Team, s source.Source, commit string, _ workflows.FileWanted) (string, []byte, error) {
	if h.slow.Load() && strings.Contains(s.Git, "panicking") {
		panic("out of order")
	}
	return "millrace.yaml", fmt.Appendf(nil, "nodes:\n- id: a\n  command: echo %s\n", commit), nil
}

// toRefresh makes a workflow of a host's repository, and calls the trigger that refreshes it.
func (b *bench) toRefresh(as access.Caller, host string) workflows.Workflow {
	b.t.Helper()
	w, err := b.Create(b.t.Context(), as, workflows.New{Git: &source.Source{Git: "https://" + host + ".example/lab/x.git", Ref: "main"}})
	if err != nil {
		b.t.Fatal(err)
	}
	trigger := schedules.Trigger{ID: ids.NewTrigger(), Team: w.Team, Workflow: w.ID, TokenHash: string(w.ID), Action: schedules.ActionRefresh, CreatedBy: as.User, CreatedAt: b.clock.Now()}
	if err := b.db.InsertTrigger(b.t.Context(), trigger, 20, nil); err != nil {
		b.t.Fatal(err)
	}
	if err := b.db.AskForRefresh(b.t.Context(), trigger, nil, b.clock.Now()); err != nil {
		b.t.Fatal(err)
	}
	b.clock.Pass(time.Millisecond) // first come
	return w
}

// What is due again at every start of the server would end the server each time.
func TestPanicOverARepositoryIsItsProblem(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		h := &hosts{}
		b.FollowGit(h, nil)
		mia := storetest.Owner(t, b.db, "mia")
		broken, other := b.toRefresh(mia, "panicking"), b.toRefresh(mia, "quick")
		h.slow.Store(true)
		r := &workflows.Refresher{Workflows: b.Service, Log: slog.New(slog.DiscardHandler)}
		for _, want := range []bool{true, true, false} {
			if there, err := r.Next(t.Context()); there != want || err != nil {
				t.Errorf("there was one to refresh: %t, %v", there, err)
			}
		}
		if w, err := b.Workflow(t.Context(), mia, broken.ID); err != nil || !strings.Contains(w.Git.Problem, "an internal error") {
			t.Errorf("%+v, %v", w.Git, err)
		}
		if w, err := b.Workflow(t.Context(), mia, other.ID); err != nil || w.Git.Commit != secondCommit || w.Git.Problem != "" {
			t.Errorf("the one beside it: %+v, %v", w.Git, err)
		}
	})
}

// Neither does one of each of ten teams, which one account can make in a day.
func TestASlowHostHoldsUpNobodyElse(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		h := &hosts{asked: make(chan ids.Team, 100)}
		b.FollowGit(h, nil)
		const teams, most = 10, 2
		for i := range teams {
			slow := storetest.Owner(t, b.db, fmt.Sprint("slow", i))
			for range most + 1 { // one more than a team may
				b.toRefresh(slow, "slow")
			}
		}
		other := storetest.Owner(t, b.db, "mia")
		w := b.toRefresh(other, "quick")
		h.slow.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- (&workflows.Refresher{Workflows: b.Service, Log: slog.New(slog.DiscardHandler)}).Run(ctx)
		}()
		if !waittest.Until(func() bool {
			now, err := b.Workflow(t.Context(), other, w.ID)
			return err == nil && now.Git.Commit == secondCommit
		}) {
			t.Error("another team's workflow waits for the slow host")
		}
		for range teams * most {
			<-h.asked
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(h.asked) > 0 {
			t.Errorf("%d refreshes more than the teams may have were under way", len(h.asked))
		}
	})
}
