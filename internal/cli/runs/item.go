package runs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// place is a step, or one item of a step that runs once per item.
type place struct {
	Node   string
	Item   int
	OfItem bool // the item was named
}

// itemID is how an item is written: the step, a slash and the number of the item, from 0.
func itemID(node string, item int) string { return node + "/" + strconv.Itoa(item) }

// String is the place as a person types it.
func (p place) String() string {
	if !p.OfItem {
		return p.Node
	}
	return itemID(p.Node, p.Item)
}

const maxItem = 1<<31 - 1

// placeOf reads what was typed for a step: its ID, or the ID of an item, as align/3 or as
// the app shows it, align[3]. The item may also be named by --shard.
func placeOf(text string, shard *int) (place, error) {
	p := place{Node: text}
	node, number, found := strings.Cut(text, "/")
	if !found && strings.HasSuffix(text, "]") {
		node, number, found = strings.Cut(strings.TrimSuffix(text, "]"), "[")
	}
	if found {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || node == "" {
			return p, fmt.Errorf("%q is not the ID of a step, such as align, or of an item, such as align/3", text)
		}
		p = place{Node: node, Item: int(n), OfItem: true}
	}
	switch {
	case shard == nil:
	case *shard < 0 || *shard > maxItem:
		return p, errors.New("--shard must be at least 0")
	case p.OfItem && p.Item != *shard:
		return p, fmt.Errorf("%s and --shard %d are different items: name one", text, *shard)
	default:
		p.Item, p.OfItem = *shard, true
	}
	return p, nil
}

// stepOf reads what was typed where only a whole step has a meaning. The item of an ID is
// left out.
func stepOf(text string) (string, error) {
	p, err := placeOf(text, nil)
	return p.Node, err
}
