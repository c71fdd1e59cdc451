package engine

import (
	"testing"

	"github.com/millrace/millrace/internal/domain/credits"
)

// A size holds as many tasks as its fractions say, however their sum is rounded.
func TestASizeIsFilledByFractions(t *testing.T) {
	t.Parallel()
	for _, parts := range []int{3, 7, 10, 20, 49, 1000} {
		size := credits.Size{VCPU: 2, RAMGB: 8}
		vcpu, ram := 0.0, 0.0
		for n := 1; n <= parts+1; n++ {
			vcpu += float64(size.VCPU) / float64(parts)
			ram += float64(size.RAMGB) / float64(parts)
			if fits := fits(vcpu, ram, 0, size); fits != (n <= parts) {
				t.Errorf("%d of %d parts fit: %t", n, parts, fits)
			}
		}
	}
	if fits(1, 4, 1, credits.Size{VCPU: 2, RAMGB: 8}) {
		t.Error("a GPU that the size has not")
	}
}
