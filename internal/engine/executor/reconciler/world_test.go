package reconciler_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/remote"
	"github.com/millrace/millrace/internal/engine/executor/sharedfolder"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	shimremote "github.com/millrace/millrace/internal/engine/executor/shim/remote"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

const (
	lag         = 30 * time.Second
	giveUp      = time.Hour
	refusalWait = 10 * time.Minute
)

// cluster is one that does what a test says.
type cluster struct {
	jobs     map[string]reconciler.JobStatus
	accounts map[string]reconciler.JobStatus
	problem  error // of all calls

	starts, ends, signals, forgotten, asked []string

	refusal error // of starts
}

func (c *cluster) Capabilities(context.Context) executor.Capabilities {
	return executor.Capabilities{Ready: true, GPU: 1, NoImages: "no images", NoEnvironments: "no environments"}
}

func (c *cluster) Start(_ context.Context, j reconciler.Job) (string, error) {
	if c.refusal != nil {
		return "", c.refusal
	}
	c.starts = append(c.starts, j.Name)
	return "7", nil
}

func (c *cluster) Jobs(context.Context) (reconciler.Listing, error) {
	return reconciler.Listing{Jobs: maps.Clone(c.jobs)}, c.problem
}

func (c *cluster) End(_ context.Context, name string) error {
	c.ends = append(c.ends, name)
	return c.problem
}

func (c *cluster) Forget(_ context.Context, name string) error {
	c.forgotten = append(c.forgotten, name)
	return nil
}

func (c *cluster) Signal(_ context.Context, name string) error {
	c.signals = append(c.signals, name)
	return nil
}

func (c *cluster) Ended(_ context.Context, names []string, _ time.Time) (map[string]reconciler.JobStatus, error) {
	c.asked = append(c.asked, names...)
	return c.accounts, nil
}

func (c *cluster) Changed() <-chan struct{} { return nil }

// world is a cluster with its clock, the records of its attempts, and a server.
type world struct {
	*cluster
	*reconciler.Driver
	t       *testing.T
	now     time.Time
	dir     string // of attempts; empty: they have rows
	records func() reconciler.Records
	db      *store.DB
	permit  *drivertest.Lease // of who submits attempts

	sameMachine bool // attempts of servers that are opened run on it
}

// eachRecords runs a test with the records of either kind.
func eachRecords(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, *world){"rows": withRows, "a folder": withFolder} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{cluster: &cluster{jobs: map[string]reconciler.JobStatus{}}, t: t, permit: &drivertest.Lease{}, now: time.Unix(1_700_000_000, 0).UTC()}
			open(t, w)
			w.Driver = w.server()
			test(t, w)
		})
	}
}

