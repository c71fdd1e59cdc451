// Package sharedfolder keeps the records of attempts in folders that servers and the
// machines of a cluster both see: what is to be done, what servers want of it, what its
// shim reports, and what has become of it. Jobs on compute nodes often reach nothing
// else.
package sharedfolder

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
)

// Config says where attempts lie and how their jobs find themselves on their machines.
type Config struct {
	Folder  string // of all attempts; that of one is Folder/Key.Folder()
	Key     []byte // 32 bytes, the same on all servers
	JobName func(id, fence string) string
	Log     *slog.Logger
	Now     func() time.Time

	// Container stands before every command. In it {root}, {work}, {inputs}, {temp} and
	// {environment} are the folders of an attempt.
	Container []string
	// Hand takes what an attempt is to do, where the server starts attempts on its own
	// machine and hands that to each itself; nil: it is in the folder of the attempt.
	Hand func(executor.Spec)
	// HostVariable is the variable of a machine that has the cluster's name for it, and
	// GPUVariables are those that name the GPUs of a job.
	HostVariable string
	GPUVariables []string
}

// Records are the reconciler.Records of a folder.
type Records struct {
	config Config
	sealer *sealer

	mu         sync.Mutex
	attempts   map[string]*attempt // by id
	unreadable map[string]bool     // folders of which that was logged
}

var _ reconciler.Records = (*Records)(nil)

// New opens the records in a folder that is there.
func New(c Config) (*Records, error) {
	s, err := newSealer(c.Key)
	if err != nil {
		return nil, err
	}
	return &Records{config: c, sealer: s, attempts: map[string]*attempt{}, unreadable: map[string]bool{}}, nil
}

// attempt is what this server knows of one. Its lock is held while its files are read
// or written.
type attempt struct {
	sealer *sealer
	mu     sync.Mutex
	kept   reconciler.Attempt
	away   time.Duration // how long it may go on without a renewal
	folder job.Folder
	sealed []byte // its secrets

	local bool     // it runs on the server's own machine: no other server writes about it
	mark  job.Mark // of what the shim of a local one said last

	control job.Control
	renewed time.Time
	beats   int64
	badKey  string // that secrets could not be sealed for
	exit    json.RawMessage
	outcome *reconciler.Outcome
	checked time.Time // when what other servers write was last read
	added   time.Time // to what this server knows
}

// checkEvery is how often it is looked what other servers have written about an attempt.
const checkEvery = 2 * time.Second

func (r *Records) isLocal() bool { return r.config.Hand != nil }

func (r *Records) dir(id string) string { return filepath.Join(r.config.Folder, id) }

// Prepare makes the folder of an attempt, anew where nothing was submitted yet: an
// earlier task may have made it, with links to what only the server sees.
func (r *Records) Prepare(_ context.Context, k executor.Key) error {
	dir := r.dir(k.Folder())
	if _, err := job.Folder(dir).Job(); errors.Is(err, fs.ErrNotExist) {
		if err := folder.RemoveAll(dir); err != nil {
			return err
		}
		r.forget(k.Folder())
	}
	return errors.Join(os.MkdirAll(filepath.Join(dir, shim.WorkFolder), 0o700), os.MkdirAll(filepath.Join(dir, shim.TempFolder), 0o700))
}

// Add writes an attempt's files.
func (r *Records) Add(ctx context.Context, a reconciler.Attempt, s executor.Spec, notEnforced []string) error {
	if err := r.check(s); err != nil {
		return err
	}
	known := r.load(ctx, a.Job.ID)
	if known == nil {
		var err error
		if known, err = r.create(a, s, notEnforced); err != nil {
			return err
		}
	}
	if known.kept.Job.Fence != s.Fence {
		return fault.Conflict("this attempt was submitted before, under another fence")
	}
	return nil
}

