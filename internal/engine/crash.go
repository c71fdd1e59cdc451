package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// suspects is where the marks are, in the folder of the attempts: one file for
// each run that the server works on itself, and has for a while. A server that
// goes down leaves them, and the next one counts those runs as lost. No mark is
// made to last through a power cut, which is nobody's doing.
const suspects = ".suspects"

// suspectAfter is long for reading a run and for deciding what it does next,
// and short for using up a machine's memory.
const suspectAfter = 250 * time.Millisecond

// suspect does a part of a run's work that happens in the server itself and
// grows with what the author wrote.
func (c *carrier) suspect(fn func() error) error {
	over, removed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(removed)
		timer := time.NewTimer(suspectAfter)
		defer timer.Stop()
		select {
		case <-over:
			return
		case <-timer.C:
		}
		mark := filepath.Join(c.e.Dir, suspects, string(c.r.ID))
		if os.WriteFile(mark, nil, 0o600) == nil {
			<-over
			_ = os.Remove(mark)
		}
	}()
	defer func() {
		close(over)
		<-removed
	}()
	return fn()
}

// countCrashes counts the runs that were at work when the last server on this
// machine went down.
func (e *Engine) countCrashes(ctx context.Context) {
	dir := filepath.Join(e.Dir, suspects)
	e.complain(ctx, "cannot make a folder for marks", os.MkdirAll(dir, 0o700))
	marks, err := os.ReadDir(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		e.complain(ctx, "cannot read which runs were at work", err)
	}
	for _, mark := range marks {
		id := ids.Run(mark.Name())
		if err := e.Queue.CountCrash(ctx, id, e.Now()); err != nil {
			e.complain(ctx, "cannot count a crash", err)
			continue
		}
		e.crashed[id] = true
		e.complain(ctx, "cannot remove a mark", os.Remove(filepath.Join(dir, mark.Name())))
	}
}
