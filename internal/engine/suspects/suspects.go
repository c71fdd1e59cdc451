// Package suspects remembers on disk which runs a server was working on itself
// when it went down, so that the next one knows which of them may be the cause.
// Nothing is made to last through a power cut, which is nobody's doing.
package suspects

import (
	"os"
	"path/filepath"
	"runtime/metrics"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// folderName is where the marks are, in the folder of the attempts.
const folderName = ".suspects"

// A run is suspected when computing for it takes long, or much memory comes in
// use meanwhile. A busy machine alone must not look like that: whoever kills a
// server again and again would have honest runs interrupted.
const (
	sampleEvery  = 50 * time.Millisecond
	slowAfter    = 2 * time.Second
	memoryGrowth = 128 << 20 // bytes
)

// Watch does a part of a run's work that happens in the server and grows with
// what the author wrote; waiting for others is no part of it. While it looks
// dangerous, the run is marked.
func Watch(attempts string, run ids.Run, fn func() error) error {
	over, removed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(removed)
		if !dangerous(over) {
			return
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

// dangerous waits until something takes long or much, or is over.
func dangerous(over chan struct{}) bool {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	began, before := time.Now(), uint64(0)
	for {
		select {
		case <-over:
			return false
		case <-ticker.C:
		}
		if before == 0 {
			before = memory()
		}
		if time.Since(began) > slowAfter || memory() > before+memoryGrowth {
			return true
		}
	}
}

// memory returns the bytes that objects and stacks are using: a recursion without end
// takes a process down by its stack alone.
func memory() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() + sample[1].Value.Uint64()
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
