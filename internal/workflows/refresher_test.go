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

// hosts are several, of which the slow one does not answer once it is told so.
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

func (h *hosts) File(_ context.Context, _ ids.Team, _ source.Source, commit string, _ workflows.FileWanted) (string, []byte, error) {
	return "millrace.yaml", fmt.Appendf(nil, "nodes:\n- id: a\n  command: echo %s\n", commit), nil
}

// Neither does one of each of ten teams, which one account can make in a day.
func TestASlowHostHoldsUpNobodyElse(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		h := &hosts{asked: make(chan ids.Team, 100)}
		b.FollowGit(h, nil)
		call := func(as access.Caller, host string) workflows.Workflow {
			t.Helper()
			w, err := b.Create(t.Context(), as, workflows.New{Git: &source.Source{Git: "https://" + host + ".example/lab/x.git", Ref: "main"}})
			if err != nil {
				t.Fatal(err)
			}
			trigger := schedules.Trigger{ID: ids.NewTrigger(), Team: w.Team, Workflow: w.ID, TokenHash: string(w.ID), Action: schedules.ActionRefresh, CreatedBy: as.User, CreatedAt: b.clock.Now()}
			if err := b.db.InsertTrigger(t.Context(), trigger, 20, nil); err != nil {
				t.Fatal(err)
			}
			if err := b.db.AskForRefresh(t.Context(), trigger, nil, b.clock.Now()); err != nil {
				t.Fatal(err)
			}
			b.clock.Pass(time.Millisecond) // first come
			return w
		}
		const teams, most = 10, 2
		for i := range teams {
			slow := storetest.Owner(t, b.db, fmt.Sprint("slow", i))
			for range most + 1 { // one more than a team may
				call(slow, "slow")
			}
		}
		other := storetest.Owner(t, b.db, "mia")
		w := call(other, "quick")
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
