package definitionfile_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/definitionfile"
)

func TestAFileIsReadAsItsAuthorMeantIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nodes: []": `{"nodes":[]}`,
		"a: 1\nb: 0x10\nc: 1.50\nd: yes\ne: true":                                 `{"a":1,"b":16,"c":1.5,"d":"yes","e":true}`,
		"on: [oom]\nn: ~\nd: 2026-01-02":                                          `{"on":["oom"],"n":null,"d":"2026-01-02"}`,
		"1: one\ntrue: two":                                                       `{"1":"one","true":"two"}`,
		"command: |\n  set -e\n  ls\n":                                            `{"command":"set -e\nls\n"}`,
		"x-base: &b {cpu: 1, ram: 2}\nn: {<<: *b, ram: 4}":                        `{"x-base":{"cpu":1,"ram":2},"n":{"ram":4,"cpu":1}}`,
		"a: &a {k: 1}\nb: &b {k: 2, l: 2}\nc: {<<: [*a, *b]}":                     `{"a":{"k":1},"b":{"k":2,"l":2},"c":{"k":1,"l":2}}`,
		"name: Mine\ndescription: why\nlicense: MIT\ndefinition: {nodes: [{}]}\n": `{"nodes":[{}]}`,
	} {
		f, err := definitionfile.Read("millrace.yaml", []byte(text))
		if err != nil || string(f.Definition) != want {
			t.Errorf("%q is %s, want %s: %v", text, f.Definition, want, err)
		}
		if strings.HasPrefix(text, "name") && (f.Name != "Mine" || f.Description != "why" || f.License != "MIT") {
			t.Errorf("%q is called %q", text, f.Name)
		}
	}
	if f, err := definitionfile.Read("millrace.json", []byte(`{"name":"x","definition":{"nodes":[]}}`)); err != nil || f.Name != "x" || string(f.Definition) != `{"nodes":[]}` {
		t.Errorf("%+v %v", f, err)
	}
}

func TestAHostileFileIsRefusedWithASentence(t *testing.T) {
	t.Parallel()
	lol := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	merges := "a: &a {}\n"
	for _, pair := range []string{"ba", "cb", "dc", "ed", "fe", "gf", "hg", "ih", "ji"} {
		to, from := string(pair[0]), string(pair[1])
		lol += to + ": &" + to + " [" + strings.TrimSuffix(strings.Repeat("*"+from+",", 10), ",") + "]\n"
		merges += to + ": &" + to + " {<<: [" + strings.TrimSuffix(strings.Repeat("*"+from+",", 10), ",") + "]}\n"
	}
	for name, tt := range map[string]struct{ file, text, want string }{
		"empty":          {"millrace.yaml", "", "empty"},
		"two documents":  {"millrace.yaml", "a: 1\n---\nb: 2", "more than one"},
		"aliases":        {"millrace.yaml", lol, "unfold"},
		"merges":         {"millrace.yaml", merges, "unfold"},
		"itself":         {"millrace.yaml", "a: &a [*a]", "deep"},
		"merges itself":  {"millrace.yaml", "a: &a\n  <<: *a", ""},
		"deep":           {"millrace.yaml", strings.Repeat("[", 300) + strings.Repeat("]", 300), "deep"},
		"very deep":      {"millrace.yaml", strings.Repeat("- ", 100_000), ""},
		"twice":          {"millrace.yaml", "a: 1\na: 2", "twice"},
		"a tag":          {"millrace.yaml", "a: !!python/object x", "tag"},
		"infinity":       {"millrace.yaml", "a: .inf", "number"},
		"too large":      {"millrace.yaml", strings.Repeat("#\n", 600_000), "1 MB"},
		"a key":          {"millrace.yaml", "? [a]\n: b", "key"},
		"no object":      {"millrace.json", "[]", "object"},
		"broken":         {"millrace.json", "{\n\"a\":}", "line 2"},
		"name is number": {"millrace.json", `{"name":1,"definition":{}}`, "name"},
	} {
		if f, err := definitionfile.Read(tt.file, []byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 300 {
			t.Errorf("%s: %.100s %v", name, f.Definition, err)
		}
	}
}

func TestTheNameOrTheTextSaysWhetherItIsYAML(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"a.yaml", "{}", true},
		{"a.YML", "{}", true},
		{"a.json", "nodes: []", false},
		{"a.JSON", "nodes: []", false},
		{"-", "nodes: []", true},
		{"-", " \n{\"nodes\": []}", false},
		{"-", "[]", false},
		{"-", "", false},
		{"definition", "name: x", true},
	} {
		if got := definitionfile.IsYAML(tt.name, []byte(tt.text)); got != tt.want {
			t.Errorf("%s with %q: %v", tt.name, tt.text, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a: &a {b: 1}\nc: {<<: *a}")
	f.Add("- !!binary x\n- ? a\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := definitionfile.Read("millrace.yaml", []byte(text))
		if err == nil && len(file.Definition) > definitionfile.MaxBytes+len(text) {
			t.Errorf("%d bytes of %d", len(file.Definition), len(text))
		}
	})
}
