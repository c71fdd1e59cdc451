package archive

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/runs"
)

// folderOf is an output that is a folder, and the objects that hold it.
func folderOf(t *testing.T, entries []folders.Entry, data string) (runs.Output, map[string]string) {
	t.Helper()
	m, err := folders.New(entries)
	if err != nil {
		t.Fatal(err)
	}
	text := string(m.Text())
	o := runs.Output{Node: "a", Port: "out", Name: "results", Blob: "manifest", SHA256: folders.Hash([]byte(text)), Folder: &runs.Folder{Data: "data"}}
	return o, map[string]string{"manifest": text, "data": data}
}

func entry(path, text string) folders.Entry {
	return folders.Entry{Path: path, Size: int64(len(text)), SHA256: folders.Hash([]byte(text))}
}

func unzip(t *testing.T, file []byte) map[string]string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name] = fmt.Sprintf("%s %s", f.Mode()&(fs.ModeType|0o111), text)
	}
	return got
}

func TestAFolderIsArchivedAsItWas(t *testing.T) {
	t.Parallel()
	run := entry("bin/run", "#!/bin/sh\n")
	run.Executable = true
	o, objects := folderOf(t, []folders.Entry{
		entry("b.txt", "bee"), run, entry("ü/é.txt", ""), {Path: "empty", Folder: true}, {Path: "link", Link: "bin/run"},
	}, "bee#!/bin/sh\n")
	a := Archive{Open: opened(objects), At: time.Unix(1e9, 0)}
	var alone bytes.Buffer
	if err := a.WriteFolder(t.Context(), &alone, o); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"results/": "d--------- ", "results/b.txt": "---------- bee", "results/bin/run": "---x--x--x #!/bin/sh\n", "results/ü/é.txt": "---------- ", "results/empty/": "d--------- ", "results/link": "L--x--x--x bin/run",
	}
	got := unzip(t, alone.Bytes())
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is %q, want %q", name, got[name], text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%q", got)
	}
	var both bytes.Buffer
	objects["1"] = "one"
	a.Outputs = []runs.Listed{{Output: o}, made("a", "results", "1", "one")}
	if err := a.WriteZip(t.Context(), &both); err != nil {
		t.Fatal(err)
	}
	got = unzip(t, both.Bytes())
	if got["a/out/results/b.txt"] != want["results/b.txt"] || got["a/out/results_2"] != "---------- one" {
		t.Errorf("%q", got)
	}
	for _, line := range []string{folders.Hash([]byte("bee")) + "  a/out/results/b.txt\n", run.SHA256 + "  a/out/results/bin/run\n", folders.Hash([]byte("one")) + "  a/out/results_2\n"} {
		if !strings.Contains(got["SHA256SUMS"], line) {
			t.Errorf("%q is not among\n%s", line, got["SHA256SUMS"])
		}
	}
	if strings.Contains(got["SHA256SUMS"], "link") || strings.Contains(got["SHA256SUMS"], "empty") {
		t.Errorf("what has no bytes has a hash:\n%s", got["SHA256SUMS"])
	}
}

func TestAFolderThatHasChangedIsCutOff(t *testing.T) {
	t.Parallel()
	entries := []folders.Entry{entry("a", "one"), entry("b", "two")}
	for name, change := range map[string]func(map[string]string){
		"its manifest":         func(o map[string]string) { o["manifest"] += " " },
		"no manifest":          func(o map[string]string) { delete(o, "manifest") },
		"no bytes":             func(o map[string]string) { delete(o, "data") },
		"other bytes":          func(o map[string]string) { o["data"] = "onetwa" },
		"too few bytes":        func(o map[string]string) { o["data"] = "onetw" },
		"nothing of its bytes": func(o map[string]string) { o["data"] = "" },
	} {
		o, objects := folderOf(t, entries, "onetwo")
		change(objects)
		a := Archive{Open: opened(objects), At: time.Unix(1e9, 0), Outputs: []runs.Listed{{Output: o}}}
		for _, write := range []func(io.Writer) error{
			func(w io.Writer) error { return a.WriteZip(t.Context(), w) }, func(w io.Writer) error { return a.WriteFolder(t.Context(), w, o) },
		} {
			var file bytes.Buffer
			if err := write(&file); err == nil {
				t.Errorf("%s: it is written", name)
			}
			if _, err := zip.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len())); err == nil {
				t.Errorf("%s: what is written reads like an archive", name)
			}
		}
	}
}
