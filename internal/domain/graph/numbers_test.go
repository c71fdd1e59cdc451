package graph

import (
	"strings"
	"testing"
)

// outlandish are numbers that JSON allows and nobody can compute with, and why
// they are refused; those without a reason are zeros.
var outlandish = map[string]string{
	"1e9223372036854775807":      "does not fit",
	"10e9223372036854775807":     "does not fit",
	"0.1e-9223372036854775808":   "does not fit",
	"-0.01e-9223372036854775807": "does not fit",
	"1e99999999999999999999999":  "does not fit",
	"1e-99999999999999999999999": "does not fit",
	"1e3900000":                  "does not fit",
	"1e-3900000":                 "does not fit",
	"1e309":                      "does not fit",
	"-1e309":                     "does not fit",
	"1e-324":                     "does not fit",
	strings.Repeat("1", 401):     "longer than 400 characters",
	strings.Repeat("7", 1<<16):   "longer than 400 characters",
	"0e9223372036854775807":      "",
	"0e99999999999999999999999":  "",
	"-0.0e-9223372036854775808":  "",
}

// Wherever such a number stands, it is refused in words, and nothing computes
// with it meanwhile.
func TestNumbersThatNobodyCanComputeWith(t *testing.T) {
	t.Parallel()
	places := map[string]string{
		`{"ui":{"a":[N]}}`:                                        "ui.a[0]",
		`{"x-a":N}`:                                               "x-a",
		`{"version":N}`:                                           "version",
		task(`"retries":{"max":N}`):                               "nodes[0].retries.max",
		task(`"timeoutSeconds":N`):                                "nodes[0].timeoutSeconds",
		task(`"resources":{"gpu":N}`):                             "nodes[0].resources.gpu",
		task(`"position":{"x":N,"y":0}`):                          "nodes[0].position.x",
		`{"parameters":{"p":{"minimum":N}}}`:                      "parameters.p.minimum",
		`{"parameters":{"p":{"enum":[1,N]}}}`:                     "parameters.p.enum[1]",
		`{"parameters":{"p":{"multipleOf":N}}}`:                   "parameters.p.multipleOf",
		`{"parameters":{"p":{"maxLength":N}}}`:                    "parameters.p.maxLength",
		`{"parameters":{"p":{"minimum":0,"default":N}}}`:          "parameters.p.default",
		`{"parameters":{"p":{"type":"integer","default":N}}}`:     "parameters.p.default",
		`{"parameters":{"p":{"required":` + list("N", 30) + `}}}`: "parameters.p.required[0]",

		`{"parameters":{"p":{"uniqueItems":true,"default":` + list("N", 30) + `}}}`: "parameters.p.default[0]",
	}
	for lit, says := range outlandish {
		for place, path := range places {
			src := strings.ReplaceAll(place, "N", lit)
			g, problems := Salvage([]byte(src))
			if says != "" {
				wantProblem(t, problems, path, says)
			}
			g.Canonical()
			if again, _ := Salvage(g.JSON()); string(again.JSON()) != string(g.JSON()) {
				t.Errorf("%.60s: salvaged twice it is another", src)
			}
		}
	}
}

func TestParametersThatNobodyCanComputeWith(t *testing.T) {
	t.Parallel()
	several := strings.Repeat(`{"type":"string"},`, 40) + `{"minimum":0}`
	for _, schema := range []string{`{}`, `{"minimum":0}`, `{"type":"integer"}`, `{"multipleOf":3}`, `{"const":4}`, `{"anyOf":[` + several + `]}`, `{"items":{"exclusiveMaximum":4},"uniqueItems":true}`} {
		g := parsed(t, `{"parameters":{"p":`+schema+`}}`)
		for lit, says := range outlandish {
			for _, given := range []string{lit, `[` + lit + `,1,2]`, `{"a":{"b":` + lit + `}}`} {
				_, problems := g.CheckParameters([]byte(`{"p":` + given + `}`))
				if says == "" {
					continue // whether a zero matches is the schema's business
				}
				if len(problems) == 0 || !strings.Contains(problems[0].Message, says) || !strings.HasPrefix(problems[0].Path, "parameters.p") {
					t.Errorf("%s takes %.40s: %v", schema, given, problems)
				}
			}
		}
	}
	for a, b := range map[string]string{"0e9223372036854775807": "0", "-0e5": "0", "100e-2": "1", "1.50": "15e-1"} {
		if !SameValue([]byte(a), []byte(b)) {
			t.Errorf("%s is not %s", a, b)
		}
	}
}

// The largest and the smallest that can be told apart pass, and have one spelling.
func TestNumbersAtTheEdge(t *testing.T) {
	t.Parallel()
	for lit, want := range map[string]string{
		"1.7976931348623157e308":              "1.7976931348623157e308",
		"5e-324":                              "5e-324",
		"-123e-2":                             "-1.23",
		"100000000000000000000":               "100000000000000000000",
		"1e20":                                "100000000000000000000",
		"1000000000000000000000":              "1e21",
		"1e21":                                "1e21",
		"0.000001":                            "0.000001",
		"0.0000001":                           "1e-7",
		"1" + strings.Repeat("0", 300):        "1e300",
		"0." + strings.Repeat("0", 300) + "1": "1e-301",
		strings.Repeat("9", 308):              "9." + strings.Repeat("9", 307) + "e307",
	} {
		g := parsed(t, `{"x-a":`+lit+`}`)
		if got := string(g.Canonical()); got != `{"x-a":`+want+`}` {
			t.Errorf("%.40s is written %.60s", lit, got)
		}
		if got := string(g.JSON()); got != `{"x-a":`+lit+`}` {
			t.Errorf("%.40s is kept as %.60s", lit, got)
		}
	}
}
