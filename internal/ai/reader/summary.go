package reader

import (
	"strings"
)

// What a summary may hold.
const (
	summarySentences  = 6
	summaryLetters    = 1500
	overviewSentences = 4
	overviewLetters   = 1000
)

// weights is how much the place of a sentence speaks for it in a summary.
var weights = map[Kind]float64{Abstract: 4, Conclusion: 3, Discussion: 1.5, Results: 1.2, Introduction: 1, Other: 0.8, Methods: 0.6, Front: 0.5}

// summary picks what the paper says about itself.
func summary(abstract string, sections []Section) string {
	var all []candidate
	for _, text := range sentences(abstract) {
		all = append(all, candidate{text, weights[Abstract]})
	}
	for _, s := range sections {
		weight := weights[s.Kind]
		if weight == 0 || s.Kind == Abstract {
			continue
		}
		for _, p := range s.paragraphs {
			if !p.prose {
				continue
			}
			for _, text := range sentences(p.text) {
				all = append(all, candidate{text, weight})
			}
		}
	}
	return strings.Join(pick(all, summarySentences, summaryLetters), " ")
}

// overview picks what the methods say most about.
func overview(found []finding) string {
	var all []candidate
	for _, f := range found {
		if f.method && f.prose {
			all = append(all, candidate{f.text, 1 + 0.5*float64(min(len(f.mentions), 2))})
		}
	}
	return strings.Join(pick(all, overviewSentences, overviewLetters), " ")
}

// textOf is the text of the sections of a kind.
func textOf(sections []Section, k Kind) string {
	var texts []string
	for _, s := range sections {
		if s.Kind == k {
			texts = append(texts, s.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// noTitle is what stands above the title of a paper.
var noTitle = compiled(`(?i)\bdoi\b|https?:|www\.|\bvol(?:ume)?\.?\s*\d|\bjournal\b|^received|^accepted|^published|^(?:research |original |open )?(?:article|access|paper|letter|report)s?$|©|\bcopyright\b|^arxiv`)

// authors is how a list of names begins: an initial or two and a name, or two
// names in full.
var authors = compiled(`\s(?:\p{Lu}\.[\s-]?)+\p{Lu}\pL+|\s\p{Lu}\pL+ \p{Lu}[\pL.]+ ?[\d*†‡]*, ?(?:\p{Lu}\pL+ |\d)`)

// titleOf takes the first text of the first page that may be a title.
func titleOf(sections []Section) string {
	if len(sections) == 0 || sections[0].Kind != Front {
		return ""
	}
	for _, p := range sections[0].paragraphs {
		if n := len(strings.Fields(p.text)); n >= 3 && n <= 40 && !noTitle().MatchString(p.text) {
			title := p.text
			if at := authors().FindStringIndex(title); at != nil && at[0] > 10 {
				title = title[:at[0]]
			}
			return strings.TrimRight(title, ". ")
		}
	}
	return ""
}
