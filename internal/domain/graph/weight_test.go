package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/bounds"
)

// dear are definitions with parameters that take as much work to check as is
// allowed, or would take more.
func dear() map[string]struct{ definition, given string } {
	param := func(schema string) string { return `{"parameters":{"p":` + schema + `}}` }
	seq := func(n int, each func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(each(i))
		}
		return b.String()
	}
	number := func(i int) string { return fmt.Sprint(i) }
	return map[string]struct{ definition, given string }{
		"numbers among many":    {param(`{"items":{"enum":[` + seq(10_500, number) + `]}}`), `{"p":[` + seq(20_000, func(int) string { return "10499" }) + `]}`},
		"numbers among some":    {param(`{"items":{"enum":[` + seq(500, number) + `]}}`), `{"p":[` + seq(950, func(int) string { return "499" }) + `]}`},
		"tiny numbers":          {param(`{"items":{"enum":[` + seq(100, func(i int) string { return fmt.Sprintf("%de-300", i+1) }) + `]}}`), `{"p":[` + seq(4, func(int) string { return "99e-300" }) + `]}`},
		"texts among many":      {param(`{"items":{"enum":[` + seq(6_000, func(i int) string { return fmt.Sprintf(`"t%06d"`, i) }) + `]}}`), `{"p":[` + seq(3_000, func(int) string { return `"t005999"` }) + `]}`},
		"all wrong":             {param(`{"items":{"anyOf":[` + seq(700, func(int) string { return `{"type":"null"}` }) + `]}}`), `{"p":[` + seq(1_000, number) + `]}`},
		"all wrong and deep":    {param(`{"items":{"items":{"items":{"anyOf":[` + seq(100, func(int) string { return `{"minimum":1e9}` }) + `]}}}}`), `{"p":[` + seq(40, func(int) string { return "[[" + seq(100, number) + "]]" }) + `]}`},
		"unique":                {param(`{"items":{"uniqueItems":true}}`), `{"p":[` + seq(400, func(int) string { return "[" + seq(200, number) + "]" }) + `]}`},
		"a slow pattern":        {param(`{"pattern":"((a?){20}){20}b"}`), `{"p":"` + strings.Repeat("a", 10_000) + `"}`},
		"names that are wanted": {param(`{"items":{"required":[` + seq(5_000, func(i int) string { return fmt.Sprintf(`"n%d"`, i) }) + `]}}`), `{"p":[` + seq(1_000, func(int) string { return "{}" }) + `]}`},
		"wide and unevaluated":  {param(`{"unevaluatedProperties":false,"anyOf":[` + seq(300, func(i int) string { return fmt.Sprintf(`{"properties":{"k%d":true}}`, i) }) + `]}`), `{"p":{` + seq(1_000, func(i int) string { return fmt.Sprintf(`"k%d":1`, i) }) + `}}`},
	}
}

func TestCheckingAParameterIsAnAllowanceOfWork(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"numbers among many":    "too large to be checked",
		"numbers among some":    "too large to be checked",
		"tiny numbers":          "",
		"all wrong":             "too large to be checked",
		"a slow pattern":        "does not match",
		"names that are wanted": "does not match",
	} {
		d := dear()[name]
		g := parsed(t, d.definition)
		_, problems := g.CheckParameters([]byte(d.given))
		if says == "" && len(problems) > 0 || says != "" && (len(problems) != 1 || !strings.Contains(problems[0].Message, says)) {
			t.Errorf("%s: %v, want %q", name, problems, says)
		}
	}
}

func TestAnHonestListOfTenThousandIsChecked(t *testing.T) {
	t.Parallel()
	g := parsed(t, `{"parameters":{"p":{"type":"array","uniqueItems":true,"items":{"type":"string","minLength":3,"pattern":"^[A-Za-z0-9_-]+$"}}}}`)
	var names []string
	for i := range MaxShards {
		names = append(names, fmt.Sprintf(`"sample-%05d"`, i))
	}
	if _, problems := g.CheckParameters([]byte(`{"p":[` + strings.Join(names, ",") + `]}`)); len(problems) > 0 {
		t.Error(problems)
	}
	names[77] = `"two words"`
	_, problems := g.CheckParameters([]byte(`{"p":[` + strings.Join(names, ",") + `]}`))
	wantProblem(t, problems, "parameters.p", "does not match its schema")
}

func TestAPatternIsWeighedBeforeItIsCompiled(t *testing.T) {
	t.Parallel()
	for pattern, ok := range map[string]bool{
		`^[A-Z]{1,20}$`:             true,
		`(a{31}){32}`:               true,
		`((a{10}){10}){10}`:         true,
		`((a{30}){30}){3}`:          false,
		`(((a{10}){10}){10}){10}`:   false,
		`a{1001}`:                   false,
		strings.Repeat("a", 1_001):  false,
		strings.Repeat("(a?)", 200): true,
	} {
		if _, err := bounds.CompilePattern(pattern); (err == nil) != ok {
			t.Errorf("%.40s: %v", pattern, err)
		}
	}
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf(`"p%d":{"pattern":"%d%s"}`, i, i, strings.Repeat("x", 400)))
	}
	_, problems := Parse([]byte(`{"parameters":{` + strings.Join(many, ",") + `}}`))
	if len(problems) == 0 || !strings.Contains(problems[0].Message, "together longer than 16 KB") {
		t.Errorf("%d problems", len(problems))
	}
}

func BenchmarkTheDearestParameters(b *testing.B) {
	for name, d := range dear() {
		b.Run(name, func(b *testing.B) {
			g, problems := Parse([]byte(d.definition))
			if len(problems) > 0 {
				b.Fatal(problems)
			}
			b.ReportAllocs()
			for b.Loop() {
				_, problems = g.CheckParameters([]byte(d.given))
			}
			if len(problems) > 0 {
				b.Log(problems[0])
			}
		})
	}
}

func BenchmarkTheDearestSchemas(b *testing.B) {
	var ranges, repeats, folds []string
	for i := range 256 {
		ranges = append(ranges, fmt.Sprintf(`"p%d":{"pattern":"%s"}`, i, fmt.Sprint(i)+strings.Repeat(`(?i)[B-\\x{1e943}]`, 55)))
		repeats = append(repeats, fmt.Sprintf(`"p%d":{"pattern":"%s"}`, i, strings.Repeat("(", 3)+fmt.Sprint(i)+"{10}){10}){10}"))
		folds = append(folds, fmt.Sprintf(`"p%d":{"enum":[%s]}`, i, strings.Repeat("1,", 400)+"1"))
	}
	for name, list := range map[string][]string{"ranges": ranges, "repeats": repeats, "enums": folds} {
		b.Run(name, func(b *testing.B) {
			data := []byte(`{"parameters":{` + strings.Join(list, ",") + `}}`)
			b.ReportAllocs()
			for b.Loop() {
				Parse(data)
			}
		})
	}
}
