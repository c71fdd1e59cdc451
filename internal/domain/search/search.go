// Package search says which words a text has and which texts a query finds. An
// index is only a faster way to the same answer, so that every database gives
// the same one.
package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The bounds of what is looked at.
const (
	maxWords   = 2000     // of one thing
	maxText    = 64 << 10 // bytes of one text
	maxLetters = 40       // of a word; the rest is left out
	maxEndings = 400      // of one thing
	longWord   = 24       // letters; of a longer one, an id as a rule, people know the beginning or the end
	endOfLong  = 12
)

// Words are the different words of some texts, in small letters and without
// accents: those of the first texts where there are too many.
func Words(texts ...string) []string {
	seen := map[string]bool{}
	list := []string{}
	for _, text := range texts {
		for word := range strings.FieldsSeq(separated(text)) {
			if word = cut(word); !seen[word] {
				seen[word] = true
				list = append(list, word)
			}
			if len(list) == maxWords {
				return list
			}
		}
	}
	return list
}

// separated is a text with nothing in it but words and spaces. Scripts that are
// written without spaces have words of one character.
func separated(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(strings.ToValidUTF8(text, " ")) {
		switch {
		case unicode.Is(unicode.Mn, r): // an accent
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			b.WriteString(" " + string(r) + " ")
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.Mc, r):
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func cut(word string) string {
	n := 0
	for i := range word {
		if n++; n > maxLetters {
			return word[:i]
		}
	}
	return word
}

// Endings are the words, and what the first of them end in, from two letters on:
// a query that finds the beginning of a word then finds the middle of one too.
func Endings(words []string) []string {
	list := slices.Clone(words)
	for _, word := range words {
		letters, first := []rune(word), 1
		if len(letters) > longWord {
			first = len(letters) - endOfLong
		}
		for i := first; i < len(letters)-1; i++ {
			if len(list) == len(words)+maxEndings {
				return list
			}
			list = append(list, string(letters[i:]))
		}
	}
	return list
}

// Number is the word by which something is found that has a number. No text has
// it.
func Number(digits string) string { return "#" + digits }

// Term is a word that must be there.
type Term struct {
	Word  string
	Whole bool // otherwise a longer one that begins with it will do
}

// Query are the words that must all be there.
type Query []Term

// Parse reads what somebody typed. #12 is a number; anything else is words, and
// all other signs only separate them. Words of one character must be there as
// they are.
func Parse(text string) Query {
	if digits, found := strings.CutPrefix(strings.TrimSpace(text), "#"); found && isNumber(digits) {
		return Query{{Word: Number(strings.TrimLeft(digits, "0")), Whole: true}}
	}
	var q Query
	for _, word := range Words(text) {
		q = append(q, Term{Word: word, Whole: utf8.RuneCountInString(word) == 1})
	}
	return q
}

func isNumber(s string) bool {
	return s != "" && len(s) <= 18 && strings.Trim(s, "0123456789") == ""
}

// Finds reports whether something with these words is what was asked for.
// Nobody asked for anything by no words.
func (q Query) Finds(words []string) bool {
	for _, t := range q {
		if !slices.ContainsFunc(words, func(word string) bool { return word == t.Word || !t.Whole && strings.HasPrefix(word, t.Word) }) {
			return false
		}
	}
	return len(q) > 0
}

// Parts are what somebody typed to find a name: pieces that must all be somewhere
// in it.
type Parts []string

// ParseParts reads what somebody typed. Spaces separate the parts.
func ParseParts(text string) Parts { return strings.Fields(folded(text)) }

// In reports whether a name has all the parts. Capitals and accents do not matter.
func (p Parts) In(name string) bool {
	name = folded(name)
	for _, part := range p {
		if !strings.Contains(name, part) {
			return false
		}
	}
	return true
}

// folded is a text in small letters and without accents.
func folded(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(text))
}

// The bounds of Find.
const (
	foundAtOnce = 1000
	foundIn     = 20_000
)

// Find returns the first limit things of a list whose names have the parts. It reads the
// list in pages; each page begins after the last thing of the page before. One call looks
// at a bounded number of things, so that a long list takes little time at once. If the
// list goes on, last is the thing after which the next call begins.
func Find[T any](p Parts, limit int, after T, name func(T) string, page func(after T, n int) ([]T, error)) (found []T, last *T, err error) {
	size := limit + 1
	if len(p) > 0 {
		size = foundAtOnce
	}
	found = []T{}
	for looked := 0; looked < foundIn; looked += size {
		list, err := page(after, size)
		if err != nil {
			return nil, nil, err
		}
		for _, each := range list {
			if !p.In(name(each)) {
				continue
			}
			if len(found) == limit {
				return found, &found[limit-1], nil
			}
			found = append(found, each)
		}
		if len(list) < size {
			return found, nil, nil
		}
		after = list[len(list)-1]
	}
	return found, &after, nil
}
