// Package waittest waits in tests for a state that nobody signals: of another
// process, or of the file system. What can be signalled is waited for by its
// signal, and time that a test owns is turned by testing/synctest.
package waittest

import (
	"flag"
	"os"
	"testing"
	"time"
)

const (
	limit = 5 * time.Minute // many times what anything takes on a busy machine
	pause = 10 * time.Millisecond
)

// Until looks until something has happened, and reports whether it has within
// the limit: whoever waits says what it means that it has not.
func Until(happened func() bool) bool {
	end := time.NewTimer(limit)
	defer end.Stop()
	again := time.NewTicker(pause)
	defer again.Stop()
	for !happened() {
		select {
		case <-end.C:
			return happened()
		case <-again.C:
		}
	}
	return true
}

// While looks for as long as something takes, and reports whether it held all
// that time.
func While(d time.Duration, holds func() bool) bool {
	end := time.NewTimer(d)
	defer end.Stop()
	again := time.NewTicker(pause)
	defer again.Stop()
	for holds() {
		select {
		case <-end.C:
			return holds()
		case <-again.C:
		}
	}
	return false
}

// Main runs the tests of a package which mostly wait, for processes or for one
// another: more of them at a time than there are cores.
func Main(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("6")
	}
	os.Exit(m.Run())
}
