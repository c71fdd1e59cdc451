package graph

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/bounds"
)

func list(item string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

// over evaluates what the node c is scattered over.
func over(t *testing.T, expression string) (bounds.Items, error) {
	t.Helper()
	g := parsed(t, spread(expression))
	n, _ := g.Node("c")
	return g.EvalOver(n, scope(t, g))
}

func TestWhatAnExpressionReturnsIsCheckedLikeAnythingFromOutside(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 1_000) + `"`
	nested := "1"
	for range 20 {
		nested = "[" + nested + "]"
	}
	for name, tt := range map[string]struct{ over, says string }{
		"options after a NUL":      {`["x\u0000--bind\u0000/\u0000/\u0000--"]`, "item 1: a text contains the NUL character"},
		"NUL in a key":             {`["", {"a\u0000b": 1}]`, "a text contains the NUL character"},
		"NUL deep inside":          {`[[{"a": ["\x00"]}]]`, "NUL"},
		"a number without end":     {`[1.0 / 0.0]`, "not a number"},
		"no number at all":         {`[0.0 / 0.0]`, "not a number"},
		"a number that wraps":      {`[18446744073709551615u]`, "too large"},
		"more than a MB":           {`[` + list(long, 1) + `[0]].map(s, s+s+s+s+s+s+s+s+s+s).map(s, s+s+s+s+s+s+s+s+s+s).map(s, s+s+s+s+s+s+s+s+s+s).map(s, s+s)`, "than 1 MB"},
		"many together":            {`[` + long + `].map(s, s+s+s+s+s+s+s+s+s+s).map(s, s+s+s+s+s+s+s+s+s+s).map(s, [s,s,s])[0].map(s, [s,s,s,s,s,s,s,s,s,s,s])`, "than 1 MB"},
		"too deep":                 {`[` + nested + `].map(a, ` + strings.Replace(nested, "1", "a", 1) + `).map(a, ` + strings.Replace(nested, "1", "a", 1) + `).map(a, ` + strings.Replace(nested, "1", "a", 1) + `)`, "nested more than 64 deep"},
		"ten to the eighth values": {`[[1]]` + strings.Repeat(`.map(a, [a,a,a,a,a,a,a,a,a,a])`, 8), "steps"},
		"too many elements":        {`[[1]]` + strings.Repeat(`.map(a, [a,a,a,a,a,a,a,a,a,a])`, 5), "more than 100000 elements"},
	} {
		_, err := over(t, tt.over)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %s", name, err, tt.says)
		}
	}
}

// Each of these costs CEL itself next to nothing.
func TestAnExpressionIsStoppedBeforeItTakesTheServerDown(t *testing.T) {
	t.Parallel()
	shared := `[[1]]` + strings.Repeat(`.map(a, [a,a,a,a,a,a,a,a,a,a])`, 8)
	numbers := "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]"
	inside := `x == x`
	for range 9 {
		inside = fmt.Sprintf(`[[%[1]s,%[1]s,%[1]s,%[1]s,%[1]s,%[1]s,%[1]s,%[1]s]].exists(x, %[2]s)`, "x", inside)
	}
	for name, when := range map[string]string{
		"comparing what shares itself":    shared + `.exists(a, a == a)`,
		"searching what shares itself":    `dyn([1]) in ` + shared,
		"nesting without a list":          strings.Replace(inside, "[[x,x,x,x,x,x,x,x]]", "[[1,1,1,1,1,1,1,1]]", 1),
		"joining lists":                   `[[1]]` + strings.Repeat(`.map(a, a+a+a+a+a+a+a+a+a+a)`, 8) + `.exists(a, a == a)`,
		"joining texts":                   `["x"]` + strings.Repeat(`.map(a, a+a+a+a+a+a+a+a+a+a)`, 8) + `.exists(a, a == "")`,
		"counting a long text again":      `["xxxxxxxxxx"]` + strings.Repeat(`.map(a, a+a+a+a+a+a+a+a+a+a)`, 5) + `.exists(s, ` + list("1", 20) + `.exists(b, ` + list("1", 20) + `.exists(c, ` + list("1", 20) + `.exists(d, size(s) < 0))))`,
		"a pattern that unfolds":          `"a".matches("((((a{100}){100}){100}){100})")`,
		"patterns that are made up":       numbers + `.exists(a, ` + numbers + `.exists(b, "".matches(string(a) + "x" + string(b) + "(?i)[B-\\x{1e943}]")))`,
		"the same pattern on a long text": `["aaaaaaaaaa"]` + strings.Repeat(`.map(a, a+a+a+a+a+a+a+a+a+a)`, 4) + `.exists(s, ` + list("1", 40) + `.exists(b, s.matches("((a?){30}){30}b")))`,
	} {
		g, problems := Parse([]byte(choosing(when)))
		if len(problems) > 0 {
			t.Errorf("%s: refused: %v", name, problems)
			continue
		}
		n, _ := g.Node("c")
		if _, err := g.EvalWhen(n, scope(t, g)); err == nil {
			t.Errorf("%s: nothing stopped it", name)
		}
	}
}

