// Package longlines shortens the endless lines of a log.
package longlines

import "bytes"

const (
	Most = 32 << 10                 // bytes of a line
	Mark = " [line cut at 32 KB]\n" // in place of the rest
)

// Shorten cuts the lines of a whole log as the shim does.
func Shorten(text []byte) []byte {
	var c Cutter
	return c.Cut(text)
}

// Cutter shortens endless lines of one stream.
type Cutter struct {
	column int
	cutNow bool // the rest of this line is left out
}

// Cut returns what is kept of the next piece.
func (c *Cutter) Cut(text []byte) []byte {
	if end := bytes.IndexByte(text, '\n'); c.column+len(text) <= Most && !c.cutNow && end < 0 {
		c.column += len(text)
		return text
	}
	kept := make([]byte, 0, len(text)+len(Mark))
	for len(text) > 0 {
		line, whole := text, false
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, whole = text[:end+1], true
		}
		text = text[len(line):]
		kept = c.line(kept, line, whole)
	}
	return kept
}

// line adds a line, or a part of one, as far as it fits.
func (c *Cutter) line(kept, line []byte, whole bool) []byte {
	body := len(line)
	if whole {
		body--
	}
	switch {
	case c.cutNow:
	case c.column+body > Most:
		kept = append(append(kept, line[:Most-c.column]...), Mark...)
		c.cutNow = true
	default:
		kept = append(kept, line...)
		c.column += body
	}
	if whole {
		c.column, c.cutNow = 0, false
	}
	return kept
}
