package runclock

import (
	"slices"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// spans are stretches of time, in order, that do not overlap.
type spans []executor.Span

// add returns the spans with one more. Spans that are closer than a gap become one.
func (s spans) add(one executor.Span, gap time.Duration) spans {
	if !one.To.After(one.From) {
		return s
	}
	from := slices.IndexFunc(s, func(o executor.Span) bool { return !o.To.Add(gap).Before(one.From) })
	if from < 0 {
		return append(s, one)
	}
	to := from
	for ; to < len(s) && !s[to].From.After(one.To.Add(gap)); to++ {
		one = executor.Span{From: earlier(one.From, s[to].From), To: later(one.To, s[to].To)}
	}
	return slices.Replace(s, from, to, one)
}

// without returns the spans less those of others.
func (s spans) without(others spans) (rest spans) {
	for _, one := range s {
		for _, o := range others {
			if !o.To.After(one.From) || !o.From.Before(one.To) {
				continue
			}
			if o.From.After(one.From) {
				rest = append(rest, executor.Span{From: one.From, To: o.From})
			}
			one.From = later(one.From, o.To)
		}
		if one.To.After(one.From) {
			rest = append(rest, one)
		}
	}
	return rest
}

// after returns how long the spans are after a moment.
func (s spans) after(at time.Time) (length time.Duration) {
	for _, one := range s {
		if one.To.After(at) {
			length += one.To.Sub(later(one.From, at))
		}
	}
	return length
}

// move moves all of them along with a clock that has jumped.
func (s spans) move(by time.Duration) {
	for i := range s {
		s[i].From, s[i].To = s[i].From.Add(by), s[i].To.Add(by)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
