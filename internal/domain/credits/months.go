package credits

import "time"

// Period is the calendar month, in UTC, that t falls in: from its first
// moment to the first of the next.
func Period(t time.Time) (start, end time.Time) {
	year, month, _ := t.UTC().Date()
	start = time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	return start, start.AddDate(0, 1, 0)
}

// daysIn is how many days the month of t has.
func daysIn(t time.Time) int64 {
	start, end := Period(t)
	return int64(end.Sub(start) / (24 * time.Hour))
}
