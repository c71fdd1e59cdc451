package runs

import (
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
)

// ItemPlace is where an item stands.
type ItemPlace struct {
	Rank  int // 0: it failed
	Index int
}

// PlaceOfItem is the place of an item.
func PlaceOfItem(failed bool, index int) ItemPlace {
	if failed {
		return ItemPlace{0, index}
	}
	return ItemPlace{1, index}
}

// Text is how a place is written as a cursor.
func (p ItemPlace) Text() string { return strconv.Itoa(p.Rank) + "." + strconv.Itoa(p.Index) }

// ReadItemPlace reads what Text wrote; nothing is before all.
func ReadItemPlace(text string) (ItemPlace, error) {
	if text == "" {
		return ItemPlace{0, -1}, nil
	}
	rank, index, _ := strings.Cut(text, ".")
	r, _ := strconv.Atoi(rank)
	i, _ := strconv.Atoi(index)
	p := ItemPlace{r, i}
	if p.Text() != text || r < 0 || r > 1 || i < 0 {
		return p, fault.Problems([]fault.Detail{{Path: "cursor", Message: "is not one that an earlier page gave"}}, "cursor: is not one that an earlier page gave")
	}
	return p, nil
}
