package guarded

import (
	"strings"
	"testing"
)

// steps are a definition around a node that uses a secret.
func steps(node string) string {
	return `{"parameters":{"host":{"type":"string","default":"a.org"},"day":{"type":"string","default":"monday"},"other":{"type":"integer","default":1}},
		"nodes":[{"id":"first","command":"date $PARAM_day > d"},{"id":"before","command":"cat","position":{"x":1,"y":1}},{"id":"closed","secrets":["KEY"],` + node + `},{"id":"free","command":"true"}],
		"edges":[{"id":"d","source":"first","target":"before"},{"id":"e","source":"before","target":"closed"},{"id":"f","source":"closed","target":"free"}]}`
}

func TestWhatFeedsAStepWithSecretsIsGuarded(t *testing.T) {
	t.Parallel()
	plain := steps(`"command":"curl $PARAM_host"`)
	host, other := `"default":"a.org"`, `"default":1`
	for name, tt := range map[string]struct {
		definition, from, to string
		guarded              bool
	}{
		"its command":                        {plain, "curl", "wget", true},
		"its secrets":                        {plain, `["KEY"]`, `["KEY","MORE"]`, true},
		"no secrets any more":                {plain, `"secrets":["KEY"],`, ``, true},
		"secrets of another":                 {plain, `"id":"free",`, `"id":"free","secrets":["KEY"],`, true},
		"a connection of another":            {plain, `"id":"free",`, `"id":"free","connection":"conn_1",`, true},
		"what comes into it":                 {plain, `"source":"before"`, `"source":"other"`, true},
		"a step before it":                   {plain, `"cat"`, `"cat evil"`, true},
		"a step before that":                 {plain, `"date $`, `"evil $`, true},
		"a parameter of a step before it":    {plain, `"monday"`, `"friday"`, true},
		"what comes into a step before it":   {plain, `"edges":[`, `"edges":[{"id":"g","source":"free","target":"first"},`, true},
		"steps under another spelling":       {plain, `"edges":[`, `"nodeſ":[{"id":"closed","secrets":["KEY"]}],"edges":[`, false},
		"secrets under another spelling":     {plain, `"secrets":`, `"secretſ":`, true},
		"where its output goes":              {plain, `"target":"free"`, `"target":"other"`, false},
		"a parameter of its command":         {plain, host, `"default":"evil.org"`, true},
		"a parameter of its variables":       {steps(`"command":"x","env":{"URL":"$PARAM_host"}`), host, `"default":"evil.org"`, true},
		"a parameter that it scatters over":  {steps(`"command":"curl $ITEM","scatter":{"over":"[params.host]"}`), host, `"default":"evil.org"`, true},
		"a parameter of its condition":       {steps(`"command":"x","when":"params.other > 0"`), other, `"default":2`, true},
		"one that no expression names":       {steps(`"command":"x","when":"params.other > 0"`), host, `"default":"evil.org"`, false},
		"parameters that it takes together":  {steps(`"command":"x","when":"has(params .host)"`), host, `"default":"evil.org"`, true},
		"parameters that it takes as a file": {steps(`"command":"curl -d @$PARAMS_FILE"`), other, `"default":2`, true},
		"a file of them in its variables":    {steps(`"command":"x","env":{"F":"$PARAMS_FILE"}`), other, `"default":2`, true},
		"a parameter of others":              {plain, other, `"default":2`, false},
		"the command of others":              {plain, `"true"`, `"false"`, false},
		"where nodes are drawn":              {plain, `"x":1`, `"x":2`, false},
		"software of another":                {plain, `"id":"free",`, `"id":"free","environment":{"packages":["x"]},`, true},
		"code for all":                       {plain, `{"parameters"`, `{"source":{"git":"https://a.org/x"},"parameters"`, true},
		"an end of it":                       {plain, `"edges":[`, `"edges":`, true},
	} {
		changed := strings.Replace(tt.definition, tt.from, tt.to, 1)
		if changed == tt.definition {
			t.Fatalf("%s: nothing is changed", name)
		}
		if got := Text([]byte(tt.definition)) != Text([]byte(changed)); got != tt.guarded {
			t.Errorf("%s: guarded is %v", name, got)
		}
	}
}

