package engine

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/taskenv"
	"github.com/millrace/millrace/internal/runs"
)

// pulseEvery is how often usage is sampled.
const pulseEvery = time.Second

// usage is a sample of what an attempt has used.
type usage struct {
	cpu time.Duration
	at  time.Time
}

// feel samples what the tasks of a run use, and how far they report to have
// come.
func (c *carrier) feel(ctx context.Context) {
	now := c.e.Now()
	if len(c.live) == 0 || now.Sub(c.felt) < pulseEvery {
		return
	}
	c.felt = now
	sample := runs.Pulse{At: now}
	meter, measured := c.e.Driver.(executor.Meter)
	for _, t := range c.live {
		if measured {
			c.measure(ctx, meter, t, &sample)
		}
		if done, total, ok := taskenv.ProgressOf(filepath.Join(c.e.Dir, c.key(t).Folder())); ok {
			t.share = max(t.share, done/total)
			sample.Node, sample.NodeName = t.node.ID, t.node.Name
			sample.Step = t.node.Name + ": " + strconv.FormatFloat(done, 'f', -1, 64) + "/" + strconv.FormatFloat(total, 'f', -1, 64)
		}
	}
	c.e.Pulse(c.r.ID, sample)
}

func (c *carrier) measure(ctx context.Context, m executor.Meter, t *try, sample *runs.Pulse) {
	u, err := m.Usage(ctx, t.handle)
	if err != nil {
		return // it has only just begun, or has ended
	}
	sample.MemBytes += u.Memory
	if took := u.At.Sub(t.used.at); !t.used.at.IsZero() && took > 0 {
		t.cpu = 100 * float64(u.CPU-t.used.cpu) / float64(took)
	}
	if u.At.After(t.used.at) {
		t.used = usage{u.CPU, u.At}
	}
	sample.CPUPercent += max(0, t.cpu)
}

// percent is how far the run has come; the last percent is the verified end.
func (c *carrier) percent() int {
	done, total := c.plan.Progress()
	if total == 0 {
		return 0
	}
	share := float64(done)
	for _, n := range c.open {
		share += float64(n.done) / float64(max(1, n.total))
	}
	for _, t := range c.live {
		share += t.share / float64(max(1, t.node.total))
	}
	return int(share * 99 / float64(total))
}
