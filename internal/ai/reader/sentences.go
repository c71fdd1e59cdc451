package reader

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// abbreviations end in a full stop that ends no sentence.
var abbreviations = func() map[string]bool {
	list := `e.g i.e cf vs al fig figs eq eqs ref refs tab sec no nos vol v ver vers approx ca dr prof mr mrs st inc ltd co corp
		dept univ sp spp var subsp ssp str gen nov min max avg temp resp est etc rev ed eds pp suppl ext sect chap mol exp conc`
	known := map[string]bool{}
	for a := range strings.FieldsSeq(list) {
		known[a] = true
	}
	return known
}()

var stop = compiled(`[.!?](?:[)\]"'”’]|\d{1,3}(?:[,–-]\d{1,3})*)*\s+`)

// sentences cuts a paragraph.
func sentences(text string) []string {
	var all []string
	from := 0
	for _, at := range stop().FindAllStringIndex(text, -1) {
		next, _ := utf8.DecodeRuneInString(text[at[1]:])
		if unicode.IsLower(next) || text[at[0]] == '.' && abbreviated(text[from:at[0]]) {
			continue
		}
		all = append(all, strings.TrimSpace(text[from:at[1]]))
		from = at[1]
	}
	if rest := strings.TrimSpace(text[from:]); rest != "" {
		all = append(all, rest)
	}
	return all
}

// abbreviated reports whether a full stop after this text ends no sentence.
func abbreviated(text string) bool {
	last := text[strings.LastIndexAny(text, " ([")+1:]
	if r, size := utf8.DecodeRuneInString(last); size == len(last) && unicode.IsUpper(r) { // an initial, unless it is a name of its own as in "done in R."
		return !strings.HasSuffix(text, " in R") && !strings.HasSuffix(text, " using R")
	}
	return abbreviations[strings.ToLower(last)]
}
