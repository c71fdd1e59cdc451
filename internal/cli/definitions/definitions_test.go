package definitions

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/definitionfile"
)

func TestAWorkflowIsReadFromWhatPeopleHave(t *testing.T) {
	t.Parallel()
	const bare = `{"nodes":[{"id":"a","command":"true"}]}`
	for name, tt := range map[string]struct {
		file, text, named string
		want              string // its name
		described         bool
		fails             string
	}{
		"a definition":                  {file: "align.json", text: bare, want: "align"},
		"a definition under a name":     {file: "align.json", text: bare, named: "Other", want: "Other"},
		"an exported workflow":          {file: "x.json", text: `{"name":"Align","description":"d","definition":` + bare + `}`, want: "Align", described: true},
		"an exported one, renamed":      {file: "x.json", text: `{"name":"Align","definition":` + bare + `}`, named: "Other", want: "Other", described: true},
		"an exported one without name":  {file: "x.json", text: `{"definition":` + bare + `}`, want: "x", described: true},
		"a name of a definition is not": {file: "x.json", text: `{"name":"Align","nodes":[]}`, want: "x"},
		"several dots":                  {file: "my.flow.v2.json", text: bare, want: "my.flow.v2"},
		"standard input under a name":   {file: "-", text: bare, named: "n", want: "n"},
		"standard input without":        {file: "-", text: bare, fails: "set one with --name"},
		"something else":                {file: "x.json", text: `{"hello":1}`, fails: `neither "definition" nor "nodes"`},
		"YAML":                          {file: "align.yaml", text: "nodes:\n  - id: a\n    command: |\n      true\n", want: "align"},
		"an exported workflow in YAML":  {file: "x.yml", text: "name: Align\ndefinition:\n  nodes: []\n", want: "Align", described: true},
		"YAML on standard input":        {file: "-", text: "nodes: []\n", named: "n", want: "n"},
		"no YAML":                       {file: "x.yaml", text: "nodes: [\n", fails: "x.yaml: line 1: "},
		"YAML that unfolds":             {file: "x.yaml", text: "a: &a [*a]", fails: "nested"},
		"YAML without steps":            {file: "x.yaml", text: "hello: 1", fails: `neither "definition" nor "nodes"`},
		"no JSON":                       {file: "x.json", text: "{\n\"nodes\": [\n}", fails: "x.json: line 3: "},
		"half of it":                    {file: "x.json", text: "{\"nodes\":\n[", fails: "line 2: "},
		"a list":                        {file: "x.json", text: `[]`, fails: "it is not an object"},
		"nothing":                       {file: "x.json", text: ``, fails: "unexpected end"},
		"too much":                      {file: "x.json", text: strings.Repeat(" ", definitionfile.MaxBytes+1), fails: "has more than 8.0 MB"},
		"no file":                       {file: "gone.json", fails: "gone.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, path := screen.Console{In: strings.NewReader(tt.text)}, tt.file
			if path != "-" {
				path = filepath.Join(t.TempDir(), tt.file)
				if tt.text != "" || name == "nothing" {
					if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			got, err := ReadWorkflow(w, path, Naming{Name: tt.named})
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			if err != nil || got.Name != tt.want || (got.Description != nil) != tt.described || !json.Valid(got.Definition) || !strings.Contains(string(got.Definition), "nodes") {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestALicenseIsReadFromTheFileUnlessOneIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.json")
	for text, want := range map[string][2]string{
		`{"license":"MIT","definition":{"nodes":[]}}`: {"MIT", "CC0-1.0"},
		`{"definition":{"nodes":[]}}`:                 {"", "CC0-1.0"},
		`{"nodes":[]}`:                                {"", "CC0-1.0"},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for i, named := range []string{"", "CC0-1.0"} {
			got, err := ReadWorkflow(screen.Console{}, path, Naming{License: named})
			if err != nil || (got.License != nil) != (want[i] != "") || got.License != nil && *got.License != want[i] {
				t.Errorf("%s with %q has the license %v: %v", text, named, got.License, err)
			}
		}
	}
}

const taking = `{"parameters":{"n":{"type":"integer"},"s":{"type":"string"}},"inputs":{"one":{"type":"file"},"many":{"type":"files"},"folder":{"type":"directory"}}}`

func TestInputsAreFilesKeysAndAddresses(t *testing.T) {
	t.Parallel()
	g, err := ReadGraph([]byte(taking))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"a.fq", "b.fq", "odd[1].fq"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "reads"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		given      []string
		connection string
		want       string // JSON, or a part of the error
		uploads    string
	}{
		"nothing":                    {nil, "", `{}`, ""},
		"a file":                     {[]string{"one=$/a.fq"}, "", `{"one":"key of a.fq"}`, "a.fq"},
		"a key":                      {[]string{"one=teams/t/x"}, "", `{"one":"teams/t/x"}`, ""},
		"a pattern":                  {[]string{"many=$/?.fq"}, "", `{"many":["key of a.fq","key of b.fq"]}`, "a.fq b.fq"},
		"a name that looks like one": {[]string{"one=$/odd[1].fq"}, "", `{"one":"key of odd[1].fq"}`, "odd[1].fq"},
		"several":                    {[]string{"many=teams/t/x", "many=$/a.fq"}, "", `{"many":["teams/t/x","key of a.fq"]}`, "a.fq"},
		"an address":                 {[]string{"one=s3://b/x"}, "", `{"one":"s3://b/x"}`, ""},
		"by a connection":            {[]string{"many=s3://b/*.fq", "many=teams/t/x"}, "conn_1", `{"many":[{"connection":"conn_1","url":"s3://b/*.fq"},"teams/t/x"]}`, ""},
		"with an equals sign":        {[]string{"one=https://a.org/x?y=z"}, "", `{"one":"https://a.org/x?y=z"}`, ""},
		"a folder elsewhere":         {[]string{"folder=s3://b/x/"}, "", `{"folder":"s3://b/x/"}`, ""},
		"a local folder":             {[]string{"folder=$/reads/", "many=$/a.fq"}, "", `{"folder":"key of reads","many":["key of a.fq"]}`, "reads a.fq"},

		"no name":                             {[]string{"one"}, "", "-i one: enter name=file", ""},
		"no value":                            {[]string{"one="}, "", "-i one=: enter name=file", ""},
		"another input":                       {[]string{"two=x"}, "", `no input "two"; it takes folder, many, one`, ""},
		"no such file":                        {[]string{"one=$/gone"}, "", "there is no local file", ""},
		"nothing matches":                     {[]string{"many=$/*.bam"}, "", "no file matches", ""},
		"a broken pattern":                    {[]string{"many=$/[a"}, "", "-i many: ", ""},
		"two for one":                         {[]string{"one=$/?.fq"}, "", "-i one: this input takes one file", ""},
		"two for one, by turn":                {[]string{"one=teams/t/x", "one=teams/t/y"}, "", "-i one: this input takes one file", ""},
		"nothing is sent before all is known": {[]string{"many=$/a.fq", "two=x"}, "", `no input "two"`, ""},
		"nor before there is too much":        {[]string{"one=$/a.fq", "one=$/b.fq"}, "", "this input takes one file", ""},
		"a folder in place of files":          {[]string{"many=$/a.fq", "many=$/reads"}, "", "reads is a folder, and this input takes files: enter '", ""},
		"a file in place of a folder":         {[]string{"folder=$/a.fq"}, "", "a.fq is a file, and this input takes a folder", ""},
		"two folders":                         {[]string{"folder=$/reads", "folder=$/reads"}, "", "this input takes one folder", ""},
		"refused by upload":                   {[]string{"many=$/a.fq", "many=$/b.fq"}, "refusing b.fq", "b.fq is refused", "a.fq"},
	} {
		var uploaded []string
		upload := func(paths []string) (keys []string, err error) {
			for _, path := range paths {
				name := filepath.Base(path)
				if strings.HasSuffix(tt.connection, name) {
					return nil, errors.New(name + " is refused")
				}
				uploaded = append(uploaded, name)
				keys = append(keys, "key of "+name)
			}
			return keys, nil
		}
		given := slices.Clone(tt.given)
		for i := range given {
			given[i] = strings.ReplaceAll(given[i], "$", dir)
		}
		got, err := g.ReadInputs(given, tt.connection, upload)
		if !strings.HasPrefix(tt.want, "{") {
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Join(uploaded, " ") != tt.uploads {
				t.Errorf("%s: %v, %v, uploaded %v", name, got, err, uploaded)
			}
			continue
		}
		text, _ := json.Marshal(got)
		if err != nil || string(text) != tt.want || strings.Join(uploaded, " ") != tt.uploads {
			t.Errorf("%s: %s, %v, uploaded %v", name, text, err, uploaded)
		}
	}
}

func TestSizesAreWrittenAsPeopleDo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"4x16": "4 16", "4X16": "4 16", "4x16gb": "4 16", "4x16GB": "4 16", "": "",
		"4": "such as 4x16", "x": "such as 4x16", "4x": "such as 4x16", "x16": "such as 4x16", "4x16x2": "such as 4x16", "four": "such as 4x16", "4.5x16": "such as 4x16", "4x16tb": "such as 4x16",
		"99999999999999999999x1": "such as 4x16",
	} {
		size, profile, err := ComputeFlags{Compute: text}.Size()
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), want) || want == "" {
				t.Errorf("%s: %v", text, err)
			}
		case profile != nil || (size == nil) != (want == ""):
			t.Errorf("%s: %+v %v", text, size, profile)
		case size != nil && (size.Vcpu != 4 || size.RAMGb != 16):
			t.Errorf("%s: %+v", text, size)
		}
	}
	if _, profile, err := (ComputeFlags{GPU: true}).Size(); err != nil || profile == nil {
		t.Errorf("%v, %v", profile, err)
	}
	if _, _, err := (ComputeFlags{Compute: "4x16", GPU: true}).Size(); err == nil {
		t.Error("both are taken")
	}
}

