package credits

// Balance is what a team has: monthly credits, which leave with the month, and
// bought ones, which stay. Neither part is ever below zero.
type Balance struct {
	Monthly Amount
	TopUp   Amount
}

// Split is how an amount was found in a balance. Its parts add up to the amount.
type Split struct {
	Monthly Amount
	TopUp   Amount
	Short   Amount // not in the balance
}

// Left is all that is in the balance.
func (p Balance) Left() Amount { return p.Monthly.plus(p.TopUp) }

// Spend takes an amount out, monthly credits before bought ones, and says how
// it splits. What the balance does not have is short; it never goes below zero.
func (p Balance) Spend(amount Amount) (Balance, Split) {
	var s Split
	p.Monthly, s.Monthly, amount = draw(p.Monthly, amount)
	p.TopUp, s.TopUp, s.Short = draw(p.TopUp, amount)
	return p, s
}

// TakeBack takes bought credits out whose money went back, bought ones before
// monthly ones. What was spent already is short.
func (p Balance) TakeBack(amount Amount) (Balance, Split) {
	var s Split
	p.TopUp, s.TopUp, amount = draw(p.TopUp, amount)
	p.Monthly, s.Monthly, s.Short = draw(p.Monthly, amount)
	return p, s
}

// Expire empties the monthly part when its month has ended, and says how much
// that was.
func (p Balance) Expire() (Balance, Amount) {
	expired := max(p.Monthly, 0)
	p.Monthly = 0
	return p, expired
}

func draw(from, amount Amount) (left, drawn, missing Amount) {
	drawn = max(0, min(from, amount))
	return from - drawn, drawn, max(0, amount) - drawn
}
