package engine

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/pipelines"
	"github.com/millrace/millrace/internal/runs/live"
	"github.com/millrace/millrace/internal/runs/reported"
)

// sampleEvery is how often usage is sampled.
const sampleEvery = time.Second

// look is a look at what an attempt has written and uses, beside the loop of its run.
type look struct {
	status   executor.Status // of the attempt, when it began
	log      logReader
	pipeline *pipelines.Follower // nil: it launches none that is followed
	stopped  bool                // the attempt was told to stop
	sample   bool                // what it uses, too

	percent     int // of the pipeline; -1: nothing is new
	usage       *executor.Usage
	done, total float64 // as the command reports; no total: it does not
	tail        string  // the last of the log of an attempt that did not succeed
	cause       string  // the task of its pipeline that failed, and its last lines
}

// lookAt looks at an attempt, unless that was done a moment ago. One that has ended is
// looked at in any case, and ends when that is done.
func (r *runner) lookAt(t *attempt, s executor.Status) {
	now := r.e.Now()
	switch {
	case t.looking:
		t.next = &s
		return
	case !s.Phase.Final() && now.Sub(t.lookedAt) < observeEvery:
		return
	}
	l := &look{status: s, log: r.newLogReader(t), pipeline: r.followerOf(t), stopped: t.stopped || r.stopping, percent: -1, sample: now.Sub(t.sampledAt) >= sampleEvery}
	t.looking, t.lookedAt, t.next = true, now, nil
	if l.sample {
		t.sampledAt = now
	}
	r.beside.do(r.beside.ctx, r.looks, l.take, func(ctx context.Context, err error) error { return r.looked(ctx, t, l, err) })
}

// looked takes in what was seen of an attempt.
func (r *runner) looked(ctx context.Context, t *attempt, l *look, err error) error {
	t.looking = false
	if err != nil || r.live[r.key(t)] != t {
		return err
	}
	r.addLog(t, &l.log)
	t.tail, t.cause = l.tail, l.cause
	r.addUsage(t, l)
	switch {
	case l.status.Phase.Final():
		return r.attemptOver(ctx, t, l.status)
	case t.next != nil:
		r.lookAt(t, *t.next)
	}
	return nil
}

// take reads all that is new. Nothing of the run's state may be used here.
func (l *look) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	final := l.status.Phase.Final()
	err := l.log.read(ctx, final)
	if l.pipeline != nil {
		percent, failed := l.pipeline.Look(ctx, l.log.task, final, l.stopped)
		l.percent, err = percent, errors.Join(err, failed)
	}
	if final && l.status.Reason != executor.ExitedZero {
		l.tail = l.log.tail(ctx)
	}
	if l.pipeline != nil && err == nil && final && l.status.Reason == executor.ExitedNonZero {
		l.cause, err = l.pipeline.Cause(ctx, l.tail)
	}
	if !l.sample {
		return err
	}
	e := l.log.e
	if m, ok := e.Driver.(executor.Meter); ok {
		if u, err := m.Usage(ctx, l.log.task); err == nil { // else it has only just begun, or has ended
			l.usage = &u
		}
	}
	if done, total, ok := e.Bytes.Progress(ctx, l.log.task); ok {
		l.done, l.total = done, total
	}
	return err
}

// followerOf follows the pipeline that an attempt launches. Those of the items of a step
// are in its logs alone, and those of a step with secrets, too: nothing is masked in what
// they report.
func (r *runner) followerOf(t *attempt) *pipelines.Follower {
	if t.node.launches == "" || t.node.Scatter != nil || len(t.node.Secrets) > 0 || r.e.Pipelines == nil {
		return nil
	}
	if t.pipeline == nil {
		of := reported.Launched{Run: r.run.ID, Fence: r.run.Fence, Step: t.node.ID, Attempt: t.row.Number, Engine: t.node.launches}
		t.pipeline = pipelines.Follow(r.e.Pipelines, of, r.e.Bytes, r.e.Now)
	}
	return t.pipeline
}

// addUsage takes in what an attempt uses, and how far it reports to have come.
func (r *runner) addUsage(t *attempt, l *look) {
	if l.percent >= 0 {
		t.progress = max(t.progress, float64(l.percent)/100)
		r.e.Changed(r.run.ID)
	}
	if l.total > 0 {
		t.done, t.total = l.done, l.total
		t.progress = max(t.progress, l.done/l.total)
	}
	if l.usage == nil {
		return
	}
	before := t.usage
	t.usage = l.usage
	if before != nil && l.usage.At.After(before.At) {
		t.cpuPercent = max(0, 100*float64(l.usage.CPU-before.CPU)/float64(l.usage.At.Sub(before.At)))
	}
}

// reportUsage says what the tasks of the run use, by the last samples.
func (r *runner) reportUsage() {
	now := r.e.Now()
	if len(r.live) == 0 || now.Sub(r.sampledAt) < sampleEvery {
		return
	}
	r.sampledAt = now
	sample := live.Usage{At: now}
	for _, t := range r.live {
		if t.usage != nil && !t.ended {
			sample.MemBytes += t.usage.Memory
			sample.CPUPercent += t.cpuPercent
		}
		if t.total > 0 {
			sample.Node, sample.NodeName = t.node.ID, t.node.Name
			sample.Step = t.node.Name + ": " + strconv.FormatFloat(t.done, 'f', -1, 64) + "/" + strconv.FormatFloat(t.total, 'f', -1, 64)
		}
	}
	r.e.Sampled(r.run.ID, sample)
}

// percent is how far the run has come; the last percent is the verified end.
func (r *runner) percent() int {
	done, total := r.plan.Progress()
	if total == 0 {
		return 0
	}
	share := float64(done)
	for _, n := range r.open {
		share += float64(n.done) / float64(max(1, n.total))
	}
	for _, t := range r.live {
		share += t.progress / float64(max(1, t.node.total))
	}
	return int(share * 99 / float64(total))
}

// lastLookTime is how long what was written last is waited for, where nothing else of the
// attempt is.
const lastLookTime = 2 * time.Second

// lastLooks takes what attempts wrote before they were lost.
func (r *runner) lastLooks(ctx context.Context, known map[executor.Key]executor.Status) error {
	left := 0
	for key, t := range r.live {
		s, ok := known[key]
		if !ok || s.Fence != t.row.Fence {
			continue
		}
		left++
		l := &look{status: s, log: r.newLogReader(t), pipeline: r.followerOf(t)}
		r.beside.do(r.beside.ctx, r.looks, l.take, func(ctx context.Context, err error) error {
			left--
			if err == nil {
				r.addLog(t, &l.log)
			}
			r.e.logError(ctx, "cannot keep a log", err)
			return nil
		})
	}
	enough := time.NewTimer(lastLookTime)
	defer enough.Stop()
	for left > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-enough.C:
			return nil
		case <-r.beside.ready:
			if err := r.beside.handleResults(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
