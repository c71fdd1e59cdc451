package graph

import "strings"

// validImage follows the grammar of image references:
// [host[:port]/]path[:tag][@algorithm:digest].
func validImage(ref string) bool {
	ref, digest, pinned := strings.Cut(ref, "@")
	if pinned && !validImageDigest(digest) {
		return false
	}
	slash := strings.LastIndexByte(ref, '/')
	if colon := strings.LastIndexByte(ref, ':'); colon > slash {
		tag := ref[colon+1:]
		if len(tag) > 128 || !madeOf(tag, isWord, isTag) {
			return false
		}
		ref = ref[:colon]
	}
	host, rest, ok := strings.Cut(ref, "/")
	if ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		name, port, numbered := strings.Cut(host, ":")
		if !madeOf(name, isAlnum, isTag) || numbered && !madeOf(port, isDigit, isDigit) {
			return false
		}
		ref = rest
	}
	for part := range strings.SplitSeq(ref, "/") {
		if !madeOf(part, isLower, isPart) {
			return false
		}
	}
	return true
}

func validImageDigest(digest string) bool {
	algorithm, sum, ok := strings.Cut(digest, ":")
	return ok && madeOf(algorithm, isLower, isPart) && len(sum) >= 32 && madeOf(sum, isHex, isHex)
}

// madeOf reports whether s is one byte of the first class and any of the second.
func madeOf(s string, first, rest func(byte) bool) bool {
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
