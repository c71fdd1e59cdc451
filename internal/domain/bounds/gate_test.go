package bounds

import (
	"math"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
)

func listOf(t *testing.T, v any) traits.Lister {
	t.Helper()
	list, ok := types.DefaultTypeAdapter.NativeToValue(v).(traits.Lister)
	if !ok {
		t.Fatalf("%T is no list", v)
	}
	return list
}

// nested is a list within a list, so many times.
func nested(deep int) any {
	var v any = "x"
	for range deep {
		v = []any{v}
	}
	return v
}

func TestWhatAnExpressionReturnsIsHandedOnAsJSON(t *testing.T) {
	t.Parallel()
	items, err := ItemsOf(listOf(t, []any{"a\n\"é", true, int64(-3), uint64(7), 1.5, 1e300, nil, []any{int64(1), "x"}, map[string]any{"b": []string{"y"}, "a": nil}, ""}), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`"a\n\"é"`, `true`, `-3`, `7`, `1.5`, `1e+300`, `null`, `[1,"x"]`, `{"a":null,"b":["y"]}`, `""`}
	if items.Len() != len(want) || items.Bytes() != len("a\n\"é")+1+len("bya") {
		t.Errorf("%d items of %d bytes", items.Len(), items.Bytes())
	}
	for i, text := range want {
		if got := items.JSON(i); got != text {
			t.Errorf("item %d is %s, want %s", i, got, text)
		}
	}
}

func TestWhatCannotBeHandedOnIsSaid(t *testing.T) {
	t.Parallel()
	mb := strings.Repeat("x", MaxValue)
	seventeen := make([]string, 17)
	for i := range seventeen {
		seventeen[i] = mb
	}
	for name, tt := range map[string]struct {
		list any
		want string // empty: it can
	}{
		"as deep as may be":       {[]any{nested(MaxDepth - 1)}, ""},
		"deeper":                  {[]any{nested(MaxDepth)}, "item 1: the value is nested more than 64 deep"},
		"as many as may be":       {make([]bool, MaxElements), ""},
		"more":                    {make([]bool, MaxElements+1), "the value unfolds into more than 100000 elements"},
		"more within":             {[]any{"x", make([]bool, MaxElements)}, "item 2: the value unfolds into more than 100000 elements"},
		"as long as may be":       {[]string{mb}, ""},
		"longer":                  {[]string{mb + "x"}, "item 1: a text is longer than 1 MB"},
		"long in two parts":       {[]any{[]string{mb, "x"}}, "item 1: one value is larger than 1 MB"},
		"two long ones":           {[]string{mb, mb}, ""},
		"long together":           {seventeen, "item 17: the values are together larger than 16 MB"},
		"NUL":                     {[]string{"a", "b\x00"}, "item 2: a text contains the NUL character"},
		"broken text":             {[]string{"\xff"}, "item 1: a text is not valid UTF-8"},
		"a broken name":           {[]any{map[string]any{"\xff": 1}}, "item 1: a text is not valid UTF-8"},
		"a name that is a number": {[]any{map[int64]string{1: "x"}}, "item 1: the keys of a map must be texts"},
		"no number":               {[]float64{1, math.NaN()}, "item 2: NaN is not a number that can be handed on"},
		"without end":             {[]float64{math.Inf(-1)}, "item 1: -Inf is not a number that can be handed on"},
		"too large a number":      {[]uint64{math.MaxInt64, math.MaxInt64 + 1}, "item 2: the number 9223372036854775808 is too large"},
		"bytes":                   {[]any{[]byte("x")}, "item 1: a value of type bytes cannot be handed to a task"},
	} {
		_, err := ItemsOf(listOf(t, tt.list), nil)
		if got := errorText(err); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A value that holds itself many times over is stopped while it is unfolded.
func TestAValueThatSharesItsPartsIsStopped(t *testing.T) {
	t.Parallel()
	var v any = "x"
	for range 40 { // 2^40 of them, in forty lists
		v = []any{v, v}
	}
	w := NewWork()
	w.left = 2*MaxElements - 1
	if _, err := ItemsOf(listOf(t, v), w); err == nil || !strings.Contains(err.Error(), "100000 elements") {
		t.Error(err)
	}
	if w.left > MaxElements || w.Spent() != nil {
		t.Errorf("%d steps are left", w.left)
	}
	_, _ = ItemsOf(listOf(t, v), w)
	if err := w.Spent(); err == nil || !strings.Contains(err.Error(), "20000000 steps together") {
		t.Errorf("a run goes on for ever: %v", err)
	}
	if (*Work)(nil).Spent() != nil {
		t.Error("who counts nothing is stopped")
	}
}

func TestAnExpressionHasSoManySteps(t *testing.T) {
	t.Parallel()
	m := NewMeter(nil)
	m.Spend(MaxWork)
	w := NewWork()
	w.Spend(m)
	if w.left != MaxRunWork-MaxWork {
		t.Errorf("%d steps are left", w.left)
	}
	defer func() {
		if recover() == nil {
			t.Error("one step more is done")
		}
	}()
	m.Spend(1)
}

func TestPatternsAreWeighedBeforeTheyAreCompiled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pattern string
		want    string // part of what is wrong; empty: nothing
	}{
		"a plain one":             {`^[a-z]+\.fastq(\.gz)?$`, ""},
		"as long as may be":       {strings.Repeat("a", maxPattern), ""},
		"longer":                  {strings.Repeat("a", maxPattern+1), "at most 1000 characters"},
		"none":                    {`(`, "missing closing"},
		"looks behind":            {`(?<=x)y`, "invalid"},
		"as often as may be":      {`a{999}`, ""},
		"as much of it as may be": {`(?:ab){999}`, ""},
		"a little more":           {`(?:ab){1000}`, "complex"},
		"much, and often":         {`(?:abcdefghijklmnopqrstuvwxyz){100}`, "complex"},
		"much, at least so often": {`(?:abcdefghijklmnopqrstuvwxyz){100,}`, "complex"},
		"often and often":         {`(a{100}){100}`, "invalid repeat count"},
		"groups, often":           {`(((a))){999}`, "complex"},
		"empty":                   {``, ""},
	} {
		p, err := CompilePattern(tt.pattern)
		if got := errorText(err); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if err == nil && (p.Steps > maxSteps || p.Regexp == nil) {
			t.Errorf("%s takes %d steps", name, p.Steps)
		}
	}
}

func TestTheOnesOfADefinitionAreBoundedTogether(t *testing.T) {
	t.Parallel()
	var all Patterns
	one := strings.Repeat("a", 1000)
	for range 100 { // the same again costs nothing
		if _, err := all.Compile(one); err != nil {
			t.Fatal(err)
		}
	}
	n := 1
	for ; n < 100; n++ {
		if _, err := all.Compile(one[:999] + string(rune('A'+n%26))); err != nil {
			break
		}
	}
	if n != maxPatterns/1000 {
		t.Errorf("%d of them are taken", n)
	}
	var folded Patterns
	if _, err := folded.Compile(`(?i)` + one[:900]); err != nil {
		t.Error(err)
	}
	if _, err := folded.Compile(`(?mi)` + one[:900]); err == nil {
		t.Error("where case is ignored, a pattern costs no more than others")
	}
}