func TestWhatVariesIsTypedToo(t *testing.T) {
	t.Parallel()
	g, err := ReadGraph([]byte(taking))
	if err != nil {
		t.Fatal(err)
	}
	got, err := g.Varied([]string{"n=1,2", "s=a,1,", "n=3"})
	if text, _ := json.Marshal(got); err != nil || string(text) != `{"n":[1,2,3],"s":["a","1",""]}` {
		t.Errorf("%s, %v", text, err)
	}
	for given, want := range map[string]string{"n": "enter name=value,value", "n=": "enter name=value,value", "n=1,x": `--vary n: "x" is not a valid integer`, "m=1": `no parameter "m"; it takes n, s`, "n=1,,2": `"" is not a valid integer`} {
		if _, err := g.Varied([]string{given}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", given, err)
		}
	}
	if _, err := ReadGraph([]byte(`{"parameters":[]}`)); err == nil || !strings.Contains(err.Error(), "can't read the workflow's definition") {
		t.Errorf("%v", err)
	}
}

func TestArraysAndObjectsVaryAsAWhole(t *testing.T) {
	t.Parallel()
	g, err := ReadGraph([]byte(`{"parameters":{"l":{"type":"array"},"o":{"type":"object"},"s":{"type":"string"},"either":{"type":["string","array"]},"any":{},"n":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{ // the values, or a part of the error
		`l=[1,2],[3]`:                `[[1,2],[3]]`,
		`l=[1,2] , [3]`:              `[[1,2],[3]]`,
		`l=[]`:                       `[[]]`,
		`l=["a,]",[1,[2]]],["\"],"]`: `[["a,]",[1,[2]]],["\"],"]]`,
		`o={"a":[1,2],"b":"}"},{}`:   `[{"a":[1,2],"b":"}"},{}]`,
		`any=[1,2],{"a":1},3,word`:   `[[1,2],{"a":1},3,"word"]`,
		`either=[1,2],a,b`:           `[[1,2],"a","b"]`,
		`either=[a,b`:                `["[a","b"]`,   // no JSON: words, as before
		`either=[1]x,2`:              `["[1]x","2"]`, // nor is this
		`s=[1,2]`:                    `["[1","2]"]`,  // a text takes no array
		`s={"a":1,"b":2}`:            `["{\"a\":1","\"b\":2}"]`,
		`l=[1,2],`:                   `--vary l: "" is not a valid array`,
		`l=[1,2`:                     `--vary l: "[1" is not a valid array`,
		`l=1,[2]`:                    `--vary l: "1" is not a valid array`,
		`l=[1][2]`:                   `--vary l: "[1][2]" is not a valid array`,
		`o=[1,2]`:                    `--vary o: "[1,2]" is not a valid object`,
		`n=[1,2]`:                    `--vary n: "[1" is not a valid integer`,
	} {
		name, _, _ := strings.Cut(given, "=")
		got, err := g.Varied([]string{given})
		if !strings.HasPrefix(want, "[") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s, %v", given, got[name], err)
			}
			continue
		}
		if text, _ := json.Marshal(got[name]); err != nil || string(text) != want {
			t.Errorf("%s: %s, %v", given, text, err)
		}
	}
}
