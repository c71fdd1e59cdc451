// Package workflowfolder says what a folder of workflows may be called: names with
// slashes between them, as in RNA/Single cell. A folder is there as long as
// a workflow is in it.
package workflowfolder

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits.
const (
	maxDepth  = 5
	maxLength = 200
)

// Checked is a folder with nothing around its names, and what is wrong with it. The
// empty one is no folder.
func Checked(text string) (folder, wrong string) {
	names := strings.Split(strings.Trim(strings.TrimSpace(text), "/"), "/")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if (names[i] == "" && len(names) > 1) || names[i] == "." || names[i] == ".." {
			return "", "needs a name between slashes, as in RNA/Single cell"
		}
	}
	folder = strings.Join(names, "/")
	switch {
	case len(names) > maxDepth:
		return "", fmt.Sprintf("has more than %d folders within each other", maxDepth)
	case utf8.RuneCountInString(folder) > maxLength:
		return "", fmt.Sprintf("has more than %d characters", maxLength)
	case !utf8.ValidString(folder) || strings.ContainsFunc(folder, unicode.IsControl):
		return "", "must be one line of text"
	}
	return folder, ""
}

// Moved is where something in a folder, or in one within it, is when the folder is
// called otherwise; false: it is not in it.
func Moved(place, from, to string) (string, bool) {
	rest, inside := strings.CutPrefix(place, from)
	if !inside || rest != "" && rest[0] != '/' {
		return place, false
	}
	return strings.TrimPrefix(to+rest, "/"), true
}
