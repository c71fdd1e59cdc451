package kernel

import (
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
)

// Value is what a field holds, if it was sent.
func Value[T any](sent *T) (v T) {
	if sent != nil {
		v = *sent
	}
	return v
}

// OrEmpty is a text that may be left out.
func OrEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// Listed is a list that may be left out: nil, where it is.
func Listed(list *[]string) []string {
	if list == nil {
		return nil
	}
	return append([]string{}, *list...)
}

// OrNull is null where there is no text.
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// NumberOrNull is null where there is no number.
func NumberOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// TimeOrNull is null where there is no time.
func TimeOrNull(t time.Time) *api.Time {
	if t.IsZero() {
		return nil
	}
	return api.AtOrNull(&t)
}

// InQuery reads what the query must name.
func (x *Exchange) InQuery(name string) (string, error) {
	v := x.Request.URL.Query().Get(name)
	if v == "" {
		d := fault.Detail{Path: name, Message: "is missing from the query"}
		return "", fault.Problems([]fault.Detail{d}, "%s", Sentence(d))
	}
	if !Printable(v) {
		return "", fault.NotFound("there is nothing with this %s", name)
	}
	return v, nil
}

// SortedKeys are the keys of a map, in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
