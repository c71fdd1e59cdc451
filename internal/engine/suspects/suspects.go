// Package suspects remembers on disk which runs a server was working on itself
// when it went down, so that the next one knows which of them may be the cause.
// Nothing is made to last through a power cut, which is nobody's doing.
package suspects

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
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
	return watch(attempts, run, slowAfter, 0, fn)
}

// WatchMemory is Watch for work that waits for others: how long it takes says nothing.
func WatchMemory(attempts string, run ids.Run, fn func() error) error {
	return watch(attempts, run, math.MaxInt64, memory(), fn)
}

// watch compares with the memory that was in use before; 0: when it has taken a while.
func watch(attempts string, run ids.Run, slow time.Duration, before uint64, fn func() error) error {
	over, removed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(removed)
		if !dangerous(over, slow, before) {
			return
		}
		mark, err := os.CreateTemp(filepath.Join(attempts, folderName), string(run)+".*")
		if err != nil {
			return
		}
		_ = mark.Close()
		<-over
		_ = os.Remove(mark.Name())
	}()
	defer func() {
		close(over)
		<-removed
	}()
	return fn()
}

// dangerous waits until something takes long or much, or is over.
func dangerous(over chan struct{}, slow time.Duration, before uint64) bool {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	began := time.Now()
	for {
		select {
		case <-over:
			return false
		case <-ticker.C:
		}
		if before == 0 {
			before = memory()
		}
		if time.Since(began) > slow || memory() > before+memoryGrowth {
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
		run, _, _ := strings.Cut(e.Name(), ".")
		list = append(list, ids.Run(run))
	}
	return slices.Compact(list), err
}

// Clear removes the marks of a run.
func Clear(attempts string, run ids.Run) (err error) {
	marks, _ := filepath.Glob(filepath.Join(attempts, folderName, string(run)+"*"))
	for _, mark := range marks {
		err = errors.Join(err, os.Remove(mark))
	}
	return err
}
