package credits

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Amount is a number of whole micro-credits. Spending is negative in a ledger;
// prices are not.
type Amount int64

// Credit is one credit.
const Credit Amount = 1_000_000

// decimals is how many a credit has at most, on the wire as in a file.
const decimals = 6

// String is the amount in credits, without trailing zeros: "5.5832", "-3".
func (a Amount) String() string {
	sign, size := "", uint64(a)
	if a < 0 {
		// The negation of the unsigned value holds for the smallest amount too.
		sign, size = "-", -uint64(a)
	}
	whole, part := size/uint64(Credit), size%uint64(Credit)
	if part == 0 {
		return sign + strconv.FormatUint(whole, 10)
	}
	fraction := strings.TrimRight(fmt.Sprintf("%06d", part), "0")
	return sign + strconv.FormatUint(whole, 10) + "." + fraction
}

// MarshalJSON writes credits as a JSON number, exact to the last micro-credit.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON reads what MarshalJSON writes, and refuses what it cannot hold
// exactly.
func (a *Amount) UnmarshalJSON(text []byte) error {
	parsed, err := ParseAmount(string(text))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// Float is the amount in credits, for wire types that hold numbers as floats.
// It is the nearest float there is, which prints as String does for amounts
// below a billion credits.
func (a Amount) Float() float64 { return float64(a) / float64(Credit) }

// FromFloat is the amount that a number of credits on the wire stands for. It
// refuses one with more decimals than a credit has.
func FromFloat(credits float64) (Amount, error) {
	if math.IsNaN(credits) || math.IsInf(credits, 0) {
		return 0, fmt.Errorf("%v is not a number of credits", credits)
	}
	return ParseAmount(strconv.FormatFloat(credits, 'f', -1, 64))
}

// ParseAmount reads credits written as a plain decimal number, such as "3.6".
func ParseAmount(text string) (Amount, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, dotted := strings.Cut(digits, ".")
	if !plain(whole) || dotted && !plain(fraction) {
		return 0, fmt.Errorf("%q is not a number of credits: write it plainly, such as 3.6", text)
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > decimals {
		return 0, fmt.Errorf("%s has more than %d decimals, and a credit has no smaller parts", text, decimals)
	}
	micros := whole + fraction + strings.Repeat("0", decimals-len(fraction))
	if negative {
		micros = "-" + micros
	}
	n, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is more credits than can be counted", text)
	}
	return Amount(n), nil
}

// plain reports whether the text is nothing but digits, and at least one.
func plain(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// times is a price taken n times. A product beyond what an Amount holds is the
// largest there is: nobody has that much, and it never turns negative.
func (a Amount) times(n int64) Amount {
	if a <= 0 || n <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(a), uint64(n))
	if high != 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return Amount(low)
}

// plus is the sum of two prices, with the same bound as times.
func (a Amount) plus(b Amount) Amount {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
