package reader

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// heading is a line that opens a section or a part of one.
type heading struct {
	title string
	kind  Kind
	sub   bool   // opens a part of the section
	rest  string // of the line: text that runs on
}

// titles are the headings that papers of all fields share. The first that
// fits decides.
var titles = []struct {
	kind    Kind
	pattern pattern
}{
	{References, compiled(`^(?:references?(?: and notes)?|bibliography|literature cited|works cited|cited literature)$`)},
	{Back, compiled(`^(?:acknowledge?ments?|funding(?: information| statement)?|author'?s?’?s? contributions?|contributions|(?:competing|conflicts?|declaration) (?:of )?(?:financial )?(?:interests?|competing interests?)(?: statement)?|conflicts? of interests?|disclosures?|ethics(?: approval| statement| declarations?)?(?: and consent.*)?|consent(?: for publication| to participate)?|orcid(?: ids?)?|abbreviations|about the authors?|additional information|supplementary (?:materials?|information|data)|supporting information|publisher.s note)$`)},
	{Availability, compiled(`^(?:(?:data|code|software|materials?)(?:,? (?:and |& )?(?:data|code|software|materials?))*(?: availability| accessibility)(?: statement)?|availability(?: of .*| and .*)?|accession (?:numbers?|codes?)|data deposition|open (?:data|practices).*)$`)},
	{Abstract, compiled(`^(?:abstract|summary|synopsis)$`)},
	{Introduction, compiled(`^(?:introduction|background|related work|motivation|introduction and background|state of the art|literature review|previous work)$`)},
	{Methods, compiled(`^(?:(?:online |star |star★ |detailed |general |research )?(?:materials?|patients|subjects|participants|data|model|experimental|experiments?|theory|software|study area|sampling|samples|observations?|site)?(?: and |, | & )?(?:the )?(?:statistical |numerical |computational |experimental |analytical |simulation )?(?:methods?|methodology|methodologies|procedures?|design and methods)(?: and (?:materials|data|models?|protocols|results))?|experimental(?: section| details| procedures?| setup| design| methods)?|computational (?:details|methods|methodology|procedures?|approach)|methods summary|study (?:design|area)(?: and .*)?|observations?(?: and (?:data )?(?:reduction|analysis|calibration))?|data (?:reduction|analysis|processing|and (?:methods|models?|processing|analysis))(?: and .*)?|simulations?(?: details| setup| methods| and .*)?|numerical (?:methods?|setup|simulations?|model)(?: and .*)?|model(?:ling|ing)?(?: setup| description| configuration)?(?: and .*)?|implementation(?: details)?|bioinformatics?(?: analys[ie]s| methods)?|statistical analys[ie]s|analysis(?: methods)?|approach|protocol|image (?:acquisition|processing|analysis).*|event selection.*|monte carlo simulations?)$`)},
	{Results, compiled(`^(?:(?:main |key )?results?(?: and (?:discussions?|analysis|evaluation))?|findings|evaluation|experimental results|case study)$`)},
	{Conclusion, compiled(`^(?:conclusions?(?: and (?:outlook|future work|perspectives|recommendations))?|concluding remarks|summary and (?:conclusions?|outlook|discussion)|outlook|discussion and conclusions?)$`)},
	{Discussion, compiled(`^(?:(?:general )?discussions?(?: and .*)?|limitations(?: .*)?|implications)$`)},
	{Other, compiled(`^(?:appendix(?: [a-z0-9])?.*|keywords|key words|index terms|highlights|significance(?: statement)?|nomenclature)$`)},
}

var (
	numbered  = compiled(`^((?:\d{1,2}|[IVX]{1,5}|[A-H])(?:[.)](?:\d{1,2})?)*)\s+(\pL.*)$`)
	runIn     = compiled(`^(?i)(abstract|summary|keywords|key words|index terms)\s*(?:[—–:.]|-\s)\s*(.*)$`)
	smallCaps = compiled(`\b([A-Z]) ([A-Z]{2,})`)
)

// headingAt reads line i as a heading, if it is one.
func headingAt(all []line, i int, inside Kind) (heading, bool) {
	text := all[i].text
	if m := runIn().FindStringSubmatch(text); m != nil {
		return heading{title: m[1], kind: kindOf(m[1]), rest: m[2]}, true
	}
	if first, _ := utf8.DecodeRuneInString(text); len(text) > 90 || unicode.IsLower(first) || strings.HasSuffix(text, ".") && !short(text) {
		return heading{}, false
	}
	title, deep := text, false
	number := numbered().FindStringSubmatch(text)
	if number != nil {
		title = number[2]
		deep = strings.ContainsAny(strings.TrimRight(number[1], ".)"), ".") || len(number[1]) > 0 && number[1][0] >= 'A' && number[1][0] <= 'H' && inside != Front
	}
	if kind := kindOf(title); kind != "" {
		// A part of the methods may be called "Statistical analysis".
		sub := inside == Methods && kind == Methods || deep && inside != Front && inside != Abstract
		return heading{title: title, kind: kind, sub: sub}, true
	}
	if number != nil && titled(title, 9) && (all[i].gap || deep && stands(all, i)) && number[1] != "A" {
		return heading{title: title, kind: Other, sub: deep}, true
	}
	return heading{title: title, sub: true}, alone(all, i)
}

// short reports whether a text is one or two words, as a heading with a full
// stop may be.
func short(text string) bool { return len(strings.Fields(text)) <= 3 }

func kindOf(title string) Kind {
	title = smallCaps().ReplaceAllString(title, "$1$2")
	title = strings.ToLower(strings.TrimRight(strings.TrimSpace(title), ".:—– "))
	for _, t := range titles {
		if t.pattern().MatchString(title) {
			return t.kind
		}
	}
	return ""
}

// titled reports whether a text looks like a title of at most so many words.
func titled(text string, most int) bool {
	first, _ := utf8.DecodeRuneInString(text)
	n := len(strings.Fields(text))
	return unicode.IsUpper(first) && n >= 1 && n <= most && !strings.ContainsAny(text[len(text)-1:], ".,;:-)") && !caption().MatchString(text)
}

// alone reports whether line i stands between paragraphs as the headings of
// parts do: a few words, after the end of a sentence and before the beginning
// of another.
func alone(all []line, i int) bool {
	if i == 0 || !titled(all[i].text, 9) || len(strings.Fields(all[i].text)) < 2 || digits().MatchString(all[i].text) {
		return false
	}
	return (all[i].gap || len(all[i].text) < 40) && ends(all[i-1].text) && stands(all, i)
}

// stands reports whether a sentence begins after line i.
func stands(all []line, i int) bool {
	if i+1 >= len(all) {
		return false
	}
	next := all[i+1].text
	first, _ := utf8.DecodeRuneInString(next)
	return unicode.IsUpper(first) && len(strings.Fields(next)) >= 4
}
