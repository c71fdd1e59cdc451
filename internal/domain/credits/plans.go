// Package credits knows what things cost and what a plan includes. Amounts
// are whole micro-credits.
package credits

// Plan is what a team pays for.
type Plan string

// The plans.
const (
	Free Plan = "free"
	Pro  Plan = "pro"
	Team Plan = "team"
)

// Plans are all plans, the smallest first.
func Plans() []Plan { return []Plan{Free, Pro, Team} }
