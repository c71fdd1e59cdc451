package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	shimremote "github.com/millrace/millrace/internal/engine/executor/shim/remote"
)

// Config says how attempts are carried out whose shims report to servers.
type Config struct {
	Name    string // of the driver, in handles
	Cluster string // what people call it
	Scope   string // who has the same one sees the same attempts
	Store   attempts.Submitted
	Pieces  attempts.Pieces // of the same
	Objects attempts.Objects
	Key     []byte                  // of tickets, the same on all servers
	Hints   <-chan struct{}         // something was reported
	Inspect func(job string) string // the command with which a person looks at a job; nil: there is none
	Log     *slog.Logger
	Now     func() time.Time

	Lag, ImageWait, GiveUpAfter time.Duration // as of reconciler.Config
}

const (
	lookEvery = time.Second
	rowsLive  = 300 * time.Millisecond // how old the rows in memory may be
)

// Open follows the attempts of a scope until Close, or until ctx ends.
func Open(ctx context.Context, c Config, cluster reconciler.Cluster) (*reconciler.Driver, error) {
	config := reconciler.Config{
		Name: c.Name, Records: NewRecords(c), JobName: jobName, Hints: c.Hints, Log: c.Log, Now: c.Now,
		Ticket: func(id, fence string) string { return attempts.Ticket(c.Key, id, fence) },
		Words: reconciler.Words{
			Cluster: c.Cluster,
			NoProgram: func(reconciler.Job) string {
				return "the image has no program of that name: set `interpreter` to one that it has, such as sh"
			},
		},
		LookEvery: lookEvery, MaxAge: rowsLive, Idempotent: true, Lag: c.Lag, ImageWait: c.ImageWait, GiveUpAfter: c.GiveUpAfter,
	}
	if c.Inspect != nil {
		config.Inspect = func(job string, _ bool) string { return c.Inspect(job) }
	}
	return reconciler.Open(ctx, config, cluster)
}

func jobName(id, fence string) string {
	sum := sha256.Sum256([]byte(id + "\x00" + fence))
	return "millrace-" + hex.EncodeToString(sum[:12])
}

// rows are rows of the database, and objects.
type rows struct{ config Config }

// NewRecords returns the records of attempts whose shims report to servers.
func NewRecords(c Config) reconciler.Records { return &rows{c} }

// about is what the next server has to know of an attempt.
type about struct {
	Job reconciler.Job `json:"job"` // without its ticket
}

// Prepare has nothing to do: the folders are made where the attempt runs.
func (r *rows) Prepare(context.Context, executor.Key) error { return nil }

func (r *rows) Add(ctx context.Context, a reconciler.Attempt, s executor.Spec, notEnforced []string) error {
	order, err := OrderOf(s, notEnforced)
	if err != nil {
		return err
	}
	text, err := json.Marshal(about{a.Job})
	if err != nil {
		return err
	}
	row := attempts.Attempt{ID: a.Job.ID, Run: a.Job.Key.Run, Scope: r.config.Scope, Fence: a.Job.Fence, RunFence: a.RunFence, About: text, SubmittedAt: a.SubmittedAt}
	return r.config.Store.AddAttempt(ctx, row, order)
}

func (r *rows) List(ctx context.Context) ([]reconciler.Attempt, error) {
	found, err := r.config.Store.AttemptsIn(ctx, r.config.Scope)
	if err != nil {
		return nil, err
	}
	list := make([]reconciler.Attempt, 0, len(found))
	for _, row := range found {
		var known about
		if err := json.Unmarshal(row.About, &known); err != nil {
			r.config.Log.ErrorContext(ctx, "cannot read what an earlier server submitted", slog.String("attempt", row.ID), slog.Any("error", err))
			continue
		}
		list = append(list, attemptOf(row, known.Job))
	}
	return list, nil
}

func attemptOf(row attempts.Attempt, j reconciler.Job) reconciler.Attempt {
	var s shimremote.State
	if row.State != nil {
		_ = json.Unmarshal(row.State, &s) // what cannot be read says nothing
	}
	return reconciler.Attempt{
		Job: j, RunFence: row.RunFence, SubmittedAt: row.SubmittedAt, BlockedAt: row.SubmittedAt, BeganAt: row.BeganAt, RunningAt: row.RunningAt, HeardAt: row.HeardAt, EndedAt: row.EndedAt,
		Stopping: row.Stopping, Grace: row.Grace, Host: s.Host, Usage: s.Usage, Progress: s.Progress, LogSize: row.LogSize, Reported: row.Said, Decided: row.Decided,
	}
}

func (r *rows) End(ctx context.Context, ref reconciler.Ref) (e reconciler.End, err error) {
	kept, err := r.config.Pieces.AttemptEnd(ctx, ref.ID, ref.Fence)
	if err != nil {
		return e, err
	}
	e.Exit = kept.Exit
	if o := (&reconciler.Outcome{}); kept.Outcome != nil && json.Unmarshal(kept.Outcome, o) == nil {
		e.Outcome = o
	}
	return e, nil
}

// Allow leaves it to the statements that change rows.
func (r *rows) Allow(context.Context, reconciler.Ref) error { return nil }

func (r *rows) Renew(ctx context.Context, list []reconciler.Ref) error {
	all := make([]attempts.Ref, len(list))
	for i, ref := range list {
		all[i] = attempts.Ref(ref)
	}
	return r.config.Store.RenewAttempts(ctx, all)
}

func (r *rows) Stop(ctx context.Context, ref reconciler.Ref, grace time.Duration) error {
	return r.config.Store.StopAttempt(ctx, attempts.Ref(ref), grace)
}

// Block has nothing to do: a job is given up by when its attempt was submitted, for it
// waits for room from then on.
func (r *rows) Block(context.Context, reconciler.Ref, bool) error { return nil }

func (r *rows) Conclude(ctx context.Context, ref reconciler.Ref, o reconciler.Outcome) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return r.config.Store.ConcludeAttempt(ctx, attempts.Ref(ref), text)
}

func (r *rows) Remove(ctx context.Context, ref reconciler.Ref) error {
	if _, err := r.config.Objects.DeletePrefix(ctx, attempts.ObjectPrefix(ref.ID)); err != nil {
		return err
	}
	return r.config.Store.RemoveAttempt(ctx, attempts.Ref(ref))
}
