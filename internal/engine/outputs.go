package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/failures"
	"github.com/millrace/millrace/internal/engine/inputs"
	"github.com/millrace/millrace/internal/engine/produced"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

const (
	// maxUnstored is how many attempts of a run may have outputs that are not stored
	// before the run starts no more: they take up space on the executor.
	maxUnstored = 16
	// defaultMaxOutputs is how many outputs a run may have: empty ones count as no storage,
	// and yet take up a file on the disk, a row, and the memory of whoever works on the run.
	defaultMaxOutputs = 500_000
)

// amount is how much there is of outputs.
type amount struct {
	files int
	bytes int64
}

// outputProgress is an object store that notes when there last was something to store, or
// bytes were taken.
type outputProgress struct {
	Objects
	now  func() time.Time
	last atomic.Int64
}

func (p *outputProgress) note() { p.last.Store(p.now().UnixNano()) }

// idleSince is when there last was progress.
func (p *outputProgress) idleSince() time.Time { return time.Unix(0, p.last.Load()) }

// Put notes when bytes are taken.
func (p *outputProgress) Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (files.Blob, error) {
	return p.Objects.Put(ctx, key, contentType, progressReader{r, p.note}, size)
}

// storedOutputs is what became of the outputs of an attempt.
type storedOutputs struct {
	kept    []runs.Output
	changed string // the path of an output that is not what it was when the command ended
}

// progressReader calls a function whenever it is read.
type progressReader struct {
	io.Reader
	read func()
}

func (r progressReader) Read(p []byte) (int, error) {
	r.read()
	return r.Reader.Read(p)
}

// storeOutputs has the outputs of an attempt stored that has succeeded. The attempt ends
// when they are.
func (r *runner) storeOutputs(ctx context.Context, t *attempt, exit *executor.Exit) error {
	t.ended = true
	var size int64
	for _, o := range exit.Outputs {
		size += o.Size // as it will count when it is kept
	}
	left, err := r.storageLeft(ctx, size)
	switch {
	case err != nil:
		return err
	case size > left:
		r.refuseOutputs(t, exit, failures.Failure{Code: lifecycle.DiskFull, Message: fmt.Sprintf(
			"%s made %s, and the team's plan has %s of storage left: delete files, or change to a larger plan", t.node.Title(), produced.SizeText(size), produced.SizeText(max(0, left)))})
		return nil
	case len(exit.Outputs) > r.outputsLeft():
		r.refuseOutputs(t, exit, failures.Failure{Code: lifecycle.OutputMissing, Message: fmt.Sprintf(
			"%s: its outputs can't be stored: the run would have more than %d: put several into one, such as a folder or an archive", t.node.Title(), r.e.MaxOutputs)})
		return nil
	}
	r.unstored[t] = amount{len(exit.Outputs), size}
	r.outputs.note()
	task, key, into, stored, suspected := r.handle(t), r.outputKeys(t), r.outputs, &storedOutputs{}, r.run.Crashes > 0
	r.beside.do(r.beside.ctx, r.stores,
		func(ctx context.Context) error {
			return r.e.watchMemory(ctx, task.Key.Run, suspected, func() error { return stored.store(ctx, r.e.Bytes, into, task, exit, key) })
		},
		func(ctx context.Context, err error) error { return r.outputsStored(ctx, t, exit, stored, err) })
	return nil
}

// refuseOutputs ends an attempt whose outputs cannot be kept.
func (r *runner) refuseOutputs(t *attempt, exit *executor.Exit, why failures.Failure) {
	r.recordExit(t, exit)
	r.failAttempt(t, why)
	r.endedHandles = append(r.endedHandles, r.handle(t))
}

// storageLeft returns how many more bytes the team may keep, less what this run is
// storing. Empty outputs need none.
func (r *runner) storageLeft(ctx context.Context, size int64) (int64, error) {
	if size == 0 {
		return 0, nil
	}
	left, err := r.e.Files.StorageLeft(ctx, r.run.Team)
	for _, others := range r.unstored {
		left -= others.bytes
	}
	return left, err
}

