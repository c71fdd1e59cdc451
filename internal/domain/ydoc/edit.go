package ydoc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
)

// Tx edits a document on the server's behalf. Edit returns what fails.
// Positions in a text count UTF-16 code units, as in JavaScript.
type Tx struct{ t *transaction }

// Edit runs edit and returns what it changed as one update for the peers, nil
// if it changed nothing. If edit fails, or a limit is hit, the document is
// left as it was.
func (d *Doc) Edit(edit func(*Tx) error) ([]byte, error) {
	t := d.begin()
	if err := edit(&Tx{t}); t.err == nil {
		t.err = err
	}
	if err := t.commit(d.pending); err != nil || !t.changed() {
		return nil, err
	}
	return t.encode(), nil
}

// encode returns what the transaction changed.
func (t *transaction) encode() []byte {
	slices.SortFunc(t.before, func(a, b id) int { return compareClients(a.client, b.client) })
	var e encoder
	for _, b := range t.before {
		log := t.logs[b.client]
		e.items(log.items[log.index(b.clock):], b.clock)
	}
	return e.finish(joinSpans(t.deletes))
}

// Map returns a root that is a map, made if need be.
func (tx *Tx) Map(root string) Map {
	if roots := tx.t.limits.Roots; len(roots) > 0 && !slices.Contains(roots, root) {
		tx.fail(fmt.Errorf("no root %.40q belongs to this document", root))
		return Map{}
	}
	return Map{tx.t.root(root)}
}

// Set gives a key a JSON-like value, see lib0.Writer.Any.
func (tx *Tx) Set(m Map, key string, value any) {
	var w lib0.Writer
	if err := w.Any(value); err != nil {
		tx.fail(err)
		return
	}
	tx.set(m, key, kindAny, string(w.Bytes()))
}

// SetMap gives a key a new, empty map.
func (tx *Tx) SetMap(m Map, key string) Map {
	return Map{tx.set(m, key, kindType, string(rune(typeMap)))}
}

// SetText gives a key a new text.
func (tx *Tx) SetText(m Map, key, text string) Text {
	t := Text{tx.set(m, key, kindType, string(rune(typeText)))}
	tx.Insert(t, 0, text)
	return t
}

// set returns the type that the key holds then, if it holds one.
func (tx *Tx) set(m Map, key string, kind byte, raw string) *branch {
	if m.b == nil || tx.t.err != nil {
		tx.fail(errNowhere)
		return nil
	}
	key = strings.ToValidUTF8(key, "\ufffd")
	it := &item{parent: m.b, key: key, keyed: true, kind: kind, raw: raw, length: 1}
	tx.t.insert(it, m.b.keys[key], nil)
	return it.child
}

// Delete takes a key and all it holds out of a map.
func (tx *Tx) Delete(m Map, key string) {
	if it := m.b.live(key); it != nil {
		tx.t.delete(it)
	}
}

// Insert puts s into a text.
func (tx *Tx) Insert(t Text, at int, s string) {
	if s == "" {
		return // looking for the place could cut a character apart
	}
	left, right, ok := tx.seek(t, at)
	if !ok {
		return
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	tx.t.insert(&item{parent: t.b, kind: kindString, raw: s, length: utf16Len(s)}, left, right)
}

// Remove takes n code units out of a text.
func (tx *Tx) Remove(t Text, at, n int) {
	if n <= 0 {
		return
	}
	_, it, ok := tx.seek(t, at)
	if !ok {
		return
	}
	left, _, ok := tx.seek(t, at+n)
	if !ok {
		return
	}
	for ; it != left.right; it = it.right {
		if it.kind == kindString {
			tx.t.delete(it)
		}
	}
}

// Replace makes a text read s, and changes no more of it than one stretch, so
// that what others write in other parts of it at the same time stays.
func (tx *Tx) Replace(t Text, s string) {
	s = strings.ToValidUTF8(s, "\ufffd")
	old := t.String()
	before := commonPrefix(old, s)
	head, old, s := old[:before], old[before:], s[before:]
	after := commonSuffix(old, s)
	old, s = old[:len(old)-after], s[:len(s)-after]
	at := int(utf16Len(head))
	tx.Remove(t, at, int(utf16Len(old)))
	tx.Insert(t, at, s)
}

// commonPrefix and commonSuffix return how many bytes two texts share, in
// whole characters.
func commonPrefix(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}

func commonSuffix(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for n > 0 && !utf8.RuneStart(a[len(a)-n]) {
		n--
	}
	return n
}

var errNowhere = errors.New("an edit is outside of the document")

func (tx *Tx) fail(err error) {
	if tx.t.err == nil {
		tx.t.err = err
	}
}

// seek returns the items on both sides of a position in a text.
func (tx *Tx) seek(t Text, at int) (left, right *item, ok bool) {
	if t.b == nil || at < 0 || tx.t.err != nil {
		tx.fail(errNowhere)
		return nil, nil, false
	}
	n := uint64(at)
	right = t.b.start
	for n > 0 && right != nil {
		if right.kind == kindString && !right.deleted {
			if right.length > n {
				right = tx.t.endingAt(id{right.client, right.clock + n - 1})
			}
			n -= right.length
		}
		left, right = right, right.right
	}
	if n > 0 {
		tx.fail(errNowhere)
	}
	return left, right, n == 0
}

// insert puts a new item of the server's between two others.
func (t *transaction) insert(it, left, right *item) {
	it.id = id{t.client, t.logs[t.client].state()}
	it.origin, it.rightOrigin = none, none
	if left != nil {
		it.origin = left.last()
	}
	if right != nil {
		it.rightOrigin = right.id
	}
	t.link(it, left, right)
}
