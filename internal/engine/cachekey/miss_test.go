package cachekey_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/engine/cachekey"
	"github.com/millrace/millrace/internal/engine/taskenv"
	"github.com/millrace/millrace/internal/files"
)

// base are the parts of some task.
func base() cachekey.Parts {
	return cachekey.Parts{
		"arch": "amd64", "interpreter": "bash", "command": "tool", "root": "sha256:1", "source": "c1", "environment": "e1", "env.LC_ALL": "C", "PARAM_q": "20",
		"input.reads": "a 1", "output.bam": "x.bam", "ITEM": "s1", "SECRET_token": "v1",
	}
}

// A person reads why a step ran again: each change has words of its own, and they
// stand in the same order each time.
func TestWhyAResultWasNotFound(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 201)
	for name, tt := range map[string]struct {
		set  cachekey.Parts
		gone []string
		want string
	}{
		"nothing":             {want: "its earlier outputs are gone"},
		"the command":         {set: cachekey.Parts{"command": "tool2"}, want: "the command has changed"},
		"the interpreter":     {set: cachekey.Parts{"interpreter": "sh"}, want: "the interpreter has changed"},
		"the code":            {set: cachekey.Parts{"source": "c2"}, want: "the code at `SOURCE_DIR` has changed"},
		"the image":           {set: cachekey.Parts{"root": "sha256:2"}, want: "the image or system was sha256:1, is sha256:2"},
		"the packages":        {set: cachekey.Parts{"environment": "e2"}, want: "the packages of the environment have changed"},
		"no environment":      {gone: []string{"environment"}, want: "`environment` is not set any more"},
		"an input":            {set: cachekey.Parts{"input.reads": "a 2"}, want: "the files of the input `reads` have changed"},
		"an output":           {set: cachekey.Parts{"output.bam": "y.bam"}, want: "the output `bam` is declared differently"},
		"a variable":          {set: cachekey.Parts{"env.LC_ALL": "de"}, want: "`LC_ALL` was C, is de"},
		"a parameter":         {set: cachekey.Parts{"PARAM_q": "25"}, want: "`PARAM_q` was 20, is 25"},
		"a long parameter":    {set: cachekey.Parts{"PARAM_q": long}, want: "`PARAM_q` has changed"},
		"a secret":            {set: cachekey.Parts{"SECRET_token": "v2"}, want: "`SECRET_token` was v1, is v2"},
		"something new":       {set: cachekey.Parts{"PARAM_new": "1"}, want: "`PARAM_new` is new"},
		"something empty":     {set: cachekey.Parts{"PARAM_new": ""}, want: "`PARAM_new` is new"},
		"several, by name":    {set: cachekey.Parts{"PARAM_q": "25", "command": "t"}, want: "`PARAM_q` was 20, is 25; the command has changed"},
		"several that went":   {gone: []string{"PARAM_q", "ITEM", "SECRET_token"}, want: "`ITEM` is not set any more; `PARAM_q` is not set any more; `SECRET_token` is not set any more"},
		"some went, some are": {set: cachekey.Parts{"PARAM_z": "1"}, gone: []string{"ITEM"}, want: "`ITEM` is not set any more; `PARAM_z` is new"},
	} {
		now := base()
		maps.Copy(now, tt.set)
		for _, part := range tt.gone {
			delete(now, part)
		}
		for range 5 { // maps have no order
			if got := cachekey.Miss(base().Stored(), now.Stored()); got != tt.want {
				t.Errorf("%s: %q, want %q", name, got, tt.want)
			}
		}
	}
	for last, want := range map[string]string{"": "it has not succeeded before", "{": "what it was computed from last time is not known", "[]": "what it was computed from last time is not known"} {
		if got := cachekey.Miss([]byte(last), base().Stored()); got != want {
			t.Errorf("%q: %q", last, got)
		}
	}
}

// Whatever a task is computed from changes its key, and no value keeps it from
// having one.
func TestKeys(t *testing.T) {
	t.Parallel()
	keys := map[string]string{base().Key(): "as it was"}
	for part := range base() {
		for change, value := range map[string]string{"longer": base()[part] + " ", "empty": "", "a question": "?"} {
			p := base()
			p[part] = value
			if before, twice := keys[p.Key()]; twice {
				t.Errorf("%s, %s: the same key as %s", part, change, before)
			}
			if keys[p.Key()] = part + " " + change; !p.Known() {
				t.Errorf("%s: %q is not known", part, value)
			}
		}
	}
	p := base()
	if p["input.reads"] = cachekey.Unknown; p.Known() {
		t.Error("a file without a hash has a key")
	}
}

func TestFilesAreNamedByWhatIsInThem(t *testing.T) {
	t.Parallel()
	known := map[string]files.File{
		"a": {Name: "x.fq", SHA256: "1"}, "same": {Name: "x.fq", SHA256: "1"}, "renamed": {Name: "y.fq", SHA256: "1"}, "other": {Name: "x.fq", SHA256: "2"}, "unread": {Name: "x.fq"},
	}
	contents := func(keys ...string) string { return cachekey.Contents(keys, known) }
	if contents("a") != contents("same") {
		t.Error("where a file is kept counts")
	}
	for name, other := range map[string]string{"its name": contents("renamed"), "its bytes": contents("other"), "how often": contents("a", "a"), "none": contents()} {
		if other == contents("a") {
			t.Errorf("%s does not count", name)
		}
	}
	if contents("a", "other") == contents("other", "a") {
		t.Error("the order of files does not count")
	}
	for _, keys := range [][]string{{"unread"}, {"a", "unread"}, {"nowhere"}} {
		if contents(keys...) != cachekey.Unknown {
			t.Errorf("%q are named", keys)
		}
	}
}

// How outputs are declared decides which files a result has.
func TestHowAnOutputIsDeclaredCounts(t *testing.T) {
	t.Parallel()
	keys := map[string]graph.OutPort{}
	for _, path := range []string{"x", "y"} {
		for bits := range 8 {
			o := graph.OutPort{Name: "out", Path: path, Many: bits&1 > 0, Optional: bits&2 > 0, Directory: bits&4 > 0}
			key := cachekey.Of(taskenv.Task{Node: &graph.Node{Outputs: []graph.OutPort{o}}}).Key()
			if before, twice := keys[key]; twice {
				t.Errorf("%+v and %+v have one key", before, o)
			}
			keys[key] = o
		}
	}
}
