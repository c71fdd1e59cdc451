package crate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// known is what a team knows of the inputs of its runs.
type known struct {
	runs.DetailStore
	runs.AddressStore
	files     map[string]runs.GivenFile
	elsewhere []addresses.Object
	err       error
	asked     []string
}

func (k *known) FilesAmong(_ context.Context, _ ids.Team, keys []string) (map[string]runs.GivenFile, error) {
	k.asked = keys
	found := map[string]runs.GivenFile{}
	for _, key := range keys {
		if f, ok := k.files[key]; ok {
			found[key] = f
		}
	}
	return found, k.err
}

func (k *known) AddressesOf(context.Context, ids.Team, ids.Run) ([]addresses.Object, error) {
	return k.elsewhere, k.err
}

func object(url string, size int64, learnt string) addresses.Object {
	return addresses.Object{Address: addresses.Address{URL: url}, Size: size, Learnt: learnt}
}

// Inputs come in the order of their names, a folder of a bucket as the files that were
// in it, and what is gone is said to be.
func TestInputsAreWhatTheRunWasGiven(t *testing.T) {
	t.Parallel()
	k := &known{
		files: map[string]runs.GivenFile{"teams/t/a": {Key: "teams/t/a", Name: "a.fq", Size: 3}, "teams/t/d": {Key: "teams/t/d", Name: "d", Folder: true}},
		elsewhere: []addresses.Object{
			object("https://host.example/x", -1, ""), object("s3://lab/reads/1.fq", 1, "aa"), object("s3://lab/reads/2.fq", 2, ""), object("s3://lab/reads2/3.fq", 3, ""),
		},
	}
	s := &Service{Details: k, Known: k}
	for given, want := range map[string]string{
		`{}`:   "",
		`null`: "",
		`{"z":["teams/t/a"],"b":["teams/t/gone","teams/t/a"],"a":[]}`:                        "a: b:gone:teams/t/gone,a.fq z:a.fq",
		`{"r":["s3://lab/reads/"],"x":["https://host.example/x","https://host.example/no"]}`: "r:1.fq,2.fq x:x,gone:https://host.example/no",
		`{"r":["s3://lab/empty/"],"d":["teams/t/d"]}`:                                        "d:d/ r:",
	} {
		list, err := s.inputs(t.Context(), "team", runs.Run{Inputs: []byte(given)})
		if err != nil {
			t.Errorf("%s: %v", given, err)
		}
		var words []string
		for _, in := range list {
			var names []string
			for _, f := range in.files {
				name := f.Name
				if f.Gone {
					name = "gone:" + f.Key
				}
				if f.Folder {
					name += "/"
				}
				names = append(names, name)
			}
			words = append(words, in.name+":"+strings.Join(names, ","))
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
	if _, err := s.inputs(t.Context(), "team", runs.Run{Inputs: []byte(`{"a":"b"}`)}); err == nil {
		t.Error("inputs that cannot be read are described")
	}
	k.err = errors.New("away")
	if _, err := s.inputs(t.Context(), "team", runs.Run{Inputs: []byte(`{}`)}); !errors.Is(err, k.err) {
		t.Errorf("the database is away: %v", err)
	}
}

// A folder is a Dataset wherever it stands, and a size that nobody knows is not told.
func TestFoldersAndSizesAreWhatTheyAre(t *testing.T) {
	t.Parallel()
	const definition = `{"inputs":{"ref":{"type":"directory"},"one":{}},
		"nodes":[{"id":"a","command":"true","inputs":{"i":{"from":"inputs.ref"}},"outputs":{"f":{"path":"f","directory":true},"o":{"path":"o"}}}],
		"outputs":{"all":{"from":"a.f"},"same":{"from":"a.f"}}}`
	inputs := []input{
		{name: "one", files: []runs.GivenFile{{Key: "https://host.example/unknown", Name: "unknown", Size: -1}, {Key: "teams/t/empty", Name: "empty", SHA256: "e0"}}},
		{name: "ref", files: []runs.GivenFile{{Key: "teams/t/genome", Name: "genome", SHA256: "ff", Size: 9, Contents: 70, Folder: true}}},
	}
	outputs := []runs.Listed{{Output: runs.Output{Node: "a", Port: "f", Name: "f", Size: 9, SHA256: "fe", Folder: &runs.Folder{Bytes: 80}}}, {Output: runs.Output{Node: "a", Port: "o", Name: "o"}}}
	d := described(t, runs.Run{WorkflowName: "w", Parameters: []byte(`{}`)}, definition, nil, inputs, outputs)
	for at, want := range map[string]string{
		"urn:sha256:ff/ @type": "Dataset", "urn:sha256:e0 @type": "File", "urn:sha256:e0 contentSize": "0", "https://host.example/unknown contentSize": "<nil>",
		"#input/ref additionalType": "Dataset", "#input/one additionalType": "File", "#output/all additionalType": "Dataset", "#output/a.o additionalType": "File",
		"urn:sha256:ff/ contentSize": "70", "urn:sha256:ff/ sha256": "<nil>", "a/f/f/ contentSize": "80", "a/f/f/ sha256": "<nil>",
		"a/f/f/ @type": "Dataset", "a/o/o @type": "File", "#output/same additionalType": "<nil>",
	} {
		id, field, _ := strings.Cut(at, " ")
		if got := fmt.Sprint(d[id][field]); got != want {
			t.Errorf("%s is %s, want %s", at, got, want)
		}
	}
}
