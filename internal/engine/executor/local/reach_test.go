package local_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// A shim that was killed, or leaves, holds its folder until the kernel is done
// with it, which takes its time on a busy machine.
func TestAShimIsReachedWhenTheOneBeforeTakesItsTimeToGo(t *testing.T) {
	t.Parallel()
	folder, tried := t.TempDir(), filepath.Join(t.TempDir(), "tried")
	lock, err := os.Create(filepath.Join(folder, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "shim")
	script := fmt.Sprintf("#!/bin/sh\necho >> %s\nexec %s \"$@\"\n", tried, os.Args[0])
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	reached := make(chan error, 1)
	go func() {
		link, _, err := shim.Reach(t.Context(), folder, shim.Self(program))
		if err == nil {
			err = link.Send(shim.Order{Leave: true})
		}
		reached <- err
	}()
	tries := func() int {
		text, _ := os.ReadFile(tried)
		return bytes.Count(text, []byte("\n"))
	}
	drivertest.Eventually(t, func() bool { return tries() >= 6 || len(reached) > 0 }, func() string { return fmt.Sprint(tries(), " tries") })
	lock.Close()
	if err := <-reached; err != nil {
		t.Errorf("after %d tries: %v", tries(), err)
	}
}
