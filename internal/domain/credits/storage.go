package credits

import (
	"math"
	"math/big"
	"time"
)

// A GB-month is a GB for every hour of a calendar month, so its hour has a
// different price in months of 28, 29, 30 and 31 days. The least common
// multiple of those makes every hour's price of every byte a whole number of
// very small parts, whichever month it is in.
const (
	daysMultiple = 4 * 3 * 5 * 7 * 29 * 31
	hoursPerDay  = 24

	// partsPerMicro is how many of those parts make a micro-credit.
	partsPerMicro = int64(1) << 30 * hoursPerDay * daysMultiple
)

// Carry is what a team's storage has cost beyond whole micro-credits, in parts
// too small to charge. It is kept from one day to the next, across months too,
// so that nothing is lost or charged twice. It starts at 0.
type Carry int64

// StorageDay is what a day of keeping files costs. Each sample is how many
// bytes were kept for one hour of that day, so there are 24 of them; an hour
// without one costs nothing. The carry of the day before goes in, the one for
// the day after comes out.
//
// A GB that is kept for all of a month costs exactly the rate, and leaves the
// carry as it was.
func (r Rates) StorageDay(day time.Time, samples []int64, before Carry) (Amount, Carry) {
	parts := new(big.Int)
	for _, bytes := range samples {
		parts.Add(parts, big.NewInt(max(bytes, 0)))
	}
	parts.Mul(parts, big.NewInt(int64(r.StorageGBMonth)))
	parts.Mul(parts, big.NewInt(daysMultiple/daysIn(day)))
	parts.Add(parts, big.NewInt(int64(before)))

	whole, rest := parts.DivMod(parts, big.NewInt(partsPerMicro), new(big.Int))
	if !whole.IsInt64() {
		return math.MaxInt64, Carry(rest.Int64())
	}
	return Amount(whole.Int64()), Carry(rest.Int64())
}
