package produced_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
	"github.com/millrace/millrace/internal/engine/produced"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/runs"
)

// command is what one has left in its folder.
type command struct {
	t     *testing.T
	work  string
	store objects.Kept
}

func left(t *testing.T, files map[string]string) command {
	t.Helper()
	c := command{t: t, work: t.TempDir()}
	for name, text := range files {
		c.write(name, text)
	}
	keeper, err := disk.Open(t.Context(), t.TempDir(), disk.NewSigner(make([]byte, 32)), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keeper.Close() })
	c.store = objects.Kept{Store: keeper, Presigner: keeper}
	return c
}

func (c command) write(name, text string) {
	c.t.Helper()
	name = filepath.Join(c.work, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		c.t.Fatal(err)
	}
}

// collect is an output as the shim says that it is.
func (c command) collect(path string, folder bool) executor.Output {
	c.t.Helper()
	found, err := outputs.Within(c.work, []executor.OutputPattern{{Port: "out", Path: path, Folder: folder}}, 0, func() error { return nil })
	if err != nil || len(found.Outputs) != 1 {
		c.t.Fatalf("%+v, %v", found, err)
	}
	return found.Outputs[0]
}

// keep stores an output under the keys of an attempt.
func (c command) keep(o executor.Output, attempt string) (runs.Output, error) {
	return produced.Store(c.t.Context(), c.store, o,
		func(port, name string) string {
			return produced.Key("team_1", "run_1", "n.000000."+attempt+"."+port, name)
		},
		func() (io.ReadCloser, error) {
			if o.Folder {
				return outputs.OpenFolder(c.work, o)
			}
			return outputs.Open(c.work, o.Path)
		})
}

func (c command) read(key string) string {
	c.t.Helper()
	r, err := c.store.Open(c.t.Context(), key, 0, -1)
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

func TestAnOutputIsKeptAsItWasCollected(t *testing.T) {
	t.Parallel()
	c := left(t, map[string]string{"out/table.csv": "a,b\n", "empty": ""})
	for path, want := range map[string]string{"out/table.csv": "a,b\n", "empty": ""} {
		o := c.collect(path, false)
		for range 2 { // a worker that went down after it had stored it does it again
			got, err := c.keep(o, "1")
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != filepath.Base(path) || got.Size != int64(len(want)) || got.SHA256 != o.SHA256 || got.Blob != got.Key || got.Port != "out" || got.Folder != nil || c.read(got.Key) != want {
				t.Errorf("%+v", got)
			}
			if kind := got.ContentType; path == "empty" && kind != "application/octet-stream" || path != "empty" && !strings.HasPrefix(kind, "text/csv") {
				t.Errorf("%s: %s", path, kind)
			}
		}
	}
}

func TestAFolderIsKeptWithItsManifest(t *testing.T) {
	t.Parallel()
	c := left(t, map[string]string{"res/b/two": "22", "res/a": "1", "res/c": ""})
	o := c.collect("res", true)
	for range 2 {
		got, err := c.keep(o, "1")
		if err != nil {
			t.Fatal(err)
		}
		m, err := folders.Parse([]byte(c.read(got.Key)))
		if err != nil || folders.Hash(m.Text()) != o.SHA256 || got.SHA256 != o.SHA256 || got.ContentType != "application/json" || got.Size != int64(len(m.Text())) {
			t.Errorf("%+v, %v", got, err)
		}
		if f := got.Folder; f == nil || f.Files != 3 || f.Bytes != 3 || c.read(f.Data) != "122" || f.Data == got.Key {
			t.Errorf("%+v", got.Folder)
		}
		if f := produced.File(got); f.Folder == nil || f.Folder.Data != got.Folder.Data || f.Folder.Bytes != 3 || f.Folder.Files != 3 || f.Blob != got.Blob || f.SHA256 != got.SHA256 {
			t.Errorf("%+v", f)
		}
	}
}

// What has changed since the command ended is refused, whoever changed it, and also
// where an earlier worker had stored it.
func TestAnOutputThatHasChangedIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		folder bool
		change func(c command)
	}{
		"another text":             {false, func(c command) { c.write("res", "ab") }},
		"a shorter one":            {false, func(c command) { c.write("res", "a") }},
		"a longer one":             {false, func(c command) { c.write("res", "1234") }},
		"another text in a folder": {true, func(c command) { c.write("res/x", "ab") }},
		"a shorter one in it":      {true, func(c command) { c.write("res/x", "1") }},
		"a longer one in it":       {true, func(c command) { c.write("res/x", "1234") }},
		"one more in it":           {true, func(c command) { c.write("res/y", "") }},
		"one less in it":           {true, func(c command) { _ = os.Remove(filepath.Join(c.work, "res", "x")) }},
	} {
		for _, storedBefore := range []bool{false, true} {
			file := "res"
			if tt.folder {
				file = "res/x"
			}
			c := left(t, map[string]string{file: "12"})
			o := c.collect("res", tt.folder)
			if storedBefore {
				if _, err := c.keep(o, "1"); err != nil {
					t.Fatal(err)
				}
			}
			tt.change(c)
			got, err := c.keep(o, "1")
			if storedBefore && !tt.folder { // its bytes are there, and are the right ones
				if err != nil || c.read(got.Key) != "12" {
					t.Errorf("%s, stored before: %v", name, err)
				}
				continue
			}
			if !fault.Is(err, fault.KindInvalid) {
				t.Errorf("%s, stored before: %v: %v", name, storedBefore, err)
			}
		}
	}
}

// A worker may find under its key what somebody else has spoilt.
func TestWhatIsStoredIsReadAgainBeforeItIsBelieved(t *testing.T) {
	t.Parallel()
	c := left(t, map[string]string{"a": "12", "res/x": "12"})
	for path, folder := range map[string]bool{"a": false, "res": true} {
		o := c.collect(path, folder)
		key := produced.Key("team_1", "run_1", "n.000000.7.out", path)
		if folder {
			key = produced.Key("team_1", "run_1", "n.000000.7.out.data", path)
		}
		if _, err := c.store.Put(t.Context(), key, "text/plain", strings.NewReader("34"), 2); err != nil {
			t.Fatal(err)
		}
		if got, err := c.keep(o, "7"); !fault.Is(err, fault.KindInvalid) {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
	}
	if _, err := produced.Reread(t.Context(), c.store, "teams/team_1/none"); !fault.Is(err, fault.KindNotFound) {
		t.Error(err)
	}
	blob, err := produced.Reread(t.Context(), c.store, produced.Key("team_1", "run_1", "n.000000.7.out", "a"))
	sum := sha256.Sum256([]byte("34"))
	if err != nil || blob.SHA256 != hex.EncodeToString(sum[:]) || blob.Size != 2 {
		t.Errorf("%+v, %v", blob, err)
	}
}
