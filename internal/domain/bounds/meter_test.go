package bounds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
)

// metered evaluates an expression over a list of 1,000 texts of 80 bytes, a map
// of as many, and a text of 80,000, and says what that cost.
func metered(t *testing.T, expression string) (out any, steps int, err error) {
	t.Helper()
	env, err := cel.NewEnv(
		cel.Variable("l", cel.ListType(cel.StringType)), cel.Variable("m", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("s", cel.StringType), cel.Variable("n", cel.IntType), cel.Variable("d", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	checked, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	meter := NewMeter(ReadingsOf(checked))
	program, err := env.Program(checked, cel.CustomDecoratorV2(meter.Decorate))
	if err != nil {
		t.Fatal(err)
	}
	texts, fields := make([]string, 1000), map[string]any{}
	for i := range texts {
		texts[i] = fmt.Sprintf("%080d", i)
		fields[texts[i]] = texts[i]
	}
	value, _, err := program.Eval(map[string]any{"l": texts, "m": fields, "s": strings.Repeat("s", 80_000), "n": 1, "d": 7})
	if err == nil {
		out = value.Value()
	}
	return out, MaxWork - meter.left, err
}

// What only picks or counts is cheap, and what reads costs as much as there is to
// read, however short it is written.
func TestAnExpressionCostsWhatItReads(t *testing.T) {
	t.Parallel()
	const all = 1000 * 11 // to read each text of the list
	for expression, cost := range map[string]struct{ least, most int }{
		`n > 0`:                           {1, 10},
		`size(l) == 1000`:                 {1, 20},
		`size(m) == 1000`:                 {1, 20},
		`l[7] != ""`:                      {10, 60},
		`(n > 0 ? l : l)[7] != ""`:        {10, 80},
		`"none" in m == false`:            {1, 40},
		`"none" in l == false`:            {all, all + 100},
		`l == l`:                          {2 * all, 2*all + 100},
		`m == m`:                          {4 * all, 4*all + 100},
		`size(l + l) == 2000`:             {2 * all, 2*all + 100},
		`size([l, l, l]) == 3`:            {3 * all, 3*all + 100},
		`size({"a": l, "b": l}) == 2`:     {2 * all, 2*all + 100},
		`size(s) == 80000`:                {10_000, 10_100},
		`s.startsWith("s")`:               {10_000, 10_100},
		`s + s != ""`:                     {40_000, 50_100},
		`!l.exists(x, x == "none")`:       {all, 4 * all},
		`l.all(x, size(x) == 80)`:         {all, 4 * all},
		`s.matches("^s")`:                 {2500, 20_000},
		`l.all(x, x.matches("^[0-9]+$"))`: {1000, 40_000},
		`size(l.filter(x, x != "")) > 0`:  {all, 4 * all},
		`has(m.none) || n == 1`:           {1, 20},
		`d == 7`:                          {1, 10},
	} {
		out, steps, err := metered(t, expression)
		if err != nil || out != true || steps < cost.least || steps > cost.most {
			t.Errorf("%s is %v for %d steps, want %d to %d: %v", expression, out, steps, cost.least, cost.most, err)
		}
	}
}

func TestAnExpressionThatCostsTooMuchEnds(t *testing.T) {
	t.Parallel()
	for expression, says := range map[string]string{
		`l.all(x, l.all(y, x != "none" && y != "none"))`:                          "takes more than 2000000 steps",
		`[l,l,l,l,l,l,l,l,l,l].map(a, [a,a,a,a,a,a,a,a,a,a]).map(a, [a,a]) == []`: "takes more than 2000000 steps",
		`l.all(x, size(s + s) > 0)`:                                               "takes more than 2000000 steps",
		`l.all(x, (x + s).matches("^[0-9]+s+$"))`:                                 "steps",
		`s.matches("(")`:            "the pattern of `matches`: error parsing regexp",
		`s.matches("(?:ab){1000}")`: "the pattern is too complex",
		`s.matches(s)`:              "steps",
		`d.matches("x")`:            "no such overload",
		`s.matches(d)`:              "no such overload",
		`s.matches(m["none"])`:      "no such key",
		`m["none"].matches("x")`:    "no such key",
	} {
		out, _, err := metered(t, expression)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s is %v: %v, want %q", expression, out, err, says)
		}
	}
}
