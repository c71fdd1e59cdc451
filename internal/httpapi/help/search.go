package help

import (
	"cmp"
	"slices"
	"strings"
)

// Hit is a section in which all words were found.
type Hit struct {
	Path, Title, Excerpt string
	score                int
}

const (
	maxWords = 10
	maxHits  = 30
	around   = 80 // letters of an excerpt on each side of the first word
)

// Search finds the sections that have all words, the best first: those that
// have them in their headings.
func (b *Book) Search(query string) []Hit {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil
	}
	words = words[:min(len(words), maxWords)]
	var hits []Hit
	for _, p := range b.order {
		for _, s := range p.sections {
			if h, found := s.find(p, words); found {
				hits = append(hits, h)
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.score, a.score) })
	return hits[:min(len(hits), maxHits)]
}

func (s section) find(p *Page, words []string) (Hit, bool) {
	title, body, page := strings.ToLower(s.title), strings.ToLower(s.text), strings.ToLower(p.Title)
	h := Hit{Path: strings.TrimSuffix("/help/"+p.Path, "/"), Title: p.Title}
	if s.title != p.Title {
		h.Path, h.Title = h.Path+"#"+s.anchor, p.Title+" › "+s.title
	}
	for _, w := range words {
		n := min(strings.Count(body, w), 5)
		if strings.Contains(title, w) {
			n += 20
		}
		if n > 0 && strings.Contains(page, w) {
			n += 5
		}
		if n == 0 {
			return Hit{}, false
		}
		h.score += n
	}
	h.Excerpt = excerpt(s.text, strings.Index(body, words[0]))
	return h, true
}

// excerpt is some of a text around a place, in whole words.
func excerpt(text string, at int) string {
	at = min(max(at, 0), len(text)) // lower case may have another length
	from, to := max(0, at-around), min(len(text), at+around)
	if from > 0 {
		if space := strings.IndexByte(text[from:], ' '); space >= 0 {
			from += space + 1
		}
	}
	if to < len(text) {
		if space := strings.LastIndexByte(text[:to], ' '); space > from {
			to = space
		}
	}
	if from > to {
		return ""
	}
	out := strings.ToValidUTF8(text[from:to], "")
	if to < len(text) {
		out += " …"
	}
	return out
}
