package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/runs/addresses"
)

const asking = `{"inputs":{"one":{"type":"file","required":true},"many":{"type":"files","required":false},"folder":{"type":"directory","required":false}},"nodes":[{"id":"a","command":"true"}]}`

// read reads inputs as they stand in a request.
func read(t *testing.T, inputs string, literal bool) (givenInputs, []string) {
	t.Helper()
	g, problems := graph.Parse([]byte(asking))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(inputs), &given); err != nil {
		t.Fatal(err)
	}
	in, wrong := readInputs(g, given, literal)
	var said []string
	for _, d := range wrong {
		said = append(said, d.Path+": "+d.Message)
	}
	return in, said
}

func TestEverythingWrongWithInputsIsSaidAtTheirPlace(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("ab", 32)
	for inputs, want := range map[string][]string{ // the beginnings of what is said
		`{"one":"k"}`: nil,
		`{"one":"k","many":["a","b"],"folder":"teams/t/runs/r/o/"}`: nil,
		`{"one":"k","many":[]}`:  nil,
		`{"one":["k"]}`:          nil,
		`{}`:                     {"inputs.one: is missing"},
		`{"one":"k","more":"x"}`: {"inputs.more: is not an input of this workflow"},
		`{"one":["a","b"]}`:      {"inputs.one: takes one file"},
		`{"one":"k","folder":["s3://abc/a/","s3://abc/b/"]}`: {"inputs.folder: takes one folder"},
		`{"one":"k","folder":[]}`:                            {"inputs.folder: takes one folder"},
		`{"one":7,"many":{"key":"x"},"folder":null}`:         {"inputs.folder: must be", "inputs.many: takes {url", "inputs.one: must be"},

		`{"one":""}`:                                        {"inputs.one: must be"},
		`{"one":"k","many":["a",["b"]]}`:                    {"inputs.many: must be"},
		`{"one":"http://user:pw@a.org/x"}`:                  {"inputs.one: has a password"},
		`{"one":"k","many":["s3://abc/x","s3://abc/../x"]}`: {"inputs.many[1]: has a part"},
		`{"one":"s3://abc/x\u0000y"}`:                       {"inputs.one: is no address"},
		`{"one":{"url":"s3://abc/x","sha256":"ab"}}`:        {"inputs.one: has a sha256"},

		`{"one":"s3://abc/x","many":[{"url":"s3://abc/x","sha256":"` + hash + `"}]}`: {"inputs.one: is given twice"},
		`{"one":"s3://abc/x","many":["s3://abc/x"]}`:                                 nil,
		`{"one":"k","many":{"url":"s3://abc/*.fq","sha256":"` + hash + `"}}`:         {"inputs.many: is a pattern"},
		`{"one":{"url":"s3://abc/*.fq","sha256":"` + hash + `"}}`:                    nil, // a star is a star
		`{"one":"k","folder":"https://a.org/x"}`:                                     {"inputs.folder: "},
	} {
		_, said := read(t, inputs, false)
		if !slices.EqualFunc(said, want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", inputs, said, want)
		}
	}
}

func TestAddressesAreLimitedUnlessTheyAreWhatPatternsMeant(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range addresses.MaxGiven + 1 {
		many = append(many, fmt.Sprintf(`"s3://abc/%d"`, i))
	}
	inputs := `{"one":"k","many":[` + strings.Join(many, ",") + `]}`
	if _, said := read(t, inputs, false); len(said) != 1 || !strings.Contains(said[0], "use a pattern") {
		t.Errorf("given by somebody: %q", said)
	}
	if _, said := read(t, inputs, true); len(said) != 0 {
		t.Errorf("of an earlier run: %q", said)
	}
	in, _ := read(t, `{"one":"s3://abc/*","many":"s3://abc/*.fq"}`, false)
	literal, _ := read(t, `{"one":"s3://abc/*","many":"s3://abc/*.fq"}`, true)
	list, places := in.Addresses()
	for i, want := range []bool{true, false} { // many comes first
		if in.Pattern(list[i], places[i]) != want || literal.Pattern(list[i], places[i]) {
			t.Errorf("%s is a pattern: %v, of an earlier run: %v", in.Path(places[i]), !want, literal.Pattern(list[i], places[i]))
		}
	}
}

