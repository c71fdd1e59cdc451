package definitions

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestValuesAreTypedByTheSchema(t *testing.T) {
	t.Parallel()
	g := Graph{}
	if err := json.Unmarshal([]byte(`{"parameters":{"n":{"type":"integer"},"x":{"type":"number"},"b":{"type":"boolean"},"s":{"type":"string"},
		"l":{"type":"array"},"o":{"type":["integer","null"]},"any":{}}}`), &g); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"n=7": `7`, "n=7.5": "", "n=x": "", "x=1e3": `1e3`, "b=true": `true`, "b=1": "", "s=7": `"7"`, "s=a=b": `"a=b"`, "s=": `""`,
		`l=[1,"a"]`: `[1,"a"]`, "l=1": "", "o=null": `null`, "o=3": `3`, "o=x": "", "any=3": `3`, "any=three": `"three"`, "nope=1": "", "n": "",
	} {
		got, err := g.ReadParameters([]string{given})
		name, _, _ := strings.Cut(given, "=")
		if string(got[name]) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s %v", given, got[name], err)
		}
	}
}
