package remote

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/shim"
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// staging is a task whose inputs come from a server, by number.
func staging(t *testing.T, inputs ...Input) Task {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	return Task{Launch: shim.Launch{Dir: at("work"), Folder: dir}, Temp: at("tmp"), In: at("in"), Inputs: inputs}
}

// archive is a tar of entries.
func archive(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		text := h.Uname // of a file, what is in it
		h.Uname, h.Size = "", int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestInputsAreBroughtToTheirPlaces(t *testing.T) {
	t.Parallel()
	folder := archive(
		t, tar.Header{Typeflag: tar.TypeDir, Name: "sub/", Mode: 0o755}, tar.Header{Typeflag: tar.TypeReg, Name: "sub/run", Mode: 0o755, Uname: "go"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "to", Linkname: "sub/run"}, tar.Header{Typeflag: tar.TypeReg, Name: "zero", Mode: 0o644},
	)
	s := answering(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		switch filepath.Base(r.URL.Path) {
		case "0":
			_, _ = w.Write([]byte("reads"))
		case "1":
			_, _ = w.Write(folder)
		default:
			no(w, http.StatusNotFound, "no such input")
		}
	})
	task := staging(t, Input{Path: "reads/0/a b.fq", Object: 1, SHA256: hashOf("reads")}, Input{Path: "ref/0/folder", Object: 2, Folder: true}, Input{Path: "reads.list", Text: []byte("/in/x\n")})
	task.File, task.Script = filepath.Join(task.Launch.Folder, "script"), "echo"
	for range 2 { // a shim that begins again finds what it has brought
		if err := stage(t.Context(), s.client, task); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"in/reads/0/a b.fq": "reads", "in/ref/0/folder/to": "go", "in/ref/0/folder/zero": "", "in/reads.list": "/in/x\n", "script": "echo"} {
		got, err := os.ReadFile(filepath.Join(task.Launch.Folder, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]fs.FileMode{"in/ref/0/folder/sub/run": 0o755, "script": 0o600} {
		if info, err := os.Stat(filepath.Join(task.Launch.Folder, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	for _, dir := range []string{"work", "tmp"} {
		if left, err := os.ReadDir(filepath.Join(task.Launch.Folder, dir)); err != nil || len(left) != 0 {
			t.Errorf("%s: %v, %v", dir, left, err)
		}
	}
}

// A line that breaks off is no failure of the task, whatever is on it.
func TestAnInputThatIsCutShortIsFetchedAgain(t *testing.T) {
	t.Parallel()
	whole := archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Mode: 0o644, Uname: strings.Repeat("x", 5000)})
	for name, in := range map[string]Input{
		"a file":             {Path: "a", Object: 1},
		"a file with a hash": {Path: "a", Object: 1, SHA256: hashOf(string(whole))},
		"a folder":           {Path: "a", Object: 1, Folder: true},
	} {
		for cut, size := range map[string]int{"": len(whole) / 2, " at its last block": len(whole) - 100} {
			t.Run(name+cut, func(t *testing.T) {
				t.Parallel()
				var asked atomic.Int64
				s := answering(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
					if asked.Add(1) == 1 {
						_, _ = w.Write(whole[:size])
						w.(http.Flusher).Flush()
						panic(http.ErrAbortHandler)
					}
					_, _ = w.Write(whole)
				})
				task := staging(t, in)
				if err := stage(t.Context(), s.client, task); err != nil || asked.Load() != 2 {
					t.Fatalf("%v, asked %d times", err, asked.Load())
				}
				at, want := filepath.Join(task.In, "a"), int64(len(whole))
				if in.Folder {
					at, want = filepath.Join(at, "a"), 5000
				}
				if info, err := os.Stat(at); err != nil || info.Size() != want {
					t.Errorf("%v, %v", info, err)
				}
			})
		}
	}
}

// What does not pass is said at once: trying again would take a day.
func TestInputsThatCannotBeBrought(t *testing.T) {
	t.Parallel()
	one := func(h tar.Header) []byte { return archive(t, h) }
	for name, tt := range map[string]struct {
		in    Input
		bytes []byte
		words string
	}{
		"another file":        {Input{Path: "a", Object: 1, SHA256: hashOf("reads")}, []byte("READS"), "not what it was when the run was started"},
		"a device":            {Input{Path: "a", Object: 1, Folder: true}, one(tar.Header{Typeflag: tar.TypeChar, Name: "null"}), "neither file nor folder"},
		"a hard link":         {Input{Path: "a", Object: 1, Folder: true}, one(tar.Header{Typeflag: tar.TypeLink, Name: "x", Linkname: "/etc/passwd"}), "neither file nor folder"},
		"no archive":          {Input{Path: "a", Object: 1, Folder: true}, bytes.Repeat([]byte("no tar "), 200), "cannot be put into its place"},
		"a name twice":        {Input{Path: "a", Object: 1, Folder: true}, archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "x"}, tar.Header{Typeflag: tar.TypeReg, Name: "x"}), "file exists"},
		"through a link":      {Input{Path: "a", Object: 1, Folder: true}, archive(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "out", Linkname: "/tmp"}, tar.Header{Typeflag: tar.TypeReg, Name: "out/x"}), "escapes"},
		"below a file":        {Input{Path: "a", Object: 1, Folder: true}, archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "x"}, tar.Header{Typeflag: tar.TypeReg, Name: "x/y"}), "cannot be put into its place"},
		"outside":             {Input{Path: "../a", Object: 1}, []byte("x"), "escapes"},
		"an absolute path":    {Input{Path: "/etc/a", Text: []byte("x")}, nil, "escapes"},
		"one that is refused": {Input{Path: "a", Object: 2}, nil, "the server answers 410"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := answering(t, func(w http.ResponseWriter, r *http.Request, _ string) {
				if strings.HasSuffix(r.URL.Path, "/1") {
					no(w, http.StatusGone, "over")
					return
				}
				_, _ = w.Write(tt.bytes)
			})
			err := stage(t.Context(), s.client, staging(t, tt.in))
			if err == nil || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%v", err)
			}
			if asked, _ := s.questions(); len(asked) > 1 {
				t.Errorf("asked for %q", asked)
			}
		})
	}
}

// Names in an archive that lead upwards stay in its folder.
func TestAnArchiveStaysInItsFolder(t *testing.T) {
	t.Parallel()
	bytes := archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "../../up", Uname: "1"}, tar.Header{Typeflag: tar.TypeReg, Name: "/abs", Uname: "2"})
	s := answering(t, func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = w.Write(bytes) })
	task := staging(t, Input{Path: "a", Object: 1, Folder: true})
	if err := stage(t.Context(), s.client, task); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"up", "abs"} {
		if _, err := os.Stat(filepath.Join(task.In, "a", name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(task.Launch.Folder, "up")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
