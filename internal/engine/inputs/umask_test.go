package inputs

import (
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/folders"
)

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
	m, err := folders.New([]folders.Entry{{Path: "a/b/file", Size: 4, SHA256: folders.Hash(nil)}, {Path: "empty/er", Folder: true}, {Path: "run", Size: 2, SHA256: folders.Hash(nil), Executable: true}})
	if err != nil {
		t.Fatal(err)
	}
	open := func(_ context.Context, key string) (io.ReadCloser, error) {
		return afar{strings.NewReader(map[string]string{"manifest": string(m.Text()), "data": "filego", "object": "text"}[key])}, nil
	}
	attempts := t.TempDir()
	s := newCache(attempts, "run_1", never)
	for name, shared := range map[string]bool{"shared": true, "own": false} {
		dir := filepath.Join(attempts, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := s.LinkFolder(t.Context(), filepath.Join(dir, "folder"), shared, "manifest", "data", open); err != nil {
			t.Fatal(err)
		}
		if err := s.Link(t.Context(), filepath.Join(dir, "file"), shared, "object", open); err != nil {
			t.Fatal(err)
		}
		seen := 0
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == dir {
				return err
			}
			info, err := d.Info()
			seen++
			if err == nil && (info.Mode().Perm()&0o004 == 0 || (d.IsDir() || d.Name() == "run") && info.Mode().Perm()&0o001 == 0) {
				t.Errorf("%s is %s", strings.TrimPrefix(path, attempts), info.Mode())
			}
			return err
		})
		if err != nil || seen != 8 {
			t.Errorf("%d, %v", seen, err)
		}
	}
}
