package builtin

import (
	"testing"
	"time"
)

// The test vectors of RFC 6238, cut to six digits.
func TestCodesAreThoseOfTheStandard(t *testing.T) {
	f := SecondFactor{Secret: []byte("12345678901234567890")}
	for at, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		if got := f.code(at / 30); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
		for shift, fits := range map[time.Duration]bool{-30 * time.Second: true, 0: true, 30 * time.Second: true, 90 * time.Second: false} {
			if _, ok := f.step(want, time.Unix(at, 0).Add(shift)); ok != fits {
				t.Errorf("at %d, %s later: %v", at, shift, ok)
			}
		}
	}
}
