package ydoc

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
)

// id names one element of a document: the clock-th that a client made.
type id struct{ client, clock uint64 }

// none is the id that is not there; no client has it.
var none = id{client: lib0.MaxUint + 1}

// What an item holds, as numbered on the wire.
const (
	kindGC byte = iota
	kindDeleted
	kindJSON
	kindBinary
	kindString
	kindEmbed
	kindFormat
	kindType
	kindAny
	kindDoc
	kindSkip
)

// The types that can be nested, as numbered on the wire; XML types follow.
const (
	typeArray = iota
	typeMap
	typeText
	typeXMLElement
	_
	typeXMLHook
	typeXMLText
)

// item is a run of elements made by one client in one go: characters, values,
// or one type. A collected item keeps its place in the clock and nothing else.
type item struct {
	id
	length              uint64
	origin, rightOrigin id    // the neighbours when it was made
	left, right         *item // the neighbours today
	parent              *branch
	key                 string // under which a map holds it
	raw                 string // the content as on the wire, without its count
	child               *branch
	kind                byte
	keyed, deleted      bool
}

func (it *item) end() uint64 { return it.clock + it.length }
func (it *item) last() id    { return id{it.client, it.end() - 1} }

// reach makes the item the left neighbour of right, or the last of its list.
func (it *item) reach(right *item) {
	it.right = right
	if right != nil {
		right.left = it
	} else if it.keyed {
		if it.parent.keys == nil {
			it.parent.keys = map[string]*item{}
		}
		it.parent.keys[it.key] = it
	}
}

// size estimates the bytes of the item on the wire.
func (it *item) size() int { return 12 + len(it.key) + len(it.raw) }

// cut returns the item without its first n elements, not linked to anything.
func (it *item) cut(n uint64) *item {
	rest := *it
	rest.clock += n
	rest.length -= n
	rest.origin = id{it.client, rest.clock - 1}
	_, rest.raw = splitRaw(it.kind, it.raw, n)
	return &rest
}

// splitRaw divides the content of an item before its n-th element.
func splitRaw(kind byte, raw string, n uint64) (left, right string) {
	switch kind {
	case kindString:
		return splitText(raw, n)
	case kindAny, kindJSON:
		r := lib0.NewReader([]byte(raw))
		for range n {
			if kind == kindAny {
				r.SkipAny()
			} else {
				r.Bytes()
			}
		}
		at := len(raw) - r.Len()
		return strings.Clone(raw[:at]), strings.Clone(raw[at:])
	default:
		return "", ""
	}
}

// splitText divides a text after n UTF-16 code units. The halves of a
// character that is cut apart become replacement characters, as in Yjs.
func splitText(s string, n uint64) (left, right string) {
	at, units := 0, uint64(0)
	for units < n {
		r, size := utf8.DecodeRuneInString(s[at:])
		at += size
		units++
		if r > 0xffff {
			units++
		}
	}
	if units > n {
		return s[:at-4] + "\ufffd", "\ufffd" + s[at:]
	}
	return strings.Clone(s[:at]), strings.Clone(s[at:])
}

// utf16Len returns the length of a valid UTF-8 text as JavaScript counts it.
func utf16Len(s string) uint64 {
	n := 0
	for i := range len(s) {
		if s[i]&0xc0 != 0x80 {
			n++
		}
		if s[i] >= 0xf0 {
			n++
		}
	}
	return uint64(n)
}

// branch is a type with items inside: a list, the values of a map, or both.
type branch struct {
	item  *item // that holds the type; nil for a root
	root  string
	kind  byte
	depth int
	start *item
	keys  map[string]*item // the last item of each key: its value
}

// typeOf returns which type the content of an item describes.
func typeOf(raw string) byte { return byte(lib0.NewReader([]byte(raw)).Uint()) }

// live returns the value of a key, or nil.
func (b *branch) live(key string) *item {
	if b == nil {
		return nil
	}
	if it := b.keys[key]; it != nil && !it.deleted {
		return it
	}
	return nil
}

// log is everything one client made, in the order of its clock, without gaps.
type log struct {
	items []*item
	edit  uint64 // the last transaction that appended to it
}

func (l *log) state() uint64 {
	if l == nil || len(l.items) == 0 {
		return 0
	}
	return l.items[len(l.items)-1].end()
}

// index returns where the element with that clock is.
func (l *log) index(clock uint64) int {
	if last := len(l.items) - 1; l.items[last].clock <= clock {
		return last
	}
	i, exact := slices.BinarySearchFunc(l.items, clock, func(it *item, clock uint64) int {
		return cmp.Compare(it.clock, clock)
	})
	if !exact {
		i--
	}
	return i
}

func (l *log) at(clock uint64) *item { return l.items[l.index(clock)] }
