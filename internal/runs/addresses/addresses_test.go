package addresses_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/runs/addresses"
)

func TestWhatIsWrongWithAnAddress(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"s3://lab/run7/a b#1.fq.gz":                  "",
		"s3://lab/run7/*.fq.gz":                      "",
		"https://data.example.org/a?x=1":             "",
		"ftp://data.example.org/a":                   "begins with",
		"uploads/team/a":                             "begins with",
		"s3://lab":                                   "no object",
		"s3://lab/":                                  "no object",
		"s3://LAB/a":                                 "no bucket",
		"s3://lab/run7/":                             "is a folder",
		"s3://lab/reads/../secret":                   "has a part",
		"s3://lab/a\nb":                              "no address",
		"s3://lab/" + strings.Repeat("a", 1025):      "no object",
		"https://":                                   "no address",
		"https://u:p@data.example.org/a":             "password",
		"https://data.example.org/a#part":            "fragment",
		"https://e.org/" + strings.Repeat("a", 5000): "no address",
	} {
		got := addresses.Address{URL: url}.Problem()
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%.60s: %q, want %q", url, got, want)
		}
	}
	if got := (addresses.Address{URL: "s3://lab/a", SHA256: "12"}).Problem(); got == "" {
		t.Error("half a hash")
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, key string
		want         bool
	}{
		{"run7/*.fq.gz", "run7/a.fq.gz", true},
		{"run7/*.fq.gz", "run7/deep/a.fq.gz", false},
		{"run?/*.fq.gz", "run8/a.fq.gz", true},
		{"*/a", "run7/a", true},
		{"a[1].f?", "a[1].fq", true},
		{"a[1].f?", "a1.fq", false},
		{`a\*`, `a\b`, true},
	} {
		if got := addresses.Match(tt.pattern, tt.key); got != tt.want {
			t.Errorf("%s of %s: %v", tt.pattern, tt.key, got)
		}
	}
	if prefix, flat := addresses.Listing("run7/*.fq"); prefix != "run7/" || !flat {
		t.Error(prefix, flat)
	}
	if prefix, flat := addresses.Listing("run*/a.fq"); prefix != "run" || flat {
		t.Error(prefix, flat)
	}
}

func TestWhatAnInputMayBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`"teams/t/a"`:                            1,
		`"s3://lab/a"`:                           1,
		`["teams/t/a", "s3://lab/*"]`:            2,
		`{"url": "s3://lab/a"}`:                  1,
		`[{"url": "s3://lab/a", "sha256": "A"}]`: 1,
		`[]`:                                     0,
		`null`:                                   -1,
		`""`:                                     -1,
		`[""]`:                                   -1,
		`7`:                                      -1,
		`[["a"]]`:                                -1,
		`{"url": 7}`:                             -1,
		`{"url": "s3://lab/a", "secret": "x"}`:   -1,
	} {
		list, err := addresses.Read(json.RawMessage(text))
		if got := len(list); (want < 0) != (err != nil) || err == nil && got != want {
			t.Errorf("%s: %v, %v", text, list, err)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"s3://lab/run7/a b.fq": "a b.fq", "https://e.org/x/r%201.fq?sig=secret": "r 1.fq", "https://e.org/": "file", "https://e.org": "file", "https://e.org/a/..": "file", "https://e.org/a%2F..": "file",
	} {
		if got := (addresses.Address{URL: url}).Name(); got != want {
			t.Errorf("%s: %q", url, got)
		}
	}
	if got := (addresses.Address{URL: "https://e.org/a?sig=secret"}).Shown(); got != "https://e.org/a" {
		t.Error(got)
	}
}

func TestAddressesInAValueAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"https://e.org/a?sig=secret"`:                                    `"https://e.org/a"`,
		`"https://ada:secret@e.org/a#secret"`:                             `"https://e.org/a"`,
		`"https:\/\/e.org\/a\u003fsig=secret"`:                            `"https://e.org/a"`,
		`["s3://lab/a?b", {"r1": "https://e.org/1?sig=secret", "n": 1}]`:  `["s3://lab/a?b",{"n":1,"r1":"https://e.org/1"}]`,
		`[["https://e.org/1?sig=secret"], 12345678901234567890, "<a&b>"]`: `[["https://e.org/1"],12345678901234567890,"<a&b>"]`,
		`{"b": 1, "a": "really?"}`:                                        `{"b": 1, "a": "really?"}`,
		`nothing?`:                                                        `nothing?`,
	} {
		if got := string(addresses.ShownIn(json.RawMessage(raw))); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}
