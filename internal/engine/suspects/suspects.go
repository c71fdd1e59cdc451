// Package suspects remembers on disk which runs a server was working on itself
// when it went down, so that the next one knows which of them may be the cause.
// Nothing is made to last through a power cut, which is nobody's doing.
package suspects

import (
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// folderName is where the marks are, in the folder of the attempts.
const folderName = ".suspects"

// after is long for reading a run and for deciding what it does next, and short
// for using up a machine's memory.
const after = 250 * time.Millisecond

// Watch does a part of a run's work that happens in the server and grows with
// what the author wrote. If it takes long, the run is marked until it is done.
func Watch(attempts string, run ids.Run, fn func() error) error {
	over, removed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(removed)
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-over:
			return
		case <-timer.C:
		}
		if mark := path(attempts, run); os.WriteFile(mark, nil, 0o600) == nil {
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

// Runs are those that the last server left marked. It makes the folder for the
// marks.
func Runs(attempts string) (list []ids.Run, err error) {
	dir := filepath.Join(attempts, folderName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		list = append(list, ids.Run(e.Name()))
	}
	return list, err
}

// Clear removes the mark of a run.
func Clear(attempts string, run ids.Run) error { return os.Remove(path(attempts, run)) }

func path(attempts string, run ids.Run) string {
	return filepath.Join(attempts, folderName, string(run))
}
