package engine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/failures"
	"github.com/millrace/millrace/internal/engine/produced"
	"github.com/millrace/millrace/internal/runs"
)

// succeed stores an attempt's outputs. The bytes are safe before the journal says
// so, and hashed again on the way: what the shim saw is what is kept.
func (r *runner) succeed(ctx context.Context, t *attempt, exit *executor.Exit) error {
	if full, err := r.overStorage(ctx, t, exit); full || err != nil {
		return err
	}
	var kept []runs.Output
	for i, o := range exit.Outputs {
		out, err := r.storeOutput(ctx, t, i, o)
		if fault.Is(err, fault.KindInvalid) {
			r.failAttempt(ctx, t, failures.Failure{Code: lifecycle.OutputMismatch, Message: fmt.Sprintf("Node %s: %s changed while it was collected", t.node.ID, o.Path)})
			return nil
		}
		if err != nil {
			return err
		}
		kept = append(kept, out)
	}
	t.row.Outputs = len(kept)
	for _, o := range kept {
		r.produced.Add(o)
	}
	r.step.Outputs = append(r.step.Outputs, kept...)
	r.closeAttempt(t, runs.AttemptSucceeded, "")
	r.shardDone(t, true)
	return nil
}

// overStorage fails an attempt whose outputs exceed the team's storage. Their
// lengths count, as they will when they are kept.
func (r *runner) overStorage(ctx context.Context, t *attempt, exit *executor.Exit) (bool, error) {
	var sum int64
	for _, o := range exit.Outputs {
		sum += o.Size
	}
	if sum == 0 {
		return false, nil
	}
	left, err := r.e.Files.StorageLeft(ctx, r.run.Team)
	if err != nil || sum <= left {
		return false, err
	}
	r.failAttempt(ctx, t, failures.Failure{Code: lifecycle.DiskFull, Message: fmt.Sprintf(
		"Node %s made %s, and the team's plan has %s of storage left: delete files, or change to a larger plan", t.node.ID, produced.SizeText(sum), produced.SizeText(max(0, left)))})
	return true, nil
}

// storeOutput stores one output.
func (r *runner) storeOutput(ctx context.Context, t *attempt, i int, o executor.Output) (runs.Output, error) {
	out, err := produced.Store(ctx, r.e.Objects, o,
		func(port, name string) string { return r.outputKey(t, i, port, name) },
		func() (io.ReadCloser, error) { return r.e.Bytes.Collect(ctx, r.handle(t), o) })
	out.Node, out.Shard = t.node.ID, t.shard.index
	return out, err
}

func (r *runner) outputKey(t *attempt, i int, port, name string) string {
	return produced.Key(r.run.Team, r.run.ID, fmt.Sprintf("%s.%06d.%d-%s.%s.%06d", t.node.ID, t.shard.index, t.row.Number, t.row.Fence, port, i), name)
}

// finish ends a run in which nothing is left to do.
func (r *runner) finish(ctx context.Context) error {
	if n := r.plan.Failed(); n != nil {
		f := r.nodes[n.ID].failure
		if f.Code == "" {
			f = failures.Failure{Code: lifecycle.NodeFailedCode, Message: "Node " + n.ID + " failed"}
		}
		return r.endRun(ctx, runs.Ending{Status: f.Code.Ends(), Code: f.Code, Message: f.Message})
	}
	verified := runs.Event{Type: lifecycle.OutputVerified, At: r.e.Now(), Message: fmt.Sprintf("%d output files are kept and verified", r.produced.Count())}
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
