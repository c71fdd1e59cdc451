package remote

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
)

// made are the outputs of a command that left a file, an empty one, a large one and
// a folder.
func made(t *testing.T) (work string, list []shim.Output) {
	t.Helper()
	work = t.TempDir()
	for name, text := range map[string]string{"a.txt": "text", "empty": "", "large": strings.Repeat("x", askFirst+1), "folder/1/one": "1", "folder/two": "22"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(work, name)), 0o755), os.WriteFile(filepath.Join(work, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := outputs.Within(work, []shim.OutputPattern{{Port: "a", Path: "a.txt"}, {Port: "e", Path: "empty"}, {Port: "l", Path: "large"}, {Port: "f", Path: "folder", Folder: true}}, 0, func() error { return nil })
	if err != nil || len(found.Outputs) != 4 {
		t.Fatalf("%+v, %v", found, err)
	}
	return work, found.Outputs
}

func TestOutputsAreSentByNumber(t *testing.T) {
	t.Parallel()
	work, list := made(t)
	var expects atomic.Int64
	s := answering(t, func(_ http.ResponseWriter, r *http.Request, _ string) {
		if r.Header.Get("Expect") == "100-continue" {
			expects.Add(1)
		}
	})
	if err := send(t.Context(), s.client, work, list); err != nil {
		t.Fatal(err)
	}
	asked, got := s.questions()
	// Each says how long it is, also one of nothing.
	manifest := got["/outputs/3"+ManifestSuffix]
	want := []string{"PUT /outputs/0 4", "PUT /outputs/1 0", "PUT /outputs/2 65537", "PUT /outputs/3 3", "PUT /outputs/3.manifest " + strconv.Itoa(len(manifest))}
	if !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}
	if got["/outputs/0"] != "text" || got["/outputs/1"] != "" || got["/outputs/3"] != "122" || folders.Hash([]byte(manifest)) != list[3].SHA256 {
		t.Errorf("%.200q", got)
	}
	if n := expects.Load(); n != 1 {
		t.Errorf("%d bodies waited for a word", n)
	}
}

// An output whose answer is lost is sent again.
func TestAnOutputThatNobodyAnswersForIsSentAgain(t *testing.T) {
	t.Parallel()
	work, list := made(t)
	var sent atomic.Int64
	s := answering(t, func(http.ResponseWriter, *http.Request, string) {
		if sent.Add(1) == 1 { // the answer is lost
			panic(http.ErrAbortHandler)
		}
	})
	err := send(t.Context(), s.client, work, list[:1])
	if _, got := s.questions(); err != nil || sent.Load() != 2 || got["/outputs/0"] != "text" {
		t.Errorf("%v, sent %d times: %q", err, sent.Load(), got)
	}
}

// What is not what it was when the command ended never will be: it is said at once,
// and not after a day of trying.
func TestOutputsThatChangeAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(work string) error{
		"a file goes": func(work string) error { return os.Remove(filepath.Join(work, "a.txt")) },
		"a file is a link": func(work string) error {
			return errors.Join(os.Remove(filepath.Join(work, "a.txt")), os.Symlink("/etc/passwd", filepath.Join(work, "a.txt")))
		},
		"a file is shorter":       func(work string) error { return os.WriteFile(filepath.Join(work, "a.txt"), []byte("te"), 0o644) },
		"a folder goes":           func(work string) error { return os.RemoveAll(filepath.Join(work, "folder")) },
		"a file in it goes":       func(work string) error { return os.Remove(filepath.Join(work, "folder", "two")) },
		"a file in it is shorter": func(work string) error { return os.WriteFile(filepath.Join(work, "folder", "two"), nil, 0o644) },
		"a file in it is longer": func(work string) error {
			return os.WriteFile(filepath.Join(work, "folder", "two"), []byte("222"), 0o644)
		},
		"a file in it is another": func(work string) error {
			return os.WriteFile(filepath.Join(work, "folder", "two"), []byte("23"), 0o644)
		},
		"another file is in it": func(work string) error { return os.WriteFile(filepath.Join(work, "folder", "three"), nil, 0o644) },
		"a file in it is a folder": func(work string) error {
			return errors.Join(os.Remove(filepath.Join(work, "folder", "two")), os.Mkdir(filepath.Join(work, "folder", "two"), 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work, list := made(t)
			if err := change(work); err != nil {
				t.Fatal(err)
			}
			s := answering(t, func(http.ResponseWriter, *http.Request, string) {})
			var err error
			if strings.Contains(name, "in it") || strings.Contains(name, "a folder goes") {
				err = sendFolder(t.Context(), s.client, "3", work, list[3])
			} else {
				err = sendFile(t.Context(), s.client, "0", work, list[0])
			}
			if !isRefused(err) {
				t.Errorf("it would be tried again: %v", err)
			}
			_, got := s.questions()
			if _, sent := got["/outputs/3"+ManifestSuffix]; sent {
				t.Error("a folder is whole that is not")
			}
		})
	}
}