// A run's expressions are each cheap enough and together are not.
func TestTheExpressionsOfARunHaveOneAllowance(t *testing.T) {
	t.Parallel()
	g := parsed(t, choosing(`[[1]]`+strings.Repeat(`.map(a, [a,a,a,a,a,a,a,a,a,a])`, 5)+`.all(a, a == a)`))
	n, _ := g.Node("c")
	s := scope(t, g)
	s.Work = bounds.NewWork()
	for i := range 1_000 {
		answer, err := g.EvalWhen(n, s)
		if err != nil {
			if i < 20 || !strings.Contains(err.Error(), "together") {
				t.Errorf("after %d: %v", i, err)
			}
			return
		}
		if !answer {
			t.Fatal("it is not so")
		}
	}
	t.Error("nothing stopped them")
}

func TestHonestExpressionsOverMuchAreNotStopped(t *testing.T) {
	t.Parallel()
	reads := make([]string, MaxShards)
	for i := range reads {
		reads[i] = fmt.Sprintf("teams/team_0123456789/files/%06d/sample.fastq.gz", i)
	}
	for _, expression := range []string{
		`inputs.reads`,
		`inputs.reads.filter(r, r.endsWith(".gz"))`,
		`inputs.reads.filter(r, r.matches("^teams/[a-z0-9_]+/files/[0-9]{6}/.*\\.fastq\\.gz$"))`,
		`inputs.reads.map(r, {"read": r, "sample": size(r)})`,
	} {
		g := parsed(t, spread(expression))
		n, _ := g.Node("c")
		s := scope(t, g)
		s.Inputs = map[string][]string{"reads": reads}
		got, err := g.EvalOver(n, s)
		if err != nil || got.Len() != MaxShards {
			t.Errorf("%s: %d items, %v", expression, got.Len(), err)
		}
	}
}

func TestAMessageAboutAnExpressionCanBeShownAndStored(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{
		`[{"a": 1}["b\u0000\n\x1b[31m"]]`,
		`[int(["xxxxxxxxxx"]` + strings.Repeat(`.map(a, a+a+a+a+a+a+a+a+a+a)`, 4) + `[0])]`,
	} {
		_, err := over(t, expression)
		if err == nil {
			t.Errorf("%s: no error", expression)
			continue
		}
		if said := err.Error(); len(said) > 2_000 || !utf8.ValidString(said) || strings.ContainsAny(said, "\x00\n\x1b") {
			t.Errorf("%d bytes: %.400q", len(said), said)
		}
	}
}

func TestAParameterPassesTheSameGate(t *testing.T) {
	t.Parallel()
	g := parsed(t, `{"parameters":{"p":{}}}`)
	for given, says := range map[string]string{
		`{"p":"a\u0000b"}`:     "NUL",
		`{"p":{"a\u0000b":1}}`: "NUL",
		`{"p":"` + strings.Repeat("x", bounds.MaxValue+1) + `"}`:          "longer than 1 MB",
		`{"p":` + list("1", bounds.MaxElements) + `}`:                     "more than 100000 elements",
		`{"p":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`: "",
		`{"p":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`: "nested more than 64",
		`{"p":` + strings.Repeat("[", 1_000_000) + `}`:                    "nested more than 64",
		"{\"p\":\"\xff\"}": "not valid JSON",
	} {
		_, problems := g.CheckParameters([]byte(given))
		if says == "" && len(problems) > 0 || says != "" && (len(problems) == 0 || !strings.Contains(problems[0].Message, says)) {
			t.Errorf("%.40s…: %v, want %q", given, problems, says)
		}
	}
}
