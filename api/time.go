package api

import (
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Time is an instant as the API writes it: UTC, always with milliseconds. A
// plain time.Time drops trailing zeros and keeps its zone.
type Time struct{ time.Time }

// At is the instant t.
func At(t time.Time) Time { return Time{t} }

// AtOrNull is the instant t, or null where there is none.
func AtOrNull(t *time.Time) *Time {
	if t == nil {
		return nil
	}
	return &Time{*t}
}

// quoted appends the instant as JSON, cut to milliseconds. Lists are made of
// times, so it is done by hand, several times as fast as a layout.
func (t Time) quoted(b []byte) ([]byte, error) {
	u := t.UTC()
	year, month, day := u.Date()
	if year < 0 || year > 9999 {
		return nil, errors.New("the year is not of four digits")
	}
	hour, minute, second := u.Clock()
	b = digits(append(b, '"'), year, 1000)
	b = digits(append(b, '-'), int(month), 10)
	b = digits(append(b, '-'), day, 10)
	b = digits(append(b, 'T'), hour, 10)
	b = digits(append(b, ':'), minute, 10)
	b = digits(append(b, ':'), second, 10)
	b = digits(append(b, '.'), u.Nanosecond()/1e6, 100)
	return append(b, 'Z', '"'), nil
}

func digits(b []byte, n, unit int) []byte {
	for ; unit > 0; unit /= 10 {
		b = append(b, byte('0'+n/unit%10))
	}
	return b
}

// MarshalJSON writes the instant for encoding/json.
func (t Time) MarshalJSON() ([]byte, error) { return t.quoted(nil) }

// MarshalJSONTo writes the instant without another look at it.
func (t Time) MarshalJSONTo(e *jsontext.Encoder) error {
	b, err := t.quoted(make([]byte, 0, 32))
	if err != nil {
		return err
	}
	return e.WriteValue(b)
}

// String gives the instant as it is written, without quotes.
func (t Time) String() string {
	b, err := t.quoted(nil)
	if err != nil {
		return t.Time.String()
	}
	return string(b[1 : len(b)-1])
}
