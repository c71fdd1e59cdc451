// Package cron says when a schedule is due: five fields of cron, by the clock
// on the wall of a time zone. A library reads the fields and counts through a
// calendar without time zones; what a change of the clocks does to that is
// decided here.
package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule is a set of times.
type Schedule struct {
	fields *cron.SpecSchedule // by a clock that never changes
	zone   *time.Location
}

const (
	maxText = 200
	maxZone = 64

	everyHour = 1<<24 - 1 // of the field
)

var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse reads five fields, or a word such as @daily.
func Parse(text string, zone *time.Location) (Schedule, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return Schedule{}, errors.New("is empty: write five fields, such as 0 6 * * 1-5")
	case len(text) > maxText:
		return Schedule{}, fmt.Errorf("is longer than %d characters", maxText)
	case strings.Contains(text, "="):
		return Schedule{}, errors.New("must not name a time zone: timeZone does")
	case strings.HasPrefix(text, "@every"):
		return Schedule{}, errors.New("takes no @every: write five fields, such as */15 * * * *")
	}
	read, err := fields.Parse(withSunday(text))
	if err != nil {
		return Schedule{}, fmt.Errorf("is not five fields of cron (minute, hour, day of the month, month, day of the week): %w", err)
	}
	spec, ok := read.(*cron.SpecSchedule)
	if !ok {
		return Schedule{}, errors.New("must be five fields of cron")
	}
	const star = 1 << 63
	for _, bits := range []uint64{spec.Minute, spec.Hour, spec.Dom, spec.Month, spec.Dow} {
		if bits&^star == 0 {
			return Schedule{}, errors.New("has an empty field")
		}
	}
	spec.Location = time.UTC
	s := Schedule{spec, zone}
	if spec.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, errors.New("names a day that never comes")
	}
	return s, nil
}

// withSunday lets 7 be Sunday, as most crons do.
func withSunday(text string) string {
	list := strings.Fields(text)
	if len(list) != 5 {
		return text
	}
	days := strings.Split(list[4], ",")
	for i, day := range days {
		if day == "7" {
			days[i] = "0"
		} else if from, ok := strings.CutSuffix(day, "-7"); ok {
			days[i] = from + "-6,0"
		}
	}
	list[4] = strings.Join(days, ",")
	return strings.Join(list, " ")
}

// Zone finds a time zone by its name, such as Europe/Berlin; none is UTC.
func Zone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" || len(name) > maxZone {
		return nil, errors.New("is no time zone: write one such as Europe/Berlin, America/New_York or UTC")
	}
	return zone, nil
}

// Next is the first time after t. Where the clocks change, a schedule that
// names hours is due once for each time on the clock: at the first of two that
// read alike, and when the clocks have gone forward over it, at once. One that
// is due in every hour follows the hours that pass, whatever they are called.
func (s Schedule) Next(t time.Time) time.Time {
	if s.fields.Hour&everyHour == everyHour {
		return s.nextElapsed(t)
	}
	for wall := s.fields.Next(s.earliestWall(t)); !wall.IsZero(); wall = s.fields.Next(wall) {
		if at := s.instant(wall); at.After(t) {
			return at
		}
	}
	return time.Time{}
}

// After are the next n times.
func (s Schedule) After(t time.Time, n int) (list []time.Time) {
	for range n {
		if t = s.Next(t); t.IsZero() {
			break
		}
		list = append(list, t.UTC())
	}
	return list
}

// nextElapsed looks from one change of the clocks to the next: between two, the
// clock is the time and an offset.
func (s Schedule) nextElapsed(t time.Time) time.Time {
	const tries = 20 // changes of the clocks; there are a few a year
	for range tries {
		_, offset := t.In(s.zone).Zone()
		_, end := t.In(s.zone).ZoneBounds()
		wall := s.fields.Next(t.UTC().Add(seconds(offset)))
		if wall.IsZero() {
			return wall
		}
		at := wall.Add(-seconds(offset))
		if end.IsZero() || at.Before(end) {
			return at
		}
		_, after := end.In(s.zone).Zone()
		wall = end.UTC().Add(seconds(after))
		if first := s.fields.Next(wall.Add(-time.Nanosecond)); first.Equal(wall) {
			return end.UTC()
		}
		t = end
	}
	return time.Time{}
}

// earliestWall is what no clock shows later than t, whichever of the offsets
// around it holds.
func (s Schedule) earliestWall(t time.Time) time.Time {
	const around = 26 * time.Hour // no change is larger
	least := around
	for _, near := range []time.Duration{-around, 0, around} {
		_, offset := t.Add(near).In(s.zone).Zone()
		least = min(least, seconds(offset))
	}
	return t.UTC().Add(least - time.Second)
}

// instant is when the clock first shows this, or when it has passed over it.
func (s Schedule) instant(wall time.Time) time.Time {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, s.zone)
	start, end := at.ZoneBounds()
	_, offset := at.Zone()
	switch shown := at.UTC().Add(seconds(offset)); {
	case shown.After(wall): // no clock shows it; the change was before
		return start.UTC()
	case shown.Before(wall):
		return end.UTC()
	}
	if !start.IsZero() {
		_, before := start.Add(-time.Second).In(s.zone).Zone()
		if earlier := wall.Add(-seconds(before)); earlier.Before(start) {
			return earlier
		}
	}
	return at.UTC()
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
