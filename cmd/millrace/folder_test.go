package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/store"
)

// careless is a command whose shell lets everybody read and write what it
// makes.
func careless(t *testing.T, c *exec.Cmd) *exec.Cmd {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	c.Args = append([]string{shell, "-c", `umask 0; exec "$@"`, "sh"}, append([]string{c.Path}, c.Args[1:]...)...)
	c.Path = shell
	return c
}

// folderOf is an empty folder with these permissions.
func folderOf(t *testing.T, mode fs.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

// wantPrivate fails for whatever others may touch. What is below a task's
// folder is the task's: the way there is closed.
func wantPrivate(t *testing.T, dir string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		seen++
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %v", path, info.Mode())
		}
		if e.IsDir() && (e.Name() == "attempts" || e.Name() == "images") {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil || seen < 3 {
		t.Errorf("%d files, %v", seen, err)
	}
}

func TestWhatTheServerKeepsIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	dir := folderOf(t, 0o755)
	s := launch(t, careless(t, millrace(t, "serve", "--listen", "127.0.0.1:0", "--data", dir)))
	token, _, _ := s.signUp("ada") // and a letter to her
	url, _ := s.presign(token, "a.bin", 1)
	if status := put(t, url, strings.NewReader("x"), 1); status != 200 {
		t.Errorf("upload: %d", status)
	}
	wantPrivate(t, dir)
	for _, file := range []string{"millrace.db", "millrace.db-wal", "millrace.db-shm", "secret.key", "lock", "mail", "objects"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}

	backup := filepath.Join(t.TempDir(), "backup")
	if out, err := careless(t, millrace(t, "backup", "--data", dir, backup)).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	wantPrivate(t, backup)
}

func TestADatabaseThatOthersCouldReadIsClosed(t *testing.T) {
	t.Parallel()
	dir := folderOf(t, 0o755)
	if out, err := millrace(t, "migrate", "--data", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	open := func() {
		for _, path := range []string{dir, filepath.Join(dir, "millrace.db")} {
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, command := range [][]string{{"migrate"}, {"admin", "user", "list"}} {
		open()
		if out, err := careless(t, millrace(t, append(command, "--data", dir)...)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", command, err, out)
		}
		info, err := os.Stat(filepath.Join(dir, "millrace.db"))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("after %v: %v, %v", command, info.Mode(), err)
		}
	}
	open()
	s := launch(t, careless(t, millrace(t, "serve", "--listen", "127.0.0.1:0", "--data", dir)))
	s.want(200, "GET", "/api/health/ready", "")
	wantPrivate(t, dir)
}

func TestAFolderThatOthersOwnOrShareIsRefused(t *testing.T) {
	t.Parallel()
	shared := folderOf(t, 0o1777)
	if err := os.WriteFile(filepath.Join(shared, "somebody's"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	others := "/usr" // the superuser's
	if os.Geteuid() == 0 {
		others = folderOf(t, 0o700)
		if err := os.Chown(others, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	for folder, why := range map[string]string{shared: "others may write", others: "belongs to user"} {
		for _, command := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"migrate"}} {
			if folder == others && command[0] == "migrate" && os.Geteuid() == 0 {
				continue // root acts as its owner
			}
			out, err := millrace(t, append(command, "--data", folder)...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), why) || !strings.Contains(string(out), "--data "+folder+"/millrace") {
				t.Errorf("%s: %v %s", folder, err, out)
			}
		}
		if _, err := os.Stat(filepath.Join(folder, "millrace.db")); err == nil {
			t.Errorf("%s: a database was made", folder)
		}
	}
	if info, err := os.Stat(shared); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("a shared folder was changed: %v, %v", info.Mode(), err)
	}
}

func TestACopyOfADatabaseOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	for _, path := range []string{from, to} {
		if _, err := store.Migrate(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Copy(t.Context(), from, to); err == nil {
		t.Error("a database was overwritten")
	}
}
