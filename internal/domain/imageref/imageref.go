// Package imageref knows what the reference of a container image looks like.
package imageref

import "strings"

// Valid follows the grammar of image references:
// [host[:port]/]path[:tag][@algorithm:digest].
func Valid(ref string) bool {
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
