package slurm

import "github.com/millrace/millrace/internal/engine/executor"

// watchers are told of changes. The driver's lock guards them.
type watchers struct{ all map[chan executor.Status]bool }

func newWatchers() *watchers { return &watchers{map[chan executor.Status]bool{}} }

// watchBuffer is how far a watcher may lag before it misses something.
const watchBuffer = 1024

func (w *watchers) add(closed bool) chan executor.Status {
	c := make(chan executor.Status, watchBuffer)
	if closed {
		close(c)
		return c
	}
	w.all[c] = true
	return c
}

func (w *watchers) remove(c chan executor.Status) {
	if w.all[c] {
		delete(w.all, c)
		close(c)
	}
}

func (w *watchers) close() {
	for c := range w.all {
		w.remove(c)
	}
}

func (w *watchers) tell(s executor.Status) {
	for c := range w.all {
		select {
		case c <- s:
		default: // a snapshot will tell
		}
	}
}
