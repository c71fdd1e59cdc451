package graph

import (
	"strings"
	"testing"
)

func TestTheDefinitionIsReturnedAsWritten(t *testing.T) {
	t.Parallel()
	src := `{"x-own":{"b":1.50,"a":[null,true,"é\n"]},"nodes":[{"ui":{"z":1e2},"id":"b","position":{"y":2.0,"x":1}},{"id":"a","name":"A","position":{"x":400,"y":0}}],"ui":{},"edges":[{"id":"e","ui":1,"source":"a","target":"b"}]}`
	if got := string(parsed(t, src).JSON()); got != src {
		t.Errorf("have %s", got)
	}
}

func TestANodeWithoutPositionIsGivenOne(t *testing.T) {
	t.Parallel()
	got := string(parsed(t, `{"nodes":[{"id":"a"},{"id":"b"}],"edges":[{"id":"e","source":"a","target":"b"}]}`).JSON())
	want := `{"nodes":[{"id":"a","position":{"x":0,"y":0}},{"id":"b","position":{"x":320,"y":0}}],"edges":[{"id":"e","source":"a","target":"b"}]}`
	if got != want {
		t.Errorf("have %s", got)
	}
}

func TestTheFingerprintSeesWhatCounts(t *testing.T) {
	t.Parallel()
	const base = `{"version":1,"x-a":1000,"nodes":[{"id":"a","command":"x","resources":{"vcpu":1}},{"id":"b"}],"edges":[{"id":"e","source":"a","target":"b"}],"parameters":{"ui":{"default":{"ui":1}}}}`
	g := parsed(t, base)
	for name, tt := range map[string]struct {
		src  string
		same bool
	}{
		"another order of keys":       {`{"parameters":{"ui":{"default":{"ui":1}}},"x-a":1000,"nodes":[{"command":"x","id":"a","resources":{"vcpu":1}},{"id":"b"}],"edges":[{"target":"b","source":"a","id":"e"}],"version":1}`, true},
		"another order of nodes":      {strings.Replace(base, `{"id":"a","command":"x","resources":{"vcpu":1}},{"id":"b"}`, `{"id":"b"},{"id":"a","command":"x","resources":{"vcpu":1}}`, 1), true},
		"white space":                 {strings.ReplaceAll(base, ",", " ,\n"), true},
		"other positions":             {strings.Replace(base, `{"id":"b"`, `{"id":"b","position":{"x":7,"y":7}`, 1), true},
		"ui":                          {strings.Replace(base, `"vcpu":1`, `"vcpu":1,"ui":{}`, 1), true},
		"other spellings of numbers":  {strings.Replace(strings.Replace(base, `1000`, `1.0e3`, 1), `"vcpu":1`, `"vcpu":100e-2`, 1), true},
		"another spelling of letters": {strings.Replace(base, `"x"`, `"\u0078"`, 1), true},
		"another command":             {strings.Replace(base, `"x"`, `"y"`, 1), false},
		"a field of one's own":        {strings.Replace(base, `1000`, `1001`, 1), false},
		"a value that is named ui":    {strings.Replace(base, `{"ui":1}`, `{"ui":2}`, 1), false},
		"a parameter named ui":        {strings.Replace(base, `{"ui":{"default":{"ui":1}}}`, `{}`, 1), false},
		"a default written out":       {strings.Replace(base, `"command"`, `"type":"task","command"`, 1), false},
		"an edge turned around":       {strings.Replace(base, `"source":"a","target":"b"`, `"source":"b","target":"a"`, 1), false},
	} {
		if same := parsed(t, tt.src).Fingerprint() == g.Fingerprint(); same != tt.same {
			t.Errorf("%s: the same is %v", name, same)
		}
	}
}

func TestANumberHasOneSpelling(t *testing.T) {
	t.Parallel()
	for lit, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "0e999999999999999999": "0", "1": "1", "-1.0": "-1", "1e3": "1000", "1E+3": "1000",
		"1200": "1200", "0.5": "0.5", "5e-1": "0.5", "50e-2": "0.5", "123.4500": "123.45", "1e21": "1e21", "1e20": "100000000000000000000",
		"0.000001": "0.000001", "0.0000001": "1e-7", "1.5e-9": "1.5e-9", "9007199254740993": "9007199254740993",
		"1234567890123456789012345": "1.234567890123456789012345e24",
	} {
		if got := canonicalNumber(lit); got != want {
			t.Errorf("%s is spelled %s, want %s", lit, got, want)
		}
	}
}

func TestValuesAreTheSameHoweverTheyAreSpelled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`1`, `1.0`, true},
		{`{"a":1,"b":[2]}`, ` {"b":[20e-1], "a":1}`, true},
		{`"x"`, `"\u0078"`, true},
		{`null`, `null`, true},
		{`9007199254740993`, `9007199254740992`, false},
		{`0.1`, `0.10000000000000000001`, false},
		{`[1,2]`, `[2,1]`, false},
		{`"1"`, `1`, false},
		{`null`, `0`, false},
		{`{}`, `[]`, false},
		{``, ``, false},
		{`1`, `1 2`, false},
	} {
		if same := SameValue([]byte(tt.a), []byte(tt.b)); same != tt.same {
			t.Errorf("%s and %s: the same is %v", tt.a, tt.b, same)
		}
	}
}
