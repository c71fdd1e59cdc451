// Package sizetest says how much a test does that could go on forever: random
// inputs, kills, bytes.
package sizetest

import (
	"os"
	"testing"
)

// All reports whether tests run at full size, as make test-all has them.
func All() bool { return os.Getenv("MILLRACE_TEST_ALL") != "" && !testing.Short() }

// Pick returns all in make test-all, part in make test, and a tenth of all in
// short tests.
func Pick(part, all int) int {
	switch {
	case testing.Short():
		return max(1, all/10)
	case All():
		return all
	}
	return part
}
