// Package doi reads the names of papers, however people write them, and gives
// each paper one spelling.
package doi

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DOI is a normalised name: lower case, decoded, without a prefix.
type DOI string

// longest is more than any registered name has.
const longest = 300

var shape = regexp.MustCompile(`^10\.[0-9]{4,9}(\.[0-9]+)*/.+$`)

// Parse reads a DOI that is bare, after "doi:", a doi.org address, in any case,
// or percent-encoded.
func Parse(text string) (DOI, bool) {
	if len(text) > 3*longest || !utf8.ValidString(text) {
		return "", false
	}
	name := trim(text)
	for {
		rest, cut := withoutPrefix(name)
		if !cut {
			break
		}
		name = trim(rest)
	}
	name, ok := decoded(name)
	name = strings.ToLower(trim(name))
	return DOI(name), ok && len(name) <= longest && shape.MatchString(name) && !strings.ContainsFunc(name, impossible)
}

// trim takes away what a sentence or a copied line leaves around a name.
func trim(text string) string {
	text = strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
	return strings.TrimRightFunc(text, func(r rune) bool {
		return strings.ContainsRune(".,;", r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)
	})
}

// prefixes are the ways to say that a name is a DOI.
var prefixes = []string{"urn:doi:", "info:doi/", "doi:", "doi.org/", "dx.doi.org/", "www.doi.org/", "doi "}

func withoutPrefix(text string) (rest string, cut bool) {
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // a letter that changes its length is in no prefix
		return text, false
	}
	if u, err := url.Parse(text); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		switch strings.ToLower(u.Hostname()) {
		case "doi.org", "dx.doi.org", "www.doi.org":
			return strings.TrimPrefix(u.EscapedPath(), "/"), true
		}
		return text, false
	}
	for _, p := range prefixes {
		if strings.HasPrefix(lower, p) {
			return text[len(p):], true
		}
	}
	return text, false
}

// decoded undoes percent-encoding, also when it was done twice.
func decoded(text string) (string, bool) {
	for range 3 {
		once, err := url.PathUnescape(text)
		if err != nil || once == text {
			return text, true // a name may hold a percent sign of its own
		}
		if !utf8.ValidString(once) {
			return "", false
		}
		text = once
	}
	return "", false
}

// impossible is what no name holds, and no address or database should.
func impossible(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}
