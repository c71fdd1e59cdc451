package runs

import (
	"math"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
)

func TestAPlaceIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, p := range []ItemPlace{PlaceOfItem(true, 0), PlaceOfItem(false, 0), PlaceOfItem(true, 9_999), PlaceOfItem(false, math.MaxInt)} {
		if got, err := ReadItemPlace(p.Text()); err != nil || got != p {
			t.Errorf("%v is read as %v, %v", p, got, err)
		}
	}
	if first, err := ReadItemPlace(""); err != nil || first != (ItemPlace{0, -1}) {
		t.Errorf("before all is %v, %v", first, err)
	}
	for _, text := range []string{"0", ".", "0.", ".0", "2.0", "-1.0", "0.-1", "00.1", "0.01", "0.1 ", "0.1.2", "x.y", "0.9223372036854775808", "+0.1", "0.1\x00"} {
		if p, err := ReadItemPlace(text); !fault.Is(err, fault.KindInvalid) {
			t.Errorf("%q is read as %v, %v", text, p, err)
		}
	}
}
