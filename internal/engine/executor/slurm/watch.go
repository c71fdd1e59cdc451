package slurm

import "github.com/millrace/millrace/internal/engine/executor"

// watchers are told of changes. The driver's lock guards them.
type watchers struct{ all map[chan executor.Seen]bool }

func newWatchers() *watchers { return &watchers{map[chan executor.Seen]bool{}} }

// watchBuffer is how far a watcher may lag before it misses something.
const watchBuffer = 1024

func (w *watchers) add(closed bool) chan executor.Seen {
	c := make(chan executor.Seen, watchBuffer)
	if closed {
		close(c)
		return c
	}
	w.all[c] = true
	return c
}

func (w *watchers) remove(c chan executor.Seen) {
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

func (w *watchers) tell(s executor.Seen) {
	for c := range w.all {
		select {
		case c <- s:
		default: // a snapshot will tell
		}
	}
}