func (r *Records) create(a reconciler.Attempt, s executor.Spec, notEnforced []string) (*attempt, error) {
	now := r.config.Now()
	made := &attempt{sealer: r.sealer, kept: a, away: s.AbandonAfter, folder: job.Folder(s.Dir), local: r.isLocal(), added: now}
	if s.AbandonAfter > 0 {
		made.control.Until, made.renewed = now.Add(s.AbandonAfter), now
	}
	j, err := r.order(s, a.SubmittedAt, notEnforced)
	if err == nil {
		err = made.setRunFence(a.RunFence)
	}
	if err == nil {
		err = made.folder.Create(j, made.control)
	}
	if err != nil {
		return nil, err
	}
	made.sealed = j.Sealed
	if r.isLocal() {
		r.config.Hand(s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts[a.Job.ID] = made
	return made, nil
}

// List reads the attempts of all servers on the folder.
func (r *Records) List(ctx context.Context) ([]reconciler.Attempt, error) {
	began := r.config.Now()
	entries, err := os.ReadDir(r.config.Folder)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	list := make([]reconciler.Attempt, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		there[e.Name()] = true
		if a := r.load(ctx, e.Name()); a != nil {
			list = append(list, r.read(ctx, a))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, a := range r.attempts {
		if !there[id] && a.added.Before(began) {
			delete(r.attempts, id) // another server has released it
		}
	}
	return list, nil
}

// load returns an attempt, and reads its files if another server has submitted it. It is
// nil where none was submitted, or nobody can read what.
func (r *Records) load(ctx context.Context, id string) *attempt {
	r.mu.Lock()
	known := r.attempts[id]
	r.mu.Unlock()
	if known != nil {
		return known
	}
	f := job.Folder(r.dir(id))
	j, about, err := aboutOf(f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is still being prepared
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || about.Key.Folder() != id {
		if !r.unreadable[id] {
			r.config.Log.Error("cannot read what an earlier server submitted", slog.String("attempt", id), slog.Any("error", err))
		}
		r.unreadable[id] = true
		return nil
	}
	delete(r.unreadable, id)
	if known = r.attempts[id]; known == nil {
		known = &attempt{
			sealer: r.sealer,
			kept:   reconciler.Attempt{Job: about.job(r.config.JobName(id, about.Fence), j.Launch.Grace), SubmittedAt: about.At, BlockedAt: blockedAt(f)},
			folder: f, away: about.Away, sealed: j.Sealed, local: r.isLocal(), added: r.config.Now(),
		}
		if known.local {
			r.readOthers(ctx, known) // of an earlier server, for the only time
		}
		r.attempts[id] = known
	}
	return known
}

// read reads what was written about an attempt since the last time.
func (r *Records) read(ctx context.Context, a *attempt) reconciler.Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.outcome == nil {
		r.hear(ctx, a)
	}
	if now := r.config.Now(); !a.local && a.outcome == nil && now.Sub(a.checked) >= checkEvery {
		a.checked = now
		r.readOthers(ctx, a)
	}
	return a.kept
}

// hear takes in what the shim of an attempt reports. The times are when this server
// hears it; a server that stands still while it reads hears it before. The last report
// says nothing of when the attempt was at work: it may be old. The lock of the attempt is
// held.
func (r *Records) hear(ctx context.Context, a *attempt) {
	now := r.config.Now()
	s, err := a.newState()
	if err != nil || s.Fence != a.kept.Job.Fence {
		return
	}
	if a.kept.BeganAt.IsZero() {
		a.kept.BeganAt = now
	}
	if s.Beats != a.beats && s.Exit == nil {
		a.beats, a.kept.HeardAt = s.Beats, now
	}
	a.kept.Host, a.kept.Usage = s.Host, s.Usage
	switch {
	case s.Exit != nil && a.exit == nil:
		a.exit, _ = json.Marshal(s.Exit)
		a.kept.EndedAt, a.kept.Reported = now, true
	case s.Exit != nil:
	case len(s.Key) > 0:
		if err := r.answer(a, s.Key); err != nil && string(s.Key) != a.badKey {
			a.badKey = string(s.Key)
			r.config.Log.ErrorContext(ctx, "cannot hand a job its secrets", slog.String("attempt", a.kept.Job.ID), slog.Any("error", err))
		}
	case a.kept.RunningAt.IsZero():
		a.kept.RunningAt = now
	}
}

// newState reads what the shim of an attempt says, which is empty where it has said nothing
// since the last time.
func (a *attempt) newState() (job.State, error) {
	if !a.local {
		return a.folder.State()
	}
	mark, err := a.folder.StateMark()
	if err != nil || mark == a.mark {
		return job.State{}, err
	}
	s, err := a.folder.State()
	if err == nil {
		a.mark = mark
	}
	return s, err
}

// answer hands a job its secrets, once: another key could be another's.
func (r *Records) answer(a *attempt, key []byte) error {
	if len(a.control.Secrets) > 0 {
		return nil
	}
	var secrets job.Secrets
	if err := r.sealer.open(a.kept.Job.Fence, a.sealed, &secrets); err != nil {
		return err
	}
	sealed, err := job.Seal(key, a.kept.Job.Fence, secrets)
	if err != nil {
		return err
	}
	return a.changeControl(0, func(c *job.Control) {
		if len(c.Secrets) == 0 { // no other server has answered
			c.Secrets = sealed
		}
	})
}

// End reads once more how an attempt ended.
func (r *Records) End(ctx context.Context, ref reconciler.Ref) (reconciler.End, error) {
	a := r.find(ref)
	if a == nil {
		return reconciler.End{}, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.outcome == nil {
		r.hear(ctx, a)
		if !a.local {
			r.readOthers(ctx, a)
		}
		if a.kept.BeganAt.IsZero() && a.folder.Begun() {
			a.kept.BeganAt = r.config.Now()
		}
	}
	return reconciler.End{Began: !a.kept.BeganAt.IsZero(), Exit: a.exit, Outcome: a.outcome}, nil
}

// find returns an attempt that this server knows, or nil.
func (r *Records) find(ref reconciler.Ref) *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.attempts[ref.ID]; a != nil && a.kept.Job.Fence == ref.Fence {
		return a
	}
	return nil
}

// Remove removes the folder of an attempt.
func (r *Records) Remove(ctx context.Context, ref reconciler.Ref) error {
	a := r.find(ref)
	if a == nil {
		return nil
	}
	if err := r.Allow(ctx, ref); err != nil {
		return err
	}
	if err := folder.RemoveAll(string(a.folder)); err != nil {
		return err
	}
	r.forget(ref.ID)
	return nil
}

func (r *Records) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, id)
}

// Log reads a log in its folder. What has a log runs: before that is known there is
// none.
func (r *Records) Log(_ context.Context, a reconciler.Attempt, offset int64) (executor.Log, error) {
	if a.RunningAt.IsZero() && !a.Decided {
		return executor.Log{ReadCloser: io.NopCloser(strings.NewReader("")), Offset: offset}, nil
	}
	return tasklog.Open(r.dir(a.Job.ID), offset, a.Decided)
}

// Marks read when a log was written.
func (r *Records) Marks(_ context.Context, ref reconciler.Ref, offset int64) ([]executor.LogMark, error) {
	return tasklog.Marks(r.dir(ref.ID), offset)
}

// Roots lists the images and environments that attempts in a folder see.
func Roots(dir string) (roots []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		_, about, aboutErr := aboutOf(job.Folder(filepath.Join(dir, e.Name())))
		if !errors.Is(aboutErr, fs.ErrNotExist) {
			err = errors.Join(err, aboutErr)
		}
		for _, root := range []string{about.Root, about.Environment} {
			if root != "" {
				roots = append(roots, root)
			}
		}
	}
	return roots, err
}
