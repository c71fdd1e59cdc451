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
			c.p.add(at(f, in), "`%s` is not the name of a program such as `bash` or `python3`", short(name))
			break
		}
	}
	return name
}

func (c *checker) image(f *value, in *where) string {
	ref := c.text(f, in, maxImage)
	if ref != "" && !validImage(ref) {
		c.p.add(at(f, in), "`%s` is not an image such as `quay.io/biocontainers/fastp:0.23.4`", short(ref))
	}
	return ref
}

// validImage follows the grammar of image references:
// [host[:port]/]path[:tag][@algorithm:digest].
func validImage(ref string) bool {
	ref, digest, pinned := strings.Cut(ref, "@")
	if pinned && !validDigest(digest) {
		return false
	}
	slash := strings.LastIndexByte(ref, '/')
	if colon := strings.LastIndexByte(ref, ':'); colon > slash {
		tag := ref[colon+1:]
		if len(tag) > 128 || !made(tag, isWord, isTag) {
			return false
		}
		ref = ref[:colon]
	}
	host, rest, ok := strings.Cut(ref, "/")
	if ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		name, port, numbered := strings.Cut(host, ":")
		if !made(name, isAlnum, isTag) || numbered && !made(port, isDigit, isDigit) {
			return false
		}
		ref = rest
	}
	for part := range strings.SplitSeq(ref, "/") {
		if !made(part, isLower, isPart) {
			return false
		}
	}
	return true
}

func validDigest(digest string) bool {
	algorithm, sum, ok := strings.Cut(digest, ":")
	return ok && made(algorithm, isLower, isPart) && len(sum) >= 32 && made(sum, isHex, isHex)
}

// made reports whether s is one byte of the first class and any of the second.
func made(s string, first, rest func(byte) bool) bool {
	if s == "" || !first(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !rest(s[i]) {
			return false
		}
	}
	return true
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }
func isLower(b byte) bool { return b >= 'a' && b <= 'z' || isDigit(b) }
func isAlnum(b byte) bool { return isLower(b) || b >= 'A' && b <= 'Z' }
func isWord(b byte) bool  { return isAlnum(b) || b == '_' }
func isTag(b byte) bool   { return isWord(b) || b == '.' || b == '-' }
func isPart(b byte) bool  { return isLower(b) || b == '_' || b == '.' || b == '-' || b == '+' }
func isHex(b byte) bool   { return isDigit(b) || b >= 'a' && b <= 'f' }
