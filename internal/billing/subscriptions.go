package billing

import (
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
)

// Subscription is what a provider has told us of one.
type Subscription struct {
	ID      string
	Plan    credits.Plan // what it stands for; Free when that is nothing
	State   string       // in the provider's words
	Before  string       // its state until then
	Began   bool         // it is as it began
	Ended   bool         // for good
	EventAt time.Time    // in whole seconds, as providers count
}

// FollowedBy reports whether an event happened after what is known. Of two in
// one second the clock tells nothing, but a subscription does: it begins once,
// ends once, and each change says what was before it.
func (s Subscription) FollowedBy(next Subscription) bool {
	switch {
	case s.Ended:
		return false
	case next.Ended:
		return true
	case !next.EventAt.Equal(s.EventAt):
		return next.EventAt.After(s.EventAt)
	case s.Began != next.Began:
		return s.Began
	}
	leadsHere := next.State == s.Before && next.Before != s.State
	return !leadsHere
}

// PlanOf is the largest plan that the subscriptions stand for.
func PlanOf(list []Subscription, c credits.Catalog) credits.Plan {
	best, most := credits.Free, credits.Amount(-1)
	for _, s := range list {
		terms, known := c.Terms(s.Plan)
		if known && s.Plan != credits.Free && terms.MonthlyCredits > most {
			best, most = s.Plan, terms.MonthlyCredits
		}
	}
	return best
}
