package reference_test

import (
	"html"
	"strings"
	"testing"
)

// What a schema demands of a value is said in words.
func TestConstraintsAreWorded(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string][]string{
		`{"type":"string","minLength":1,"maxLength":63}`:                                                                     {"string", "not empty", "at most 63 characters"},
		`{"type":"string","minLength":2}`:                                                                                    {"at least 2 characters"},
		`{"type":"string","enum":["a","b"],"default":"a"}`:                                                                   {"one of a, b", "default a"},
		`{"type":"string","pattern":"^x$"}`:                                                                                  {"matches ^x$"},
		`{"type":"integer","minimum":0,"maximum":7,"default":0}`:                                                             {"integer", "at least 0", "at most 7", "default 0"},
		`{"type":"number","exclusiveMinimum":0}`:                                                                             {"more than 0"},
		`{"type":"boolean","const":true}`:                                                                                    {"always true"},
		`{"type":"array","minItems":1,"maxItems":20,"items":{"type":"string","format":"uri"}}`:                               {"list of URL", "at least 1 items", "at most 20 items"},
		`{"type":"object","maxProperties":9,"additionalProperties":{"type":"string"}}`:                                       {"map of string", "at most 9 entries"},
		`{"type":["string","null"],"format":"date-time"}`:                                                                    {"time or null"},
		`{"oneOf":[{"type":"string"},{"type":"null"},{"type":"array","items":{"type":"integer"}}]}`:                          {"string or null or list of integer"},
		`{"description":"Set as ` + "`code`" + ` here."}`:                                                                    {"any", "<code>code</code>"},
		`{"type":"object","properties":{"inner":{"type":"object","properties":{"deep":{"type":"string","format":"date"}}}}}`: {"inner", "deep", "day"},
	} {
		doc := `{"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":{"application/json":{"schema":{"type":"object","required":["f"],"properties":{"f":` +
			schema + `}}}}},"responses":{}}}}}`
		page := rendered(t, []byte(doc))
		for _, words := range want {
			if !strings.Contains(page, words) && !strings.Contains(page, html.EscapeString(words)) {
				t.Errorf("%s: nothing says %q", schema, words)
			}
		}
	}
}

// An operation with a tag that nobody describes, or with none, is not lost.
func TestOperationsWithoutARoomAreShown(t *testing.T) {
	t.Parallel()
	page := rendered(t, []byte(`{"tags":[{"name":"runs"}],"paths":{"/a":{"summary":"no method","get":{"operationId":"one","responses":{}},"put":{"operationId":"two","tags":["ai"],"responses":{}}},
		"/b":{"delete":{"operationId":"three","tags":["runs"],"responses":{}}}}}`))
	for _, want := range []string{`id="one"`, `id="two"`, `id="three"`, "Other", "AI", "Runs"} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is missing", want)
		}
	}
}
