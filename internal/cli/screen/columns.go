package screen

import (
	"unicode"

	"golang.org/x/text/width"
)

// Columns is how many a text takes on a terminal: letters of East Asia take two, and what
// stands above or below a letter none.
func Columns(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

// Cut is the beginning of a text that takes at most so many columns.
func Cut(text string, most int) string {
	n := 0
	for i, r := range text {
		if n += columnsOf(r); n > most {
			return text[:i]
		}
	}
	return text
}

func columnsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}
