package credits

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCreditsAreWrittenExactly(t *testing.T) {
	t.Parallel()
	for amount, want := range map[Amount]string{
		0:             "0",
		1:             "0.000001",
		-1:            "-0.000001",
		5_583_200:     "5.5832",
		3 * Credit:    "3",
		-500 * Credit: "-500",
		math.MaxInt64: "9223372036854.775807",
		math.MinInt64: "-9223372036854.775808",
	} {
		if got := amount.String(); got != want {
			t.Errorf("%d micro-credits are written %s, want %s", int64(amount), got, want)
		}
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := Amount(rapid.Int64().Draw(t, "amount"))
		text, err := json.Marshal(amount)
		if err != nil {
			t.Fatal(err)
		}
		var back Amount
		if err := json.Unmarshal(text, &back); err != nil || back != amount {
			t.Fatalf("%s was read as %d: %v", text, int64(back), err)
		}
	})
}

func TestAFloatPrintsAsTheAmountDoes(t *testing.T) {
	t.Parallel()
	const billion = int64(1_000_000_000 * Credit)
	rapid.Check(t, func(t *rapid.T) {
		amount := Amount(rapid.Int64Range(-billion, billion).Draw(t, "amount"))
		text, err := json.Marshal(amount.Float())
		if err != nil {
			t.Fatal(err)
		}
		// Below a millionth of a unit encoding/json turns to exponents; a
		// micro-credit is just that.
		if want := amount.String(); string(text) != want {
			t.Fatalf("as a float %s is written %s", want, text)
		}
		if back, err := FromFloat(amount.Float()); err != nil || back != amount {
			t.Fatalf("the float of %s is read as %s: %v", amount, back, err)
		}
	})
}

func TestWhatIsNoAmountIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "-", ".5", "5.", "1e3", "0x10", "+1", "1,000", " 1", "--1", "1.0000001", "9223372036854.775808", "null", `"3"`, "NaN", "1.-5",
	} {
		if a, err := ParseAmount(text); err == nil {
			t.Errorf("%q was read as %s", text, a)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0.0000001, 1e13, 1.0 / 3} {
		if a, err := FromFloat(f); err == nil {
			t.Errorf("%v was read as %s", f, a)
		}
	}
	if a, err := ParseAmount("1.50000000"); err != nil || a != 1_500_000 {
		t.Errorf("zeros at the end change nothing, but gave %s, %v", a, err)
	}
}

func TestProductsAndSumsNeverTurnNegative(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := Amount(rapid.Int64Min(0).Draw(t, "a"))
		b := Amount(rapid.Int64Min(0).Draw(t, "b"))
		if a.plus(b) < max(a, b) {
			t.Fatalf("%s and %s are %s", a, b, a.plus(b))
		}
		if n := rapid.Int64Min(1).Draw(t, "n"); a.times(n) < a {
			t.Fatalf("%s taken %d times is %s", a, n, a.times(n))
		}
	})
}

func FuzzAmountsAreReadExactlyOrNotAtAll(f *testing.F) {
	for _, seed := range []string{"3.6", "-0.000001", "00012.50", "1e3", "9223372036854.775807", "-9223372036854.775808"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAmount(text)
		if err != nil {
			return
		}
		if again, err := ParseAmount(a.String()); err != nil || again != a {
			t.Errorf("%q is %s, which is read as %s: %v", text, a, again, err)
		}
		if negative := strings.HasPrefix(text, "-"); negative && a > 0 || !negative && a < 0 {
			t.Errorf("%q became %s", text, a)
		}
	})
}
