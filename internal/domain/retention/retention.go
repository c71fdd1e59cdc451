// Package retention says how long a team keeps what its work leaves behind.
package retention

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Days is how long something is kept; 0 is for ever.
type Days int

// Most is the most that can be said: a hundred years.
const Most Days = 36500

// Kind is something that is kept for a while.
type Kind string

// The kinds.
const (
	Logs      Kind = "logs"
	Events    Kind = "events"
	Runs      Kind = "runs"
	Revisions Kind = "revisions"
)

// DeletedRuns is what is kept of deleted runs so that costs and budgets count
// them. No team chooses it.
const DeletedRuns Kind = "deleted-runs"

// LeastDeletedRuns is the least that DeletedRuns can be: the longest report of
// costs, of 180 days, reads no further back, and a budget reads its month.
const LeastDeletedRuns Days = 186

// Kinds are those that teams choose, in the order in which people read them.
var Kinds = []Kind{Logs, Events, Runs, Revisions}

// Policy says how long each kind is kept; what it does not name is kept for
// ever.
type Policy map[Kind]Days

// Within is the policy, no longer than another one allows.
func (p Policy) Within(most Policy) Policy {
	out := Policy{}
	for _, k := range Kinds {
		out[k] = shorter(p[k], most[k])
	}
	return out
}

func shorter(a, b Days) Days {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Problems lists what is wrong with a team's wish, given what the operator
// allows.
func (p Policy) Problems(most Policy) (list []fault.Detail) {
	for _, k := range Kinds {
		path := string(k) + "Days"
		switch days, bound := p[k], most[k]; {
		case days < 0 || days > Most:
			list = append(list, fault.Detail{Path: path, Message: fmt.Sprintf("is not between 1 and %d", Most)})
		case bound != 0 && days > bound:
			list = append(list, fault.Detail{Path: path, Message: fmt.Sprintf("is longer than the %d days that this server keeps %s (--keep-%s)", bound, k, k)})
		}
	}
	return list
}

// Before is the time before which something is no longer kept.
func (d Days) Before(now time.Time) time.Time { return now.AddDate(0, 0, -int(d)) }

// Parse reads "90d", "12w" or nothing, which is for ever.
func Parse(text string) (Days, error) {
	if text == "" {
		return 0, nil
	}
	number, times := strings.CutSuffix(text, "d")
	factor := 1
	if !times {
		if number, times = strings.CutSuffix(text, "w"); times {
			factor = 7
		}
	}
	n, err := strconv.Atoi(number)
	if !times || err != nil || n < 1 || n > int(Most)/factor {
		return 0, fmt.Errorf("%q is not a number of days or weeks such as 90d or 12w", text)
	}
	return Days(n * factor), nil
}
