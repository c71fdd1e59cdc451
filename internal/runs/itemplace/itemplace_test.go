package itemplace

import (
	"math"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
)

func TestAPlaceIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, p := range []Place{Of(true, 0), Of(false, 0), Of(true, 9_999), Of(false, math.MaxInt)} {
		if got, err := Read(p.Text()); err != nil || got != p {
			t.Errorf("%v is read as %v, %v", p, got, err)
		}
	}
	if first, err := Read(""); err != nil || first != (Place{0, -1}) {
		t.Errorf("before all is %v, %v", first, err)
	}
	for _, text := range []string{"0", ".", "0.", ".0", "2.0", "-1.0", "0.-1", "00.1", "0.01", "0.1 ", "0.1.2", "x.y", "0.9223372036854775808", "+0.1", "0.1\x00"} {
		if p, err := Read(text); !fault.Is(err, fault.KindInvalid) {
			t.Errorf("%q is read as %v, %v", text, p, err)
		}
	}
}
