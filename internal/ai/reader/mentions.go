package reader

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mention is where a sentence names a tool.
type mention struct {
	tool       *tool
	start, end int
	version    string
}

// mentions finds the tools that a sentence, or a table, says were used.
func mentions(sentence string, prose bool) []mention {
	var found []mention
	var spelled []spelling // as each of them is
	d := lexicon()
	for i := 0; i < len(sentence); {
		end := wordEnd(sentence, i)
		if end == i {
			_, n := utf8.DecodeRuneInString(sentence[i:])
			i += n
			continue
		}
		next := end
		for _, s := range d.spellings[strings.ToLower(sentence[i:end])] {
			if e := s.at(sentence, i); e > 0 {
				found, spelled = append(found, mention{tool: s.tool, start: i, end: e}), append(spelled, s)
				next = e
				break
			}
		}
		i = next
	}
	return used(sentence, certain(sentence, found, spelled, prose))
}

// certain leaves out the names that are more likely ordinary words. Among the
// names of other tools they are more likely tools.
func certain(sentence string, found []mention, spelled []spelling, prose bool) []mention {
	company := 0
	for _, s := range spelled {
		if !s.ambiguous && s.tool.kind.name != "database" {
			company++
		}
	}
	company = min(company, 1)
	if !prose {
		company *= 2
	}
	kept := found[:0]
	for i, m := range found {
		if !spelled[i].ambiguous || spelled[i].score(sentence, m)+company >= 2 {
			kept = append(kept, m)
		}
	}
	return kept
}

// at is where the name ends that begins at i, or 0 when it is not there.
func (s spelling) at(text string, i int) int {
	if before, _ := utf8.DecodeLastRuneInString(text[:i]); before == '_' || before == '@' || before == '-' && (s.ambiguous || len(s.text) < 4) {
		return 0
	}
	j := i
	for _, want := range s.text {
		got, n := utf8.DecodeRuneInString(text[j:])
		if n == 0 {
			return 0
		}
		same := got == want || !s.exact && unicode.ToLower(got) == unicode.ToLower(want) ||
			want == '-' && got == '–' || want == '\'' && got == '’'
		if !same {
			return 0
		}
		j += n
	}
	if wordEnd(text, j) > j || strings.HasPrefix(text[j:], "_") || strings.HasPrefix(text[j:], "@") {
		return 0
	}
	// A longer name that is not known is not this one.
	if rest := text[j:]; s.ambiguous && strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "-based") && wordEnd(rest, 1) > 1 {
		return 0
	}
	return j
}

var (
	equation = compiled(`^\s*(?:[=<>≤≥≈∼~²]|\d)`)
	manner   = set("using,with,by,in,via,through,into,implemented,employing,program")
	things   = set("software,package,program,tool,tools,toolkit,toolbox,suite,pipeline,aligner,library,code,simulator,platform,framework,algorithm,plugin,server,caller,classifier,assembler")
)

// score weighs what speaks for a tool whose name is also an ordinary word.
func (s spelling) score(sentence string, m mention) int {
	before, after := sentence[:m.start], sentence[m.end:]
	v := version(after)
	if len(s.text) == 1 && equation().MatchString(after) && v == "" {
		return -2
	}
	score := 0
	if sentence[m.start:m.end] != s.text {
		score--
	}
	if strings.Contains(v, ".") {
		score += 2
	}
	if things[strings.ToLower(strings.Trim(firstWord(after), "().,;"))] {
		score += 2
	}
	if last := strings.ToLower(lastWord(before)); manner[last] || last == "the" && manner[strings.ToLower(lastWord(strings.TrimSuffix(before, "the ")))] {
		score++
	}
	context := 0
	for _, w := range strings.FieldsFunc(strings.ToLower(before+" "+after), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(".,;:()[]'’\"", r) }) {
		if s.tool.contexts[w] {
			context++
		}
		if s.tool.against[w] {
			score -= 2
		}
	}
	return score + min(context, 2)
}

func firstWord(text string) string {
	if f := strings.Fields(text); len(f) > 0 {
		return f[0]
	}
	return ""
}

func lastWord(text string) string {
	text = strings.TrimRight(text, " (")
	return text[strings.LastIndexAny(text, " (")+1:]
}

var notUsed = compiled(`(?i)(?:\bunlike|\brather than|\binstead of|\bin contrast to|\bas opposed to|\bnot (?:use|using|rely on|run|need)|\bwithout(?: using)?|\bneither|\bnor|\bcompared? (?:with|to|against)|\boutperform\w*|\balternatives? to|\bno longer use|\breplac(?:es|ing)|\bfaster than|\bslower than|\bbetter than|\bversus|\bvs\.?)\s+(?:the\s+|that\s+of\s+|those\s+of\s+)?$`)

// used leaves out the tools that a sentence only sets against others, and
// finds the versions.
func used(sentence string, found []mention) []mention {
	kept := found[:0]
	for i, m := range found {
		if notUsed().MatchString(sentence[max(0, m.start-60):m.start]) {
			continue
		}
		tail := sentence[m.end:]
		if i+1 < len(found) {
			tail = sentence[m.end:found[i+1].start]
		}
		m.version = cmp.Or(version(tail), version(cited().ReplaceAllString(tail, "")), ownVersion(m.tool, sentence[m.start:m.end]))
		kept = append(kept, m)
	}
	return kept
}

// cited is who made a tool, between its name and its version.
var cited = compiled(`^\s*[(\[][^()\[\]]*\bet al\b[^()\[\]]*[)\]]`)

// What stands between a name and its version.
const between = `^(?:\s+(?i:software|package|program|suite|tools?|toolkit|toolbox|aligner|pipeline|server|library|module|code|algorithm|statistics|multiphysics|desktop|pro|analysis|framework|plugin|caller))*(?:\s+(?i:for\s+(?:windows|mac\w*|linux)))?`

var (
	namedVersion  = compiled(between + `\s*[,;]?\s*[([]?\s*(?i:v|ver|vers|version|release|rev|revision)\.?\s*(\d[\w.+-]*)`)
	dottedVersion = compiled(between + `(?:[-/]|\s*[,;]?\s*[([]?\s*)(\d+(?:\.\d+)+[\w-]*)`)
	plainVersion  = compiled(between + `\s+(\d{1,2}|20[0-3]\d)(?:[,;)]|\.$|\s+(?:software|package|program|suite|was|were)\b|\s*\()`)
	yearVersion   = compiled(between + `\s*[,;]?\s*[([]?\s*(R?20\d\d[ab])\b`)
	insideVersion = compiled(`^[^()]{0,40}\([^()]{0,100}?(?:(?i:\b(?:v|ver|version|release)\.?\s*)(\d[\w.+-]*)|(R20\d\d[ab]))`)
)

// version reads the version out of what follows the name of a tool.
func version(after string) string {
	after = after[:min(len(after), 160)]
	for _, stated := range []pattern{yearVersion, namedVersion, dottedVersion, plainVersion, insideVersion} {
		if m := stated().FindStringSubmatch(after); m != nil {
			v := strings.TrimRight(strings.Join(m[1:], ""), ".-+_")
			return v[:min(len(v), 24)]
		}
	}
	return ""
}

var trailing = compiled(`\d[\d.]*[a-z]?$`)

// ownVersion is a version that is part of the spelling, as in SPM12.
func ownVersion(t *tool, spelled string) string {
	if trailing().MatchString(t.name) {
		return ""
	}
	return trailing().FindString(spelled)
}
