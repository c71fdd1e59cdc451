package ydoc

import "strings"

// Added is what an update brings into a document, while it is decided whether it
// may.
type Added struct{ t *transaction }

// MayName reports whether any field of one of these names may be new. An update
// need not say a name that it uses: what takes the place of something else goes by
// the name of that, and a value that is kept as JSON may be written in many ways.
func (a Added) MayName(fields ...string) bool {
	for _, b := range a.t.before {
		log := a.t.logs[b.client]
		for _, it := range log.items[log.index(b.clock):] {
			if it.mayName(fields) {
				return true
			}
		}
	}
	return false
}

func (it *item) mayName(fields []string) bool {
	text := it.key
	switch it.kind {
	case kindGC, kindDeleted:
		return false
	case kindString, kindType: // letters, or something that is empty still
	case kindAny:
		text += " " + it.raw
	default:
		return true
	}
	for _, name := range fields {
		if strings.Contains(text, name) {
			return true
		}
	}
	return false
}