func withFolder(t *testing.T, w *world) {
	w.dir = t.TempDir()
	w.records = func() reconciler.Records {
		r, err := sharedfolder.New(sharedfolder.Config{Folder: w.dir, Key: make([]byte, 32), JobName: jobName, Log: slog.New(slog.DiscardHandler), Now: w.clock})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func withRows(t *testing.T, w *world) {
	w.db = storetest.Open(t, storetest.SQLite(t))
	keep, err := disk.Open(t.Context(), filepath.Join(t.TempDir(), "objects"), disk.NewSigner([]byte("0123456789abcdef")), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	w.records = func() reconciler.Records {
		return remote.NewRecords(remote.Config{Scope: "test", Store: w.db, Pieces: w.db, Objects: objects.Kept{Store: keep, Presigner: keep}, Log: slog.New(slog.DiscardHandler)})
	}
}

func jobName(id, fence string) string { return id + "-" + fence }

func (w *world) clock() time.Time { return w.now }

func (w *world) later(d time.Duration) { w.now = w.now.Add(d) }

// server is another one of the world, which does nothing by itself.
func (w *world) server() *reconciler.Driver {
	w.t.Helper()
	d, err := reconciler.OpenStill(w.t.Context(), reconciler.Config{
		Name: "test", Records: w.records(), JobName: jobName, Log: slog.New(slog.DiscardHandler), Now: w.clock, Words: reconciler.Words{Cluster: "Slurm"},
		Lag: lag, GiveUpAfter: giveUp, RefusalWait: refusalWait, SameMachine: w.sameMachine,
	}, w.cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// look has a server look once, and start what is to be started.
func (w *world) look() {
	w.t.Helper()
	if err := w.Look(w.t.Context()); err != nil && !errors.Is(err, w.problem) {
		w.t.Fatal(err)
	}
	w.StartWaiting(w.t.Context())
}

// lookFor looks every second for a while.
func (w *world) lookFor(d time.Duration) {
	w.t.Helper()
	for range d / time.Second {
		w.later(time.Second)
		w.look()
	}
}

// submit submits an attempt that the cluster has taken.
func (w *world) submit() executor.Handle {
	w.t.Helper()
	s := executor.Spec{Key: executor.Key{Run: "run_1", Node: "n", Attempt: 1}, Fence: "f", Interpreter: "sh", Command: "true", AbandonAfter: time.Hour}
	if w.dir != "" {
		s.Dir = filepath.Join(w.dir, s.Key.Folder())
	}
	if err := w.Prepare(w.t.Context(), s.Key); err != nil {
		w.t.Fatal(err)
	}
	h, err := w.Submit(w.t.Context(), w.permit, s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.StartWaiting(w.t.Context())
	return h
}

// says has the cluster say this of the job of an attempt.
func (w *world) says(h executor.Handle, s reconciler.JobStatus) {
	s.Number = "7"
	w.jobs[h.ID] = s
}

const session = "a session of some fifty characters that nobody guesses"

// begins has a job begin with an attempt.
func (w *world) begins(h executor.Handle) {
	w.t.Helper()
	var err error
	if w.dir != "" {
		err = w.folder(h).Claim(h.Fence)
	} else {
		_, err = w.db.BeginAttempt(w.t.Context(), h.Key.Folder(), h.Fence, session, w.now)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) folder(h executor.Handle) job.Folder {
	return job.Folder(filepath.Join(w.dir, h.Key.Folder()))
}

// reports has the shim of an attempt say that its command runs, or how it has ended.
func (w *world) reports(h executor.Handle, beat int64, exit *executor.Exit) {
	w.t.Helper()
	if w.dir != "" {
		if err := w.folder(h).WriteState(job.State{Fence: h.Fence, Beats: beat, Host: "node7", Exit: exit}); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	r := attempts.Report{Running: exit == nil}
	r.State, _ = json.Marshal(shimremote.State{Host: "node7"})
	if exit != nil {
		r.Exit, _ = json.Marshal(exit)
	}
	if _, err := w.db.ReportAttempt(w.t.Context(), h.Key.Folder(), session, r, w.now); err != nil {
		w.t.Fatal(err)
	}
}

// runs has a job begin, and its command run.
func (w *world) runs(h executor.Handle) {
	w.t.Helper()
	w.begins(h)
	w.reports(h, 1, nil)
	w.says(h, reconciler.JobStatus{Node: "node7"})
	w.look()
}

// seen is how a server sees the attempt.
func (w *world) seen() executor.Status {
	w.t.Helper()
	all, err := w.Snapshot(w.t.Context())
	if err != nil || len(all) != 1 {
		w.t.Fatalf("%d attempts, %v", len(all), err)
	}
	return all[0]
}

// want checks how a server sees the attempt.
func (w *world) want(when string, p executor.Phase, r executor.Reason, words string) executor.Status {
	w.t.Helper()
	s := w.seen()
	if s.Phase != p || s.Reason != r || !strings.Contains(s.Detail, words) {
		w.t.Errorf("%s: %s, %s, %q", when, s.Phase, s.Reason, s.Detail)
	}
	return s
}