func TestWithoutSecretsNothingIsGuarded(t *testing.T) {
	t.Parallel()
	for _, definition := range []string{`{}`, `{"nodes":[]}`, `{"parameters":{"n":{}},"nodes":[{"id":"a","command":"$PARAM_n"}]}`} {
		if got := Text([]byte(definition)); got != "" {
			t.Errorf("%s guards %s", definition, got)
		}
	}
	if Text([]byte(`{"nodes":{}}`)) == "" {
		t.Error("what cannot be read is not guarded")
	}
	if Text([]byte(`{"nodes":{}}`)) == Text([]byte(`{"nodes":{"a":{"secrets":["KEY"]}}}`)) {
		t.Error("what cannot be read may be changed into anything")
	}
}

// Names that only look like those of a definition hide nothing: U+017F is the letter
// that encoding/json takes for an s.
func TestOtherSpellingsHideNothing(t *testing.T) {
	t.Parallel()
	before := steps(`"command":"curl"`)
	nodes := before[strings.Index(before, `"nodes":`)+len(`"nodes":`) : strings.Index(before, `"edges":`)]
	for _, name := range []string{"nodeſ", "NODES", "Nodes"} {
		after := strings.Replace(before, "curl", "evil", 1)
		after = strings.Replace(after, `"edges":`, `"`+name+`":`+nodes+`"edges":`, 1)
		if Text([]byte(before)) == Text([]byte(after)) {
			t.Errorf("with the old steps under %q the new ones are not guarded", name)
		}
	}
}

// What is no step hides none of those beside it.
func TestStrayValuesHideNothing(t *testing.T) {
	t.Parallel()
	const free, closed = `{"id":"a","command":"true"}`, `{"id":"a","command":"true","secrets":["KEY"]}`
	for _, stray := range []string{`"text"`, `7`, `null`, `true`, `["x"]`, `[{"secrets":["KEY"]}]`} {
		definition := func(node string) []byte {
			return []byte(`{"nodes":[` + stray + `,` + node + `,` + stray + `],"edges":[` + stray + `,{"id":"e","source":"b","target":"a"}]}`)
		}
		if got := Text(definition(free)); got != "" {
			t.Errorf("beside %s: guards %s", stray, got)
		}
		if got, alone := Text(definition(closed)), Text([]byte(`{"nodes":[`+closed+`],"edges":[{"id":"e","source":"b","target":"a"}]}`)); got != alone {
			t.Errorf("beside %s: guards %s, alone %s", stray, got, alone)
		}
	}
}

func TestUnknownSecretsAreListedWhereTheyAreNamed(t *testing.T) {
	t.Parallel()
	known := func(name string) bool { return name == "KEY" }
	list := UnknownSecrets([]byte(`{"nodes":[{"secrets":["KEY"]},{},{"secrets":["KEY","KAY"]}]}`), known)
	if len(list) != 1 || list[0].Path != "nodes[2].secrets[1]" || !strings.Contains(list[0].Message, `"KAY"`) {
		t.Errorf("%+v", list)
	}
	for _, definition := range []string{`{}`, `{"nodes":[{"secrets":["KEY"]}]}`, `{"nodes":[{"secrets":"KAY"}]}`, `{"secrets"`} {
		if list := UnknownSecrets([]byte(definition), known); list != nil {
			t.Errorf("%s: %+v", definition, list)
		}
	}
	long := UnknownSecrets([]byte(`{"nodes":[{"secrets":["`+strings.Repeat("é", 10_000)+`"]}]}`), known)
	if len(long) != 1 || len(long[0].Message) > 300 || !strings.Contains(long[0].Message, `é…"`) {
		t.Errorf("a long name: %+v", long)
	}
	many := UnknownSecrets([]byte(`{"nodes":[{"secrets":["x"`+strings.Repeat(`,"x"`, 10_000)+`]}]}`), known)
	if len(many) != maxUnknown {
		t.Errorf("of many, %d are listed", len(many))
	}
}
