// Package tags says which words people may put on their workflows and runs to
// find them by.
package tags

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/internal/domain/fault"
)

// The limits.
const (
	Most    = 20
	longest = 64
)

// Checked is the list without what comes twice, in its order, and what is wrong
// with it.
func Checked(list []string) (clean []string, wrong []fault.Detail) {
	clean = []string{}
	for i, tag := range list {
		if !Valid(tag) {
			wrong = append(wrong, fault.Detail{
				Path: fmt.Sprintf("tags[%d]", i), Message: "needs 1 to 64 letters, digits or any of _ . : / -",
			})
		} else if !slices.Contains(clean, tag) {
			clean = append(clean, tag)
		}
		if len(clean) > Most || len(wrong) > Most {
			return nil, []fault.Detail{{Path: "tags", Message: fmt.Sprintf("takes at most %d", Most)}}
		}
	}
	return clean, wrong
}

// Valid reports whether a word can be a tag.
func Valid(tag string) bool {
	for _, c := range []byte(tag) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '.' && c != ':' && c != '/' && c != '-' {
			return false
		}
	}
	return tag != "" && len(tag) <= longest
}
