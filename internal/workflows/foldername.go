package workflows

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A folder's name is words with slashes between them, as in RNA/Single cell. A folder
// exists as long as a workflow is in it.
const (
	maxFolderDepth  = 5
	maxFolderLength = 200
)

// CheckedFolder is a folder with nothing around its names, and what is wrong with it. The
// empty one is no folder.
func CheckedFolder(text string) (folder, wrong string) {
	names := strings.Split(strings.Trim(strings.TrimSpace(text), "/"), "/")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if (names[i] == "" && len(names) > 1) || names[i] == "." || names[i] == ".." {
			return "", "needs a name between slashes, as in RNA/Single cell"
		}
	}
	folder = strings.Join(names, "/")
	switch {
	case len(names) > maxFolderDepth:
		return "", fmt.Sprintf("has more than %d folders within each other", maxFolderDepth)
	case utf8.RuneCountInString(folder) > maxFolderLength:
		return "", fmt.Sprintf("has more than %d characters", maxFolderLength)
	case !utf8.ValidString(folder) || strings.ContainsFunc(folder, unicode.IsControl):
		return "", "must be one line of text"
	}
	return folder, ""
}

// movedFolder is where something in a folder, or in one within it, is when the folder is
// called otherwise; false: it is not in it.
func movedFolder(place, from, to string) (string, bool) {
	rest, inside := strings.CutPrefix(place, from)
	if !inside || rest != "" && rest[0] != '/' {
		return place, false
	}
	return strings.TrimPrefix(to+rest, "/"), true
}
