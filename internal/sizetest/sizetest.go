// Package sizetest says how much a test does that could go on forever: random
// inputs, kills, bytes.
package sizetest

import (
	"os"
	"testing"
)

// Pick is all of it in continuous integration, which sets CI, a part of it where
// somebody waits, and a tenth in short tests.
func Pick(part, all int) int {
	switch {
	case testing.Short():
		return max(1, all/10)
	case os.Getenv("CI") != "":
		return all
	}
	return part
}
