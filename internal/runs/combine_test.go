package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
)

func raw(texts ...string) (list []json.RawMessage) {
	for _, text := range texts {
		list = append(list, json.RawMessage(text))
	}
	return list
}

func TestEveryCombinationIsMadeOnce(t *testing.T) {
	t.Parallel()
	for _, common := range []string{`{"c":true}`, `{}`, `null`, ``} {
		var given []byte
		if common != "" {
			given = []byte(common)
		}
		list, err := combinations(given, map[string][]json.RawMessage{"b": raw("1", "2", "3"), "a": raw(`"x"`, `"y"`)}, 6)
		if err != nil {
			t.Fatalf("%s: %v", common, err)
		}
		var got []string
		for _, one := range list {
			got = append(got, string(one["a"])+string(one["b"]))
			if (string(one["c"]) == "true") != strings.Contains(common, "c") {
				t.Errorf("%s: %v", common, one)
			}
		}
		if want := `["x"1 "x"2 "x"3 "y"1 "y"2 "y"3]`; fmt.Sprint(got) != want { // the last name varies fastest
			t.Errorf("%s: %v, want %s", common, got, want)
		}
	}
}

func TestWhatCannotBeSweptIsSaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		common string
		vary   map[string][]json.RawMessage
		path   string
		says   string
	}{
		"nothing varies":        {`{}`, nil, "vary", "names no parameter"},
		"no values":             {`{}`, map[string][]json.RawMessage{"a": {}}, "vary.a", "has no values"},
		"common, too":           {`{"a":1}`, map[string][]json.RawMessage{"a": raw("1")}, "vary.a", "is among the common parameters"},
		"too many of one":       {`{}`, map[string][]json.RawMessage{"a": raw(strings.Fields(strings.Repeat("1 ", 101))...)}, "vary", "makes more than 100 runs"},
		"too many together":     {`{}`, map[string][]json.RawMessage{"a": raw("1", "2"), "b": raw(strings.Fields(strings.Repeat("1 ", 51))...)}, "vary", "makes more than 100 runs"},
		"many names of a value": {`{}`, powers(60), "vary", "makes more than 100 runs"},
	} {
		list, err := combinations([]byte(tt.common), tt.vary, 100)
		f, _ := errors.AsType[*fault.Error](err)
		if f == nil || f.Kind != fault.KindInvalid || len(f.Details) != 1 || f.Details[0].Path != tt.path || !strings.Contains(f.Message, tt.says) {
			t.Errorf("%s: %d combinations, %+v", name, len(list), err)
		}
	}
	if _, err := combinations([]byte(`[]`), powers(1), 100); err == nil {
		t.Error("a list is taken for parameters")
	}
}

// powers are so many parameters with two values each.
func powers(n int) map[string][]json.RawMessage {
	vary := map[string][]json.RawMessage{}
	for i := range n {
		vary[fmt.Sprintf("p%02d", i)] = raw("1", "2")
	}
	return vary
}

func TestRunsAreNamedByWhatVaries(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`20`: "q=20", `"fast"`: "q=fast", `"two  words\n"`: "q=two words", `null`: "q=", `[1,2]`: "q=[1,2]", `{"a":"b"}`: `q={"a":"b"}`,
		`"` + strings.Repeat("é", 300) + `"`: "q=" + strings.Repeat("é", 17) + "…",
	} {
		if got := sweepName([]string{"q"}, map[string]json.RawMessage{"q": json.RawMessage(value)}, 20); got != want {
			t.Errorf("%.30s: %q, want %q", value, got, want)
		}
	}
	if got := sweepName([]string{"a", "b"}, map[string]json.RawMessage{"a": []byte("1"), "b": []byte(`"x"`)}, 20); got != "a=1, b=x" {
		t.Error(got)
	}
	// As people's own names: one line of text.
	for _, value := range []string{`"a\u0000b"`, `"a\u007fb\u0085c\u001b[31m"`, "[\"\x7f\u0085\"]", "{\"\xff\":1}", "\"\xff\""} {
		got := sweepName([]string{"q"}, map[string]json.RawMessage{"q": json.RawMessage(value)}, 50)
		if strings.ContainsFunc(got, unicode.IsControl) || !utf8.ValidString(got) {
			t.Errorf("%q is named %q", value, got)
		}
	}
}
