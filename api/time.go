package api

import "time"

// Time is an instant as the API writes it: UTC, always with milliseconds. A
// plain time.Time drops trailing zeros and keeps its zone.
type Time struct{ time.Time }

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// At is the instant t.
func At(t time.Time) Time { return Time{t} }

// AtOrNull is the instant t, or null where there is none.
func AtOrNull(t *time.Time) *Time {
	if t == nil {
		return nil
	}
	return &Time{*t}
}

// MarshalJSON writes the instant in UTC, cut to milliseconds.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format(timeLayout) + `"`), nil
}

// String gives the instant as MarshalJSON writes it, without the quotes.
func (t Time) String() string { return t.UTC().Format(timeLayout) }
