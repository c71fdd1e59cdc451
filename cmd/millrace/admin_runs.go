package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/lease"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store"
)

// runsCommand looks after runs that have not ended, beside the servers that
// execute them.
type runsCommand struct {
	List    runsList    `cmd:"" help:"List active runs of all teams, and why queued ones wait."`
	Why     runsWhy     `cmd:"" help:"Show why a run waits, or which worker executes it."`
	Requeue runsRequeue `cmd:"" help:"Take a running run from its worker and return it to the queue. Completed steps are kept."`
	End     runsEnd     `cmd:"" help:"Cancel a run."`
}

type runsList struct {
	databaseSettings `embed:""`
	Limit            int `default:"1000" help:"Maximum number to list, oldest first."`
}

// Run prints a table.
func (c *runsList) Run(w console) error {
	if c.Limit < 1 || c.Limit > 100000 {
		return errors.New("--limit must be between 1 and 100000")
	}
	return c.Beside(w.ctx, func(db *store.DB) error {
		list, err := db.OpenRuns(w.ctx, c.Limit)
		if err != nil {
			return err
		}
		waits, err := db.WhyQueued(w.ctx, list, db.Now())
		if err != nil {
			return err
		}
		t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ID\tTEAM\tWORKFLOW\tSTATUS\tVCPU\tSINCE\tWAITS FOR\tWORKER")
		for _, r := range list {
			since, reason := r.CreatedAt, "-"
			if r.Status == lifecycle.Running {
				since = r.StartedAt
			}
			if why := waits[r.ID]; why != nil {
				reason = string(why.Reason)
			}
			fmt.Fprintf(t, "%s\t%s\t%q\t%s\t%d\t%s\t%s\t%s\n", r.ID, r.Team, r.WorkflowName, r.Status, r.Size.VCPU, since.Format(time.RFC3339), reason, r.Worker)
		}
		return t.Flush()
	})
}

type runsWhy struct {
	databaseSettings `embed:""`
	ID               string `arg:"" help:"ID of the run."`
}

// Run says it in a sentence.
func (c *runsWhy) Run(w console) error {
	return c.Beside(w.ctx, func(db *store.DB) error {
		r, err := db.OpenRun(w.ctx, ids.Run(c.ID))
		if err != nil {
			return err
		}
		if r.Status == lifecycle.Running {
			_, err = fmt.Fprintf(w.out, "%s runs since %s on %s\n", r.ID, r.StartedAt.Format(time.RFC3339), r.Worker)
			return err
		}
		why, err := db.WhyQueued(w.ctx, []store.OpenRun{r}, db.Now())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w.out, "%s waits since %s (%s): %s\n", r.ID, r.CreatedAt.Format(time.RFC3339), why[r.ID].Reason, why[r.ID].Message)
		return err
	})
}

// lettingGo is how long a worker takes at most to find out that it has lost a run, to
// notice that nobody wants its tasks, and to end them.
const lettingGo = lease.Renewal + 7*time.Second

// seize takes a run from its worker and waits until its tasks have ended. If this
// process is killed meanwhile, workers take the run over and start its tasks again.
func seize(w console, db *store.DB, id ids.Run) (fence int64, err error) {
	fence, err = db.SeizeRun(w.ctx, id, "operator "+rand.Text(), db.Now(), db.Now().Add(2*lettingGo))
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(w.errOut, "waiting %s until its worker has stopped the run's tasks\n", lettingGo)
	select {
	case <-w.ctx.Done():
		return 0, w.ctx.Err()
	case <-time.After(lettingGo):
		return fence, nil
	}
}

type runsRequeue struct {
	databaseSettings `embed:""`
	ID               string `arg:"" help:"ID of the run."`
}

// Run takes about a quarter of a minute.
func (c *runsRequeue) Run(w console) error {
	return c.Beside(w.ctx, func(db *store.DB) error {
		r, err := db.OpenRun(w.ctx, ids.Run(c.ID))
		if err != nil {
			return err
		}
		if r.Status == lifecycle.Queued {
			return errors.New("the run is already in the queue")
		}
		fence, err := seize(w, db, r.ID)
		if err != nil {
			return err
		}
		w = w.audited("operator.run_requeued", string(r.Team), c.ID)
		if err := db.ReturnRun(w.ctx, r.ID, fence, db.Now()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(w.out, "%s waits in the queue\n", r.ID)
		return err
	})
}

type runsEnd struct {
	databaseSettings `embed:""`
	ID               string `arg:"" help:"ID of the run."`
	Force            bool   `help:"Take it from its worker first, if the worker doesn't respond."`
}

// Run asks the worker to cancel it, or interrupts it.
func (c *runsEnd) Run(w console) error {
	return c.Beside(w.ctx, func(db *store.DB) error {
		r, err := db.OpenRun(w.ctx, ids.Run(c.ID))
		if err != nil {
			return err
		}
		if c.Force && r.Status == lifecycle.Running {
			fence, err := seize(w, db, r.ID)
			if err != nil {
				return err
			}
			w = w.audited("operator.run_ended", string(r.Team), c.ID)
			e := runs.Ending{Status: lifecycle.Interrupted, Code: lifecycle.Internal, Message: "the operator ended the run"}
			if err := db.EndRun(w.ctx, r.ID, fence, e, db.Now()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(w.out, "%s is interrupted\n", r.ID)
			return err
		}
		w = w.audited("operator.run_ended", string(r.Team), c.ID)
		status, err := db.CancelRun(w.ctx, r.Team, r.ID, runs.Starter{Type: "operator", Name: "the operator"}, db.Now())
		if err != nil {
			return err
		}
		if status == lifecycle.Cancelled {
			_, err = fmt.Fprintf(w.out, "%s is cancelled\n", r.ID)
			return err
		}
		_, err = fmt.Fprintf(w.out, "%s is being cancelled by its worker\n", r.ID)
		return err
	})
}
