package reader

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// The lexicon is data: a table of tools for each field of science, what each
// kind of task takes and makes, and what types of files there are.
//
//go:embed lexicon/*.tsv lexicon/tools/*.tsv
var tables embed.FS

// tool is a program, a package, or a collection of data.
type tool struct {
	name  string
	field string
	kind  *kind
	image string
	how   string // how a task uses it: see command

	contexts map[string]bool // of a name that is also an ordinary word: what speaks for the tool
	against  map[string]bool // and what speaks against it
}

// kind is what a task with a tool does.
type kind struct {
	name    string
	title   string
	inputs  []port
	outputs []port
}

type port struct {
	name     string
	holds    string // a type of files
	path     string // of an output
	optional bool
}

// holding is a type of files.
type holding struct {
	many        bool
	description string
}

// spelling is one way to write the name of a tool.
type spelling struct {
	text      string
	tool      *tool
	exact     bool // capitals matter
	ambiguous bool // the name is also an ordinary word
}

type dictionary struct {
	tools     []*tool
	kinds     map[string]*kind
	holdings  map[string]holding
	spellings map[string][]spelling // by the first word, in small letters; the longest first
	words     map[string]bool       // names that are one word, in small letters
}

// lexicon reads the tables once. They are part of the program, and a test
// holds them to their form.
var lexicon = sync.OnceValue(func() *dictionary {
	d := &dictionary{kinds: map[string]*kind{}, holdings: map[string]holding{}, spellings: map[string][]spelling{}, words: map[string]bool{}}
	for row := range rows("lexicon/types.tsv") {
		d.holdings[row[0]] = holding{many: row[1] == "many", description: row[2]}
	}
	for row := range rows("lexicon/kinds.tsv") {
		d.kinds[row[0]] = &kind{name: row[0], title: row[1], inputs: ports(row[2]), outputs: ports(row[3])}
	}
	files, err := tables.ReadDir("lexicon/tools")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		for row := range rows("lexicon/tools/" + f.Name()) {
			d.add(row, strings.TrimSuffix(f.Name(), path.Ext(f.Name())))
		}
	}
	for _, list := range d.spellings {
		slices.SortStableFunc(list, func(a, b spelling) int { return len(b.text) - len(a.text) })
	}
	return d
})

// rows yields the rows of a table, each with at least six columns.
func rows(file string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		text, err := tables.ReadFile(file)
		if err != nil {
			panic(err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\n")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			row := strings.Split(line, "\t")
			for len(row) < 6 {
				row = append(row, "")
			}
			if !yield(row) {
				return
			}
		}
	}
}

// ports reads a list such as "reads=reads,table=table:out.csv,design=design?".
func ports(list string) []port {
	var all []port
	for item := range strings.SplitSeq(list, ",") {
		name, rest, ok := strings.Cut(item, "=")
		if !ok {
			continue
		}
		holds, file, _ := strings.Cut(rest, ":")
		holds, optional := strings.CutSuffix(holds, "?")
		all = append(all, port{name: name, holds: holds, path: file, optional: optional})
	}
	return all
}

// add reads a row: name, other spellings, rule, kind, image, how. The rule is
// empty where capitals do not matter, "=" where they do, and "?words!words"
// where the name is also an ordinary word, with what speaks for and against.
// A spelling that begins with "=" minds its capitals whatever the rule.
func (d *dictionary) add(row []string, field string) {
	t := &tool{name: row[0], field: field, kind: d.kinds[row[3]], image: row[4], how: row[5]}
	if t.kind == nil {
		panic(fmt.Sprintf("%s: there is no kind %q", t.name, row[3]))
	}
	rule, ambiguous := strings.CutPrefix(row[2], "?")
	if ambiguous {
		context, against, _ := strings.Cut(rule, "!")
		t.contexts, t.against = set(context), set(against)
	}
	d.tools = append(d.tools, t)
	d.spell(spelling{text: t.name, tool: t, exact: rule == "=", ambiguous: ambiguous})
	for other := range strings.SplitSeq(row[1], ";") {
		if other == "" {
			continue
		}
		plain, exact := strings.CutPrefix(other, "=")
		d.spell(spelling{text: plain, tool: t, exact: exact || rule == "="})
	}
}

func (d *dictionary) spell(s spelling) {
	first := s.text[:wordEnd(s.text, 0)]
	d.spellings[strings.ToLower(first)] = append(d.spellings[strings.ToLower(first)], s)
	if !strings.Contains(s.text, " ") {
		d.words[strings.ToLower(s.text)] = true
	}
}

func set(list string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.SplitSeq(list, ",") {
		if w != "" {
			all[w] = true
		}
	}
	return all
}

// wordEnd is where the letters and digits from i on end.
func wordEnd(text string, i int) int {
	for j, r := range text[i:] {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return i + j
		}
	}
	return len(text)
}
