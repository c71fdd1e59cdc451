package reader

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What is read of a paper, so that no text takes long: letters in all, letters
// of a line, and lines of a paragraph.
const (
	maxText  = 1 << 20
	maxLine  = 2_000
	maxBlock = 300
)

// line is a line of a page, tidied.
type line struct {
	page int
	text string
	gap  bool // an empty line came before it
}

var typeset = strings.NewReplacer(
	"ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st",
	"\u2010", "-", "\u2011", "-", "\u2212", "-",
	"\u00ad\n", "-\n", "\u00ad", "", "\u200b", "", "\ufeff", "",
	"\r\n", "\n", "\r", "\n", "\f", "\n\n", "\v", "\n",
)

// lines undoes what typesetting did to letters, and leaves out what repeats on
// every page.
func lines(pages []Page) []line {
	var all []line
	left := maxText
	byPage := make([][]line, 0, len(pages))
	for _, p := range pages {
		text := p.Text[:min(len(p.Text), left)]
		left -= len(text)
		byPage = append(byPage, linesOf(Page{p.Number, text}))
	}
	furniture := repeated(byPage)
	for _, page := range byPage {
		var kept []line
		gap := true
		for i, l := range page {
			if edge(i, len(page)) && pageNumber().MatchString(l.text) || furniture[shape(l.text)] {
				gap = true
				continue
			}
			l.gap = l.gap || gap
			kept, gap = append(kept, l), false
		}
		all = append(all, unweave(kept)...)
	}
	return all
}

func linesOf(p Page) []line {
	var page []line
	gap := true
	for text := range strings.SplitSeq(typeset.Replace(strings.ToValidUTF8(p.Text, "")), "\n") {
		text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
		if text == "" {
			gap = true
			continue
		}
		for ; len(text) > maxLine; gap = false {
			cut := maxLine
			for !utf8.RuneStart(text[cut]) {
				cut--
			}
			page = append(page, line{p.Number, text[:cut], gap})
			text = text[cut:]
		}
		page = append(page, line{p.Number, text, gap})
		gap = false
	}
	return page
}

// edge reports whether line i of n is where heads and feet of pages are.
func edge(i, n int) bool { return i < 3 || i >= n-3 }

var (
	pageNumber = compiled(`^(?:[Pp]age )?\d{1,4}(?: of \d{1,4}|/\d{1,4})?$`)
	digits     = compiled(`\d+`)
)

// shape is what a running head has in common on all pages.
func shape(text string) string { return digits().ReplaceAllString(strings.ToLower(text), "#") }

// repeated finds the heads and feet of pages. Text extraction puts a foot
// between the columns, so they are looked for everywhere.
func repeated(pages [][]line) map[string]bool {
	count := map[string]int{}
	for _, page := range pages {
		var here []string
		for _, l := range page {
			here = append(here, shape(l.text))
		}
		slices.Sort(here)
		for _, s := range slices.Compact(here) {
			count[s]++
		}
	}
	found := map[string]bool{}
	for s, n := range count {
		found[s] = n >= 2 && n*2 >= len(pages) && len(s) > 12
	}
	return found
}

// words are those that a paper uses, to tell a hyphen that belongs to a word
// from one that only breaks it.
type words map[string]bool

var word = compiled(`[\pL\pN]+(?:-[\pL\pN]+)*`)

func wordsOf(all []line) words {
	known := words{}
	for _, l := range all {
		for _, w := range word().FindAllString(l.text, -1) {
			known[strings.ToLower(w)] = true
		}
	}
	return known
}

var (
	brokenOff = compiled(`[\pL\pN]+(?:-[\pL\pN]+)*-$`)
	goesOn    = compiled(`^[\pL\pN]+(?:-[\pL\pN]+)*`)
)

// join puts two lines of one paragraph together.
func (w words) join(a, b string) string {
	if !strings.HasSuffix(a, "-") {
		return a + " " + b
	}
	left, right := brokenOff().FindString(a[strings.LastIndexByte(a, ' ')+1:]), goesOn().FindString(b)
	if left == "" || right == "" {
		return a + " " + b
	}
	whole, hyphened := strings.ToLower(left[:len(left)-1]+right), strings.ToLower(left+right)
	first, _ := utf8.DecodeRuneInString(b)
	names := lexicon().words
	switch {
	case names[whole]:
		return a[:len(a)-1] + b
	case names[hyphened], w[hyphened] && !w[whole]:
		return a + b
	case w[whole], unicode.IsLower(first):
		return a[:len(a)-1] + b
	}
	return a + b
}

// paragraph is text that belongs together.
type paragraph struct {
	page  int
	head  string // the heading below the section's own
	text  string
	prose bool // sentences, in contrast to the cells of a table
}

var caption = compiled(`^(?:Table|TABLE|Figure|FIGURE|Fig\.|FIG\.|Box|Algorithm|Scheme)\s*[\dIVX]+`)

func (w words) paragraph(block []line, head string) paragraph {
	text, count := block[0].text, len(strings.Fields(block[0].text))
	for _, l := range block[1:] {
		text = w.join(text, l.text)
		count += len(strings.Fields(l.text))
	}
	prose := count >= 4*len(block) && (count > 6 || ends(text)) && !caption().MatchString(text)
	return paragraph{block[0].page, head, text, prose}
}

// ends reports whether a text ends as sentences do.
func ends(text string) bool {
	text = strings.TrimRight(text, `)]"'”’ 0123456789,`)
	return text == "" || strings.ContainsRune(".!?:", rune(text[len(text)-1]))
}

// goes reports whether q may go on with the sentence that p breaks off.
func goes(p, q paragraph) bool {
	if caption().MatchString(q.text) || !strings.HasSuffix(q.text, ".") && len(strings.Fields(q.text)) < 4 {
		return false
	}
	first, _ := utf8.DecodeRuneInString(q.text)
	return unicode.IsLower(first) || unicode.IsDigit(first) || strings.HasSuffix(p.text, "-")
}

// mend puts together what a column or a page broke in two, across whatever
// floats in between.
func (w words) mend(all []paragraph) []paragraph {
	const farthest = 4
	gone := make([]bool, len(all))
	var mended []paragraph
	for i, p := range all {
		if gone[i] {
			continue
		}
		for j := i + 1; p.prose && !ends(p.text) && j < len(all) && j <= i+farthest; j++ {
			if !gone[j] && all[j].head == p.head && goes(p, all[j]) {
				p.text = w.join(p.text, all[j].text)
				gone[j] = true
			}
		}
		mended = append(mended, p)
	}
	return mended
}
