package runs

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// outputTarget is where outputs are to be copied; nil: nowhere.
func outputTarget(to *api.OutputTarget) *outputto.Target {
	if to == nil {
		return nil
	}
	return &outputto.Target{URL: to.URL, Connection: ids.Connection(to.Connection)}
}

// outputCopy is where a run's outputs are copied, and how far that has come.
func outputCopy(c *outputto.Copy) *api.OutputCopy {
	if c == nil {
		return nil
	}
	out := &api.OutputCopy{
		URL: c.For(c.Run).URL, Connection: string(c.Connection), State: string(c.State), Message: kernel.OrNull(c.Message),
		Files: c.Files, CopiedFiles: c.Done, Bytes: c.Bytes, CopiedBytes: c.Copied, FinishedAt: kernel.TimeOrNull(c.EndedAt),
	}
	if c.State == outputto.Copying && c.Attempts > 0 {
		out.NextAttemptAt = kernel.TimeOrNull(c.NextAt)
	}
	return out
}
