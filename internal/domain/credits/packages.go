package credits

import "math/big"

// Package is a number of credits that can be bought at once.
type Package struct {
	Index       int
	Name        string
	Credits     Amount
	AmountMinor int64  // its price in the currency's minor unit
	Currency    string // ISO 4217, in lower case
}

// CreditsFor is the part of the package's credits that so much of its price
// stands for, rounded down. A partial refund takes back the difference between
// what all refunds so far stand for and what the earlier ones did, so that
// many small refunds take no more than one large one.
func (p Package) CreditsFor(minor int64) Amount {
	switch {
	case minor <= 0:
		return 0
	case minor >= p.AmountMinor:
		return p.Credits
	}
	part := big.NewInt(minor)
	part.Mul(part, big.NewInt(int64(p.Credits)))
	return Amount(part.Div(part, big.NewInt(p.AmountMinor)).Int64())
}
