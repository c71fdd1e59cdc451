package folder_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
)

// attempt is one whose folder is staged.
type attempt struct {
	*folder.Files
	spec   executor.Spec
	handle executor.Handle
}

func newAttempt(t *testing.T) attempt {
	t.Helper()
	dir := t.TempDir()
	d, err := dummy.New(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	key := executor.Key{Run: "run_1", Node: "n", Attempt: 1}
	f := folder.New(dir, d)
	return attempt{f, executor.Spec{Key: key, Dir: f.Folder(key)}, executor.Handle{Key: key}}
}

// given is a folder that a task is given: with a program, a link and an empty folder.
func given(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.MkdirAll(at("a/empty"), 0o755), os.WriteFile(at("a/run"), []byte("go"), 0o700), os.WriteFile(at("private"), []byte("text"), 0o600),
		os.Chmod(at("a/run"), 0o755), os.Symlink("a/run", at("to")), os.Symlink("/nowhere", at("gone")),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (a attempt) stage(t *testing.T, inputs ...executor.Input) error {
	t.Helper()
	a.spec.Inputs = inputs
	return a.Stage(t.Context(), a.spec, func(_ context.Context, object, file string) error {
		if object == "none" {
			return fault.NotFound("no such object")
		}
		return os.WriteFile(file, []byte("object "+object), 0o644)
	})
}

func (a attempt) reads(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(a.spec.Places().Inputs, name))
	if err != nil || string(got) != want {
		t.Errorf("%s: %q, %v", name, got, err)
	}
}

func TestInputsAreStaged(t *testing.T) {
	t.Parallel()
	a := newAttempt(t)
	from := given(t)
	err := a.stage(t, executor.Input{Path: "reads/0/a.fq", Object: "o1"}, executor.Input{Path: "reads.list", Text: []byte("/in/x\n")}, executor.Input{Path: ".source", Folder: from})
	if err != nil {
		t.Fatal(err)
	}
	a.reads(t, "reads/0/a.fq", "object o1")
	a.reads(t, "reads.list", "/in/x\n")
	a.reads(t, ".source/to", "go")
	if link, err := os.Readlink(filepath.Join(a.spec.Places().Inputs, ".source", "gone")); err != nil || link != "/nowhere" {
		t.Errorf("%q, %v", link, err)
	}
	if left, err := os.ReadDir(filepath.Join(a.spec.Places().Inputs, ".source", "a", "empty")); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	// The command could change its inputs, so that they are copies.
	one, err1 := os.Stat(filepath.Join(from, "a", "run"))
	two, err2 := os.Stat(filepath.Join(a.spec.Places().Inputs, ".source", "a", "run"))
	if errors.Join(err1, err2) != nil || os.SameFile(one, two) || two.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", two.Mode(), errors.Join(err1, err2))
	}
	if info, err := os.Stat(a.spec.Work()); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	if err := newAttempt(t).stage(t, executor.Input{Path: "x", Object: "none"}); !fault.Is(err, fault.KindNotFound) {
		t.Error(err)
	}
	if err := newAttempt(t).stage(t, executor.Input{Path: "x", Folder: filepath.Join(from, "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := errors.Join(a.Discard(t.Context(), a.spec.Key), a.Discard(t.Context(), a.spec.Key)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(a.spec.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A server may be started by somebody who shares nothing; its tasks are other users all
// the same.
func TestInputsCanBeReadByTasksWhateverTheUmask(t *testing.T) {
	const variable = "MILLRACE_TEST_WITH_UMASK"
	if os.Getenv(variable) == "" { // the umask is that of a whole process
		c := exec.Command("sh", "-c", `umask 077; exec "$0" "$@"`, os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), variable+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	a := newAttempt(t)
	if err := a.stage(t, executor.Input{Path: "deep/0/list", Text: []byte("x")}, executor.Input{Path: "source/0/code", Folder: given(t)}); err != nil {
		t.Fatal(err)
	}
	in, seen := a.spec.Places().Inputs, 0
	err := filepath.WalkDir(in, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() == fs.ModeSymlink {
			return err
		}
		info, err := d.Info()
		seen++
		if err == nil && (info.Mode().Perm()&0o004 == 0 || d.IsDir() && info.Mode().Perm()&0o001 == 0) {
			t.Errorf("%s is %s", strings.TrimPrefix(path, in), info.Mode())
		}
		return err
	})
	if err != nil || seen < 10 {
		t.Errorf("%d, %v", seen, err)
	}
}

// What a command leaves is not trusted: no link leads out of its folder.
func TestOutputsAreCollectedFromTheFolderAlone(t *testing.T) {
	t.Parallel()
	a := newAttempt(t)
	if err := a.stage(t); err != nil {
		t.Fatal(err)
	}
	work := a.spec.Work()
	err := errors.Join(
		os.WriteFile(filepath.Join(work, "out"), []byte("text"), 0o644), os.Symlink("/etc/passwd", filepath.Join(work, "link")), os.Mkdir(filepath.Join(work, "folder"), 0o755),
		os.Symlink("/etc", filepath.Join(work, "etc")), os.WriteFile(filepath.Join(work, "folder", "x"), []byte("1"), 0o644), os.Symlink("../../in", filepath.Join(work, "up")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"out": "text", "folder/x": "1", "link": "", "etc/passwd": "", "gone": "", "folder": "", "../log": "", "up/x": ""} {
		r, err := a.Collect(t.Context(), a.handle, executor.Output{Path: path, Size: int64(len(want))})
		if want == "" {
			if !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "is not there any more") {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		text, rerr := io.ReadAll(r)
		if errors.Join(err, rerr, r.Close()) != nil || string(text) != want {
			t.Errorf("%s: %q, %v", path, text, errors.Join(err, rerr))
		}
	}
	found, err := outputs.Within(work, []executor.OutputPattern{{Port: "f", Path: "folder", Folder: true}}, 0, func() error { return nil })
	if err != nil || len(found.Outputs) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	r, err := a.Collect(t.Context(), a.handle, found.Outputs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); err != nil || string(text) != "1" {
		t.Errorf("%q, %v", text, err)
	}
	for path, ok := range map[string]bool{"work/out": true, "work/link": false, "work/none": false, "work/etc/passwd": false} {
		f, err := a.Open(t.Context(), a.handle, path)
		if (err == nil) != ok || (f != nil) != ok {
			t.Errorf("%s: %v, %v", path, f, err)
		}
		if f != nil {
			_ = f.Close()
		}
	}
}
