// Package itemplace says where an item stands in the list of a step's items: those
// that failed come first, then all by their numbers.
package itemplace

import (
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Place is where an item stands.
type Place struct {
	Rank  int // 0: it failed
	Index int
}

// Of is the place of an item.
func Of(failed bool, index int) Place {
	if failed {
		return Place{0, index}
	}
	return Place{1, index}
}

// Text is how a place is written as a cursor.
func (p Place) Text() string { return strconv.Itoa(p.Rank) + "." + strconv.Itoa(p.Index) }

// Read reads what Text wrote; nothing is before all.
func Read(text string) (Place, error) {
	if text == "" {
		return Place{0, -1}, nil
	}
	rank, index, _ := strings.Cut(text, ".")
	r, _ := strconv.Atoi(rank)
	i, _ := strconv.Atoi(index)
	p := Place{r, i}
	if p.Text() != text || r < 0 || r > 1 || i < 0 {
		return p, fault.Problems([]fault.Detail{{Path: "cursor", Message: "is not one that an earlier page gave"}}, "cursor: is not one that an earlier page gave")
	}
	return p, nil
}
