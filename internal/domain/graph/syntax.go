package graph

import (
	"path"
	"strings"
)

// pathFault says what keeps p from being the path of an output, or nothing. An
// empty path is not a fault: it has not been written yet.
func pathFault(p string, many bool) string {
	switch {
	case p == "":
		return ""
	case strings.ContainsAny(p, "\x00\n\r"):
		return "the path must not contain a line break or NUL"
	case strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~"):
		return "the path must be relative to the working folder"
	case strings.Contains(p, `\`):
		return "the path must use `/`, not `\\`"
	case leaves(p):
		return "the path leaves the working folder"
	case path.Clean(p) != p || p == ".":
		return "the path must be written without `.`, `//` or a `/` at the end"
	case strings.ContainsAny(p, "*?[") && !many:
		return "only an output with `many` may have a pattern as its path"
	}
	if _, err := path.Match(p, ""); err != nil {
		return "the pattern is not complete: a `[` is not closed"
	}
	return ""
}

// leaves reports whether a segment of p goes up, wherever it would end.
func leaves(p string) bool {
	for segment := range strings.SplitSeq(p, "/") {
		if segment == ".." {
			return true
		}
	}
	return false
}

func (c *checker) interpreter(f *value, in *where) string {
	name := c.text(f, in, maxName)
	if name == "" {
		return "bash"
	}
	for i := range len(name) {
		if b := name[i]; !nameByte(b) && (i == 0 || !strings.ContainsRune(".+-", rune(b))) {
			c.p.add(at(f, in), InvalidValue, "`%s` is not the name of a program such as `bash` or `python3`", short(name))
			break
		}
	}
	return name
}

func (c *checker) image(f *value, in *where) string {
	ref := c.text(f, in, maxImage)
	if ref != "" && !validImage(ref) {
		c.p.add(at(f, in), InvalidValue, "`%s` is not an image such as `quay.io/biocontainers/fastp:0.23.4`", short(ref))
	}
	return ref
}