// outputsLeft is how many more outputs the run may have.
func (r *runner) outputsLeft() int {
	left := r.e.MaxOutputs - r.produced.Count()
	for _, others := range r.unstored {
		left -= others.files
	}
	return max(0, left)
}

// store stores the outputs of an attempt, one after the other. The bytes are safe before
// the journal says so, and hashed again on the way: what the shim saw is what is kept.
func (s *storedOutputs) store(ctx context.Context, from executor.Files, into produced.Keeper, task executor.Handle, exit *executor.Exit, key func(i int, port, name string) string) error {
	for i, o := range exit.Outputs {
		out, err := produced.Store(ctx, into, o,
			func(port, name string) string { return key(i, port, name) },
			func() (io.ReadCloser, error) { return from.Collect(ctx, task, o) })
		if fault.Is(err, fault.KindInvalid) {
			s.changed = o.Path
			return nil
		}
		if err != nil {
			return err
		}
		out.Node, out.Shard = task.Key.Node, task.Key.Shard
		s.kept = append(s.kept, out)
	}
	return nil
}

// outputsStored ends an attempt whose outputs are stored, or cannot be kept.
func (r *runner) outputsStored(ctx context.Context, t *attempt, exit *executor.Exit, s *storedOutputs, err error) error {
	full := inputs.CodeOf(err) == lifecycle.DiskFull
	if err != nil && !full || r.live[r.key(t)] != t {
		return err
	}
	delete(r.unstored, t)
	r.recordExit(t, exit)
	switch {
	case full: // what the attempt made goes: kept, it would be in the way of its own copy each time
		r.attemptWithoutSpace(ctx, t)
	case s.changed != "":
		r.failAttempt(t, failures.Failure{Code: lifecycle.OutputMismatch, Message: fmt.Sprintf("%s: %s changed while it was collected", t.node.Title(), s.changed)})
	default:
		r.succeed(t, s.kept)
	}
	r.endedHandles = append(r.endedHandles, r.handle(t))
	return nil
}

// succeed ends an attempt with the outputs that are kept of it.
func (r *runner) succeed(t *attempt, kept []runs.Output) {
	t.row.Outputs = len(kept)
	for _, o := range kept {
		r.produced.Add(o)
	}
	r.step.Outputs = append(r.step.Outputs, kept...)
	r.closeAttempt(t, runs.AttemptSucceeded, "")
	r.shardDone(t, true)
}

// outputKeys returns the keys of an attempt's outputs by their number, port and name.
func (r *runner) outputKeys(t *attempt) func(i int, port, name string) string {
	team, run := r.run.Team, r.run.ID
	prefix := fmt.Sprintf("%s.%06d.%d-%s", t.node.ID, t.shard.index, t.row.Number, t.row.Fence)
	return func(i int, port, name string) string {
		return produced.Key(team, run, fmt.Sprintf("%s.%s.%06d", prefix, port, i), name)
	}
}

// finish ends a run in which nothing is left to do.
func (r *runner) finish(ctx context.Context) error {
	if n := r.plan.Failed(); n != nil {
		f := r.nodes[n.ID].failure
		if f.Code == "" {
			f = failures.Failure{Code: lifecycle.NodeFailedCode, Message: n.Title() + " failed"}
		}
		if lines := r.nodes[n.ID].lines; lines != "" {
			f.Message += "\n\n" + lines
		}
		return r.endRun(ctx, runs.Ending{Status: f.Code.Ends(), Code: f.Code, Message: f.Message})
	}
	verified := runs.Event{Type: lifecycle.OutputVerified, At: r.e.Now(), Message: fmt.Sprintf("%d output files are stored and verified", r.produced.Count())}
	return r.endRun(ctx, runs.Ending{Status: lifecycle.Completed, Message: "the run has completed"}, verified)
}

// readFull reads until the buffer is full or the text ends.
func readFull(r io.Reader, text []byte) (int, error) {
	n, err := io.ReadFull(r, text)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
