package engine

import (
	"context"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/launched"
	"github.com/millrace/millrace/internal/runs/live"
	"github.com/millrace/millrace/internal/runs/reported"
)

// sampleEvery is how often usage is sampled.
const sampleEvery = time.Second

// usageSample is a sample of what an attempt has used.
type usageSample struct {
	cpu time.Duration
	at  time.Time
}

// sampleUsage samples what the tasks of a run use, and how far they report to have
// come.
func (r *runner) sampleUsage(ctx context.Context) {
	now := r.e.Now()
	if len(r.live) == 0 || now.Sub(r.sampledAt) < sampleEvery {
		return
	}
	r.sampledAt = now
	sample := live.Usage{At: now}
	meter, measured := r.e.Driver.(executor.Meter)
	for _, t := range r.live {
		if measured {
			r.measure(ctx, meter, t, &sample)
		}
		if done, total, ok := r.e.Bytes.Progress(ctx, r.handle(t)); ok {
			t.progress = max(t.progress, done/total)
			sample.Node, sample.NodeName = t.node.ID, t.node.Name
			sample.Step = t.node.Name + ": " + strconv.FormatFloat(done, 'f', -1, 64) + "/" + strconv.FormatFloat(total, 'f', -1, 64)
		}
	}
	r.e.Sampled(r.run.ID, sample)
}

func (r *runner) measure(ctx context.Context, m executor.Meter, t *attempt, sample *live.Usage) {
	u, err := m.Usage(ctx, t.handle)
	if err != nil {
		return // it has only just begun, or has ended
	}
	sample.MemBytes += u.Memory
	if took := u.At.Sub(t.lastUsage.at); !t.lastUsage.at.IsZero() && took > 0 {
		t.cpuPercent = 100 * float64(u.CPU-t.lastUsage.cpu) / float64(took)
	}
	if u.At.After(t.lastUsage.at) {
		t.lastUsage = usageSample{u.CPU, u.At}
	}
	sample.CPUPercent += max(0, t.cpuPercent)
}

// followPipeline takes what the pipeline that an attempt launches has reported. Those
// of the items of a step are in its logs alone, and those of a step with secrets, too:
// nothing is masked in what they report.
func (r *runner) followPipeline(ctx context.Context, t *attempt, final bool) error {
	if t.node.launches == "" || t.node.Scatter != nil || len(t.node.Secrets) > 0 || r.e.Pipelines == nil {
		return nil
	}
	if t.pipeline == nil {
		of := reported.Launched{Run: r.run.ID, Fence: r.run.Fence, Step: t.node.ID, Attempt: t.row.Number, Engine: t.node.launches}
		t.pipeline = launched.New(r.e.Pipelines, of, r.e.Bytes, r.e.Now)
	}
	percent, err := t.pipeline.Look(ctx, r.handle(t), final)
	if percent >= 0 {
		t.progress = max(t.progress, float64(percent)/100)
		r.e.Changed(r.run.ID)
	}
	return err
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