func TestPatternsAreReplacedByWhatTheyMean(t *testing.T) {
	t.Parallel()
	in, _ := read(t, `{"one":"k","many":["a","s3://abc/*.fq","b","s3://abc/none*"]}`, false)
	if got := fmt.Sprint(in.Keys()); got != "map[many:[a s3://abc/*.fq b s3://abc/none*] one:[k]]" {
		t.Error(got)
	}
	_, places := in.Addresses()
	got := in.Expanded(map[inputPlace][]string{places[0]: {"s3://abc/1.fq", "s3://abc/2.fq"}})
	if fmt.Sprint(got) != "map[many:[a s3://abc/1.fq s3://abc/2.fq b] one:[k]]" {
		t.Error(got)
	}
}

func TestWhatCannotBeReachedIsSaidTogether(t *testing.T) {
	t.Parallel()
	in, _ := read(t, `{"one":"https://a.org/x?signature=secret","many":["s3://abc/1","s3://abc/2"]}`, false)
	list, places := in.Addresses()
	outside := fault.Forbidden("it is outside").WithCode("outside_prefix")
	for name, tt := range map[string]struct {
		failed []error // of many[0], many[1] and one
		kind   fault.Kind
		code   string
		says   string
		paths  string
	}{
		"none":            {[]error{nil, nil, nil}, "", "", "", ""},
		"two":             {[]error{nil, fault.Invalid("it is closed"), errors.New("dial tcp: password")}, fault.KindInvalid, "input_unreachable", "inputs.many[1]: s3://abc/2: it is closed", "inputs.many[1] inputs.one"},
		"without a word":  {[]error{nil, nil, errors.New("dial tcp: password")}, fault.KindInvalid, "input_unreachable", "inputs.one: https://a.org/x: it did not answer within 10 seconds", "inputs.one"},
		"absent":          {[]error{fault.Invalid("it is closed"), fault.NotFound("no such key"), nil}, fault.KindNotFound, "", "inputs.many[1]: s3://abc/2: no such key", ""},
		"outside of it":   {[]error{fault.NotFound("no such key"), outside, nil}, fault.KindForbidden, "outside_prefix", "it is outside", ""},
		"simply refused":  {[]error{fault.Forbidden("no"), nil, nil}, fault.KindInvalid, "input_unreachable", "inputs.many[0]: s3://abc/1: no", "inputs.many[0]"},
		"absent, refused": {[]error{fault.NotFound("no such key"), fault.Forbidden("no"), nil}, fault.KindNotFound, "", "no such key", ""},
	} {
		err := in.Unreachable(list, places, tt.failed)
		if tt.kind == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		f, _ := errors.AsType[*fault.Error](err)
		if f == nil || f.Kind != tt.kind || f.Code != tt.code || !strings.Contains(f.Message, tt.says) {
			t.Errorf("%s: %+v", name, err)
			continue
		}
		var paths []string
		for _, d := range f.Details {
			paths = append(paths, d.Path)
			if strings.Contains(d.Message, "secret") || strings.Contains(d.Message, "password") {
				t.Errorf("%s tells %s", name, d.Message)
			}
		}
		if strings.Join(paths, " ") != tt.paths {
			t.Errorf("%s is about %v, want %s", name, paths, tt.paths)
		}
	}
}

func TestFilesAndFoldersAreNotTakenForOneAnother(t *testing.T) {
	t.Parallel()
	in, _ := read(t, `{"one":"k","many":["a"],"folder":"f"}`, false)
	folders := map[string]bool{"f": true}
	for inputs, want := range map[string]string{
		"one=k many=a folder=f": "", "folder=s3://abc/x/": "", "one=s3://abc/x": "",
		"one=f": "inputs.one: takes files", "many=s3://abc/x/": "inputs.many: takes files", "folder=k": "inputs.folder: takes a folder",
		"one=f folder=k": "inputs.folder: takes a folder",
	} {
		keys := map[string][]string{}
		for pair := range strings.FieldsSeq(inputs) {
			name, key, _ := strings.Cut(pair, "=")
			keys[name] = []string{key}
		}
		err := in.CheckKinds(keys, folders)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", inputs, err, want)
		}
	}
}
