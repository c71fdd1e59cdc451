package reader

import (
	"sort"
	"strings"
	"unicode"
)

// minQuote is how many letters and signs a quote needs to say anything.
const minQuote = 12

// Quoted finds the page that says something word for word. It overlooks what
// typesetting does to words: line breaks and the hyphens at them, ligatures,
// curly quotation marks, and the head and foot of a page in between.
func Quoted(pages []Page, quote string) (page int, ok bool) { return newQuotes(pages).find(quote) }

// quotes is the text of a paper in a form in which quotes are found.
type quotes struct {
	texts  []string // squeezed: once without heads and feet of pages, once whole
	starts [][]start
	tries  int
}

type start struct{ at, page int }

func newQuotes(pages []Page) quotes {
	clean := lines(pages)
	var whole []line
	for _, p := range pages {
		whole = append(whole, linesOf(p)...)
	}
	var q quotes
	for _, all := range [][]line{clean, whole} {
		var text strings.Builder
		var starts []start
		for _, l := range all {
			if len(starts) == 0 || starts[len(starts)-1].page != l.page {
				starts = append(starts, start{text.Len(), l.page})
			}
			text.WriteString(squeeze(l.text))
		}
		q.texts, q.starts = append(q.texts, text.String()), append(q.starts, starts)
	}
	return q
}

func (q quotes) find(quote string) (page int, ok bool) {
	quote = squeeze(quote)
	if len([]rune(quote)) < minQuote {
		return 0, false
	}
	for i, text := range q.texts {
		if at := strings.Index(text, quote); at >= 0 {
			starts := q.starts[i]
			after := sort.Search(len(starts), func(j int) bool { return starts[j].at > at })
			return starts[after-1].page, true
		}
	}
	return 0, false
}

// squeeze leaves out spaces and hyphens, which a line break adds and takes.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Pd, r):
			return -1
		case r == '‘' || r == '’':
			return '\''
		case r == '“' || r == '”':
			return '"'
		}
		return r
	}, typeset.Replace(text))
}
