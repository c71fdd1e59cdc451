// Package bounds keeps what a user writes from costing others: it counts what
// an expression does, weighs patterns before they are compiled, and checks what
// enters a run. What a definition may say is the graph's business.
package bounds

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// What may enter a run.
const (
	MaxValue    = 1 << 20 // bytes of one value's texts
	MaxDepth    = 64
	MaxElements = 100_000  // at once
	maxTexts    = 16 << 20 // bytes, at once
)

// Gate is what every value passes that enters a run: a parameter, a default, or
// what an expression returned. It counts while a value is unfolded, so that one
// which shares its parts with itself is stopped before it takes up memory.
type Gate struct {
	elements int // in all, so far
	bytes    int // of all texts, so far
	value    int // of the texts of the value at hand
}

// Next begins another value.
func (g *Gate) Next() { g.value = 0 }

// Element counts one value of any kind, at a depth.
func (g *Gate) Element(depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("the value is nested more than %d deep", MaxDepth)
	}
	if g.elements++; g.elements > MaxElements {
		return fmt.Errorf("the value unfolds into more than %d elements", MaxElements)
	}
	return nil
}

// room reports whether so many elements more would pass, before any is made.
func (g *Gate) room(elements int64) error {
	if elements > int64(MaxElements-g.elements) {
		return fmt.Errorf("the value unfolds into more than %d elements", MaxElements)
	}
	return nil
}

// Text counts a text, and refuses one that could be taken for something else
// on its way to a command.
func (g *Gate) Text(s string) error {
	if err := TextFault(s); err != nil {
		return err
	}
	g.value += len(s)
	g.bytes += len(s)
	switch {
	case g.value > MaxValue:
		return fmt.Errorf("one value is larger than %d MB", MaxValue>>20)
	case g.bytes > maxTexts:
		return fmt.Errorf("the values are together larger than %d MB", maxTexts>>20)
	}
	return nil
}

// TextFault says why a text cannot be handed to a command as it is, or nothing.
func TextFault(s string) error {
	switch {
	case len(s) > MaxValue:
		return fmt.Errorf("a text is longer than %d MB", MaxValue>>20)
	case !utf8.ValidString(s):
		return errors.New("a text is not valid UTF-8")
	case strings.IndexByte(s, 0) >= 0:
		return errors.New("a text contains the NUL character")
	}
	return nil
}
