package outputcopy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// folder is an output that is one. In this world an object holds its own key.
func folder(t *testing.T, data string, entries ...folders.Entry) runs.Listed {
	t.Helper()
	m, err := folders.New(entries)
	if err != nil {
		t.Fatal(err)
	}
	text := string(m.Text())
	return runs.Listed{Output: runs.Output{
		Node: "a", Port: "o", Name: "results", Blob: text, Size: int64(len(text)), SHA256: folders.Hash([]byte(text)), Folder: &runs.Folder{Data: data, Bytes: int64(len(data))},
	}}
}

func entry(path, text string) folders.Entry {
	return folders.Entry{Path: path, Size: int64(len(text)), SHA256: folders.Hash([]byte(text))}
}

func TestAFolderIsCopiedFileByFile(t *testing.T) {
	t.Parallel()
	w, c := newWorld("first")
	w.list = append(w.list, folder(t, "onetwothree", entry("a", "one"), entry("b/two", "two"), entry("b/zero", ""), entry("c", "three"),
		folders.Entry{Path: "empty", Folder: true}, folders.Entry{Path: "link", Link: "b/two"}))
	w.refused["a/o/results/c"] = true
	c.Round(t.Context())
	if w.copy.State != outputto.Copying || w.objects[manifestName] != nil || w.copy.Message != "not now" || w.copy.Attempts != 1 {
		t.Fatalf("%+v", w.copy)
	}
	w.refused = nil
	c.Round(t.Context())
	if w.copy.State != outputto.Completed || w.copy.Files != 5 || w.copy.Bytes != int64(len("firstonetwothree")) || w.copy.Copied != w.copy.Bytes {
		t.Errorf("%+v", w.copy)
	}
	for name, text := range map[string]string{"a/o/first": "first", "a/o/results/a": "one", "a/o/results/b/two": "two", "a/o/results/b/zero": "", "a/o/results/c": "three"} {
		if got, there := w.objects[name]; !there || string(got) != text {
			t.Errorf("%s is %q", name, got)
		}
	}
	var m manifest
	if err := json.Unmarshal(w.objects[manifestName], &m); err != nil || len(w.objects) != 6 {
		t.Fatalf("%d objects, %v", len(w.objects), err)
	}
	if len(m.Files) != 5 || fmt.Sprint(m.Links, m.EmptyFolders) != "[{a/o/results/link b/two}] [a/o/results/empty/]" {
		t.Errorf("%+v", m)
	}
}

// What is not what it was is not copied, and nothing will be otherwise the next time.
func TestWhatCannotBeCopiedIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*world)
		want   string
	}{
		"its manifest is another": {func(w *world) { w.list[0].SHA256 = strings.Repeat("0", 64) }, "the folder results has changed since it was verified"},
		"its bytes are others":    {func(w *world) { w.list[0].Folder.Data = "onetwX" }, "an output has changed since it was verified"},
		"a file is another":       {func(w *world) { w.list = w.list[1:]; w.list[0].Blob = "FIRST" }, "an output has changed since it was verified"},
		"too long a path": {func(w *world) {
			w.copy.URL = "s3://lab/" + strings.Repeat("x", outputto.MaxKey-len("/a/o/first")) + "/"
		}, "the path of an output is too long for a bucket: a key has at most 1024 bytes"},
	} {
		w, c := newWorld("first")
		w.list = append([]runs.Listed{folder(t, "onetwo", entry("a", "one"), entry("b", "two"))}, w.list...)
		tt.change(w)
		if c.Round(t.Context()); w.copy.State != outputto.Failed || w.copy.Message != tt.want || w.copy.EndedAt.IsZero() || w.objects[manifestName] != nil {
			t.Errorf("%s: %s, %q", name, w.copy.State, w.copy.Message)
		}
	}
}

// Attempts that get nowhere come ever later; one that gets somewhere begins anew.
func TestAttemptsComeEverLater(t *testing.T) {
	t.Parallel()
	w, c := newWorld("one", "two")
	w.refused["a/o/one"], w.refused["a/o/two"] = true, true
	for i := range 3 {
		c.Round(t.Context())
		if w.copy.Attempts != i+1 || !w.copy.NextAt.Equal(w.time.Add(pauses[i])) || w.copy.State != outputto.Copying {
			t.Fatalf("%d: %+v", i, w.copy)
		}
	}
	delete(w.refused, "a/o/one")
	if c.Round(t.Context()); w.copy.Attempts != 1 || w.copy.Done != 1 {
		t.Errorf("%+v", w.copy)
	}
	for range pauses {
		c.Round(t.Context())
	}
	if w.copy.State != outputto.Failed || w.copy.Message != "not now" {
		t.Errorf("%+v", w.copy)
	}
}
