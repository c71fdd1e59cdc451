package reader

import (
	"cmp"
	"slices"
	"strings"
)

// finding is a sentence of the paper with the tools that it names.
type finding struct {
	part     Kind
	head     string
	text     string
	prose    bool
	method   bool // it tells how the work was done
	mentions []mention
}

// scan reads what the paper says was done. Text extraction moves paragraphs
// of two columns under headings that are not theirs, so no part is left out;
// but outside the parts that tell of the work itself a sentence has to say
// plainly that a tool was used.
func scan(sections []Section) []finding {
	has := map[Kind]bool{}
	for _, s := range sections {
		has[s.Kind] = true
	}
	var all []finding
	for _, s := range sections {
		method := s.Kind == Methods || !has[Methods] && s.Kind != Abstract && s.Kind != Availability
		for _, p := range gathered(s.paragraphs) {
			for _, f := range findings(s.Kind, p, method) {
				if elsewhere(s.Kind, has) {
					f.mentions = slices.DeleteFunc(f.mentions, func(m mention) bool { return !plainly(f, m) })
					f.method = len(f.mentions) > 0
				}
				all = append(all, f)
			}
		}
	}
	return astray(all)
}

// astray takes sentences for methods that stand elsewhere and plainly use a
// tool of which the methods say nothing.
func astray(all []finding) []finding {
	known := map[*tool]bool{}
	for _, f := range all {
		for _, m := range f.mentions {
			known[m.tool] = known[m.tool] || f.method && f.prose
		}
	}
	for i, f := range all {
		all[i].method = f.method || slices.ContainsFunc(f.mentions, func(m mention) bool { return !known[m.tool] && plainly(f, m) })
	}
	return all
}

// elsewhere reports whether a part tells of others' work more than of its own.
func elsewhere(k Kind, has map[Kind]bool) bool {
	switch k {
	case References, Back:
		return true
	case Front:
		return len(has) > 1
	case Introduction, Discussion, Conclusion:
		return has[Methods] || has[Results] || has[Other]
	}
	return false
}

var (
	// done is how papers tell of their own work when they name a tool.
	done = compiled(`\b(?:implemented|written|performed|carried out|done|processed|analysed|analyzed|computed|calculated|estimated|drawn) (?:in|with|using|by)\b`)
	// theirs is how they tell of what others did, or of what might be done.
	theirs = compiled(`(?i)\b(?:(?:earlier|previous|prior|other|several|some|many|older|existing|recent|similar|most) (?:[\w-]+ ){0,2}(?:work|stud(?:y|ies)|methods?|programs?|pipelines?|packages|forecasts?|locations|outbreaks|authors|groups|codes?|tools|pickers|attempts|reports?|simulations|analyses|questions|results|of them)|could|would|might|future|ha(?:ve|s|d) been used|(?:codes?|programs?|methods?|tools|packages|pickers|others)(?:,)? such as|for instance|stud(?:y|ies) with|et al)\b`)
)

var inBrackets = compiled(`[(\[][^()\[\]]*[)\]]`)

// ofOthers reports whether a sentence tells of others. Whom it only cites, in
// brackets, it does not tell of: "with DESeq2 (Love et al., 2014)".
func ofOthers(text string) bool {
	return theirs().MatchString(inBrackets().ReplaceAllString(text, " "))
}

// plainly reports whether a sentence says that its authors used a tool.
func plainly(f finding, m mention) bool {
	if !f.prose || !action().MatchString(f.text) && !done().MatchString(f.text) || ofOthers(f.text) {
		return false
	}
	return m.version != "" || f.part != References && f.part != Back && manner[strings.ToLower(lastWord(f.text[:m.start]))]
}

// gathered puts the cells of a table together, which text extraction scatters.
func gathered(all []paragraph) []paragraph {
	var list []paragraph
	for _, p := range all {
		if n := len(list); n > 0 && !p.prose && !list[n-1].prose && len(list[n-1].text) < 4000 {
			list[n-1].text += " " + p.text
			continue
		}
		list = append(list, p)
	}
	return list
}

func findings(part Kind, p paragraph, method bool) []finding {
	texts := []string{p.text}
	if p.prose {
		texts = sentences(p.text)
	}
	var all []finding
	for _, text := range pieces(texts) {
		f := finding{part, p.head, text, p.prose, method, mentions(text, p.prose)}
		if ofOthers(text) {
			f.mentions = slices.DeleteFunc(f.mentions, func(m mention) bool { return m.version == "" })
		}
		all = append(all, f)
	}
	return all
}

// maxSentence is longer than any that a person writes.
const maxSentence = 1_500

// pieces cuts what is too long to be one sentence.
func pieces(texts []string) []string {
	var all []string
	for _, text := range texts {
		for len(text) > maxSentence {
			cut := strings.LastIndexByte(text[:maxSentence], ' ')
			if cut < 1 {
				cut = maxSentence
			}
			all, text = append(all, strings.ToValidUTF8(text[:cut], "")), text[cut:]
		}
		all = append(all, strings.TrimSpace(text))
	}
	return all
}

// use is a tool that the paper used.
type use struct {
	tool    *tool
	version string
	order   int
}

func (u use) String() string { return strings.TrimSpace(u.tool.name + " " + u.version) }

// uses lists the tools in the order in which the methods use them; those that
// only tables or other parts name come after.
func uses(all []finding) []use {
	byTool := map[*tool]*use{}
	for i, f := range all {
		order := i
		if !f.method || !f.prose {
			order += len(all)
		}
		for _, m := range f.mentions {
			u := byTool[m.tool]
			if u == nil {
				u = &use{tool: m.tool, order: order}
				byTool[m.tool] = u
			}
			u.order = min(u.order, order)
			if u.version == "" {
				u.version = m.version
			}
		}
	}
	list := make([]use, 0, len(byTool))
	for _, u := range byTool {
		list = append(list, *u)
	}
	// Within a sentence the tools follow one another as they are named.
	place := places(all)
	slices.SortFunc(list, func(a, b use) int {
		return cmp.Or(a.order-b.order, place[a.tool]-place[b.tool], strings.Compare(a.tool.name, b.tool.name))
	})
	return list
}

// places numbers the tools by where they are first named within a sentence.
func places(all []finding) map[*tool]int {
	place := map[*tool]int{}
	for _, f := range all {
		for i, m := range f.mentions {
			if _, ok := place[m.tool]; !ok {
				place[m.tool] = i
			}
		}
	}
	return place
}

// unlisted finds what looks like a program, with a version, and is not in the
// lexicon.
var unlisted = compiled(`(?:^|[\s(])([A-Za-z]\w*(?:[-.]\w+)*)\s+(?:software\s+|package\s+)?[(,]?\s*(?:v\.?\s?|version\s|ver\.\s?)(\d+(?:\.\d+)+\w*)`)

var mixed = compiled(`[a-z].*[A-Z]|[A-Z][A-Z]|\d`)

// others lists programs that are not in the lexicon.
func others(all []finding) []string {
	var list []string
	for _, f := range all {
		if !f.method {
			continue
		}
		for _, m := range unlisted().FindAllStringSubmatchIndex(f.text, -1) {
			name, version := f.text[m[2]:m[3]], f.text[m[4]:m[5]]
			known := slices.ContainsFunc(f.mentions, func(x mention) bool { return x.start < m[3] && m[2] < x.end })
			if text := name + " " + version; !known && mixed().MatchString(name) && len(name) > 2 && !lexicon().words[strings.ToLower(name)] {
				list = once(list, text)
			}
		}
	}
	return list
}
