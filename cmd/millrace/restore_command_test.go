package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/store/storetest"
)

// service is the user that a data folder belongs to, where root runs the tests.
const serviceID = 4242

// reachable lets other users pass through the folders of a test.
func reachable(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for path := folder; filepath.Base(filepath.Dir(path)) != filepath.Base(os.TempDir()) && len(path) > len(os.TempDir()); path = filepath.Dir(path) {
		if err := errors.Join(os.Chmod(path, 0o755), os.Chmod(filepath.Dir(path), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// packagedFolder is an empty data folder as the package makes it.
func packagedFolder(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(reachable(t), "data")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(folder, serviceID, serviceID); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// wantOwned fails for what belongs to somebody else than the folder, or is open to others.
func wantOwned(t *testing.T, folder string) {
	t.Helper()
	owner := os.Geteuid()
	if owner == 0 {
		owner = serviceID
	}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == "attempts" {
			return filepath.SkipDir // its program is for the users of tasks
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if stat := info.Sys().(*syscall.Stat_t); int(stat.Uid) != owner || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s belongs to %d:%d and has the mode %v", path, stat.Uid, stat.Gid, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// chownAll gives a folder to a user, where root runs the tests.
func chownAll(t *testing.T, folder string, id int) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	if err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, id, id))
	}); err != nil {
		t.Fatal(err)
	}
}

// system runs a program of the system.
func system(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v %s", name, args, err, out)
	}
}

// backedUp makes an installation with a run, and a backup of it on another machine: its
// files have other inodes and another path, and belong to another user.
func backedUp(t *testing.T, args ...string) (backup, cookie, run string) {
	t.Helper()
	data := t.TempDir()
	s := start(t, append([]string{"--data", data, "--sandbox", "none"}, args...)...)
	token, cookie, _ := s.signUp("ada")
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, restorable)))
	s.endedFor(cookie, id)
	first := filepath.Join(t.TempDir(), "backup")
	if out, err := millrace(t, append([]string{"backup", "--data", data, first}, databaseArgs(args)...)...).CombinedOutput(); err != nil || !strings.Contains(string(out), "is a complete backup") {
		t.Fatalf("%v %s", err, out)
	}
	system(t, "sh", "-c", `cd "$1" && sha256sum --check --quiet --strict backup.sha256`, "sh", first)
	backup = filepath.Join(t.TempDir(), "moved", "copy")
	system(t, "mkdir", filepath.Dir(backup))
	system(t, "cp", "-r", first, backup)
	s.kill()
	if err := errors.Join(os.RemoveAll(data), os.RemoveAll(first)); err != nil {
		t.Fatal(err)
	}
	return backup, cookie, id
}

// databaseArgs leaves out of the arguments of a server what a backup does not take.
func databaseArgs(args []string) (list []string) {
	for i, arg := range args {
		if arg == "--database-url" || arg == "--storage-url" || arg == "--secret-key" {
			list = append(list, arg, args[i+1])
		}
	}
	return list
}

func TestRestoreIntoTheFolderOfThePackage(t *testing.T) {
	t.Parallel()
	backup, cookie, id := backedUp(t)
	data := packagedFolder(t)
	out, err := millrace(t, "restore", backup, "--data", data).CombinedOutput()
	for _, want := range []string{"the database is intact", "sample of outputs (of the oldest and newest 4, 4 were opened)", "is complete. Start the server"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, without %q: %s", err, want, out)
		}
	}
	wantOwned(t, data)
	chownAll(t, data, os.Geteuid())
	again := start(t, "--data", data, "--sandbox", "none")
	again.hasRestored(cookie, id)
	again.kill()
	if out, err := millrace(t, "admin", "doctor", "--data", data).CombinedOutput(); err != nil || !strings.Contains(string(out), "ok       sample of outputs (of the oldest and newest 4, 4 were opened)") {
		t.Errorf("%v, doctor prints\n%s", err, out)
	}
	if out, err := millrace(t, "restore", backup, "--data", data).CombinedOutput(); err == nil || !strings.Contains(string(out), "is not empty") {
		t.Errorf("over an installation: %v %s", err, out)
	}
}

func TestRestoreOfPostgresAndABucket(t *testing.T) {
	t.Parallel()
	from, to := storetest.Postgres(t), storetest.Postgres(t)
	system(t, "psql", "--quiet", "--command=DROP SCHEMA public CASCADE; CREATE SCHEMA public", to)
	prefix := strings.ToLower(t.Name())
	bucket := func(folder string) string { return bucketAddress(t) + "&prefix=" + prefix + folder }
	backup, cookie, id := backedUp(t, "--database-url", from, "--storage-url", bucket("/first"))
	copyObjects(t, prefix+"/first/", prefix+"/second/")
	data := packagedFolder(t)
	restore := func(database string) (string, error) {
		out, err := millrace(t, "restore", backup, "--data", data, "--database-url", database, "--storage-url", bucket("/second")).CombinedOutput()
		return string(out), err
	}
	if out, err := restore(from); err == nil || !strings.Contains(out, "is not empty") {
		t.Errorf("over a database that is used: %v %s", err, out)
	}
	if out, err := millrace(t, "restore", backup, "--data", data).CombinedOutput(); err == nil || !strings.Contains(string(out), "--database-url") {
		t.Errorf("without a database: %v %s", err, out)
	}
	if out, err := restore(to); err != nil || !strings.Contains(out, "4 were opened") {
		t.Fatalf("%v %s", err, out)
	}
	wantOwned(t, data)
	chownAll(t, data, os.Geteuid())
	again := start(t, "--data", data, "--database-url", to, "--storage-url", bucket("/second"), "--sandbox", "none")
	again.hasRestored(cookie, id)
}

// What was interrupted or changed is never taken for a complete installation.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	backup, cookie, id := backedUp(t)
	refused := func(want string, args ...string) {
		t.Helper()
		if out, err := millrace(t, append([]string{"restore"}, args...)...).CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v %s, want %q", args, err, out, want)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(backup, link); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{backup, filepath.Join(backup, "a", "b"), filepath.Dir(backup), filepath.Join(link, "data")} {
		refused("inside each other", backup, "--data", data)
	}
	if os.Geteuid() == 0 {
		closed := filepath.Join(reachable(t), "closed")
		data := filepath.Join(closed, "data")
		if err := errors.Join(os.MkdirAll(data, 0o700), os.Chown(data, serviceID, serviceID)); err != nil {
			t.Fatal(err)
		}
		refused("cannot pass through "+closed, backup, "--data", data)
	}
	refused("is not a backup", t.TempDir(), "--data", filepath.Join(t.TempDir(), "d"))
	refused("no such file", filepath.Join(t.TempDir(), "none"), "--data", filepath.Join(t.TempDir(), "d"))
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "thesis"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("is not empty", backup, "--data", used)

	changed := filepath.Join(t.TempDir(), "changed")
	system(t, "cp", "-r", backup, changed)
	system(t, "sh", "-c", `f=$(grep -rlx hello "$1/objects") && echo jello > "$f"`, "sh", changed)
	data := filepath.Join(t.TempDir(), "data")
	refused("does not have the content that was backed up", changed, "--data", data)
	if out, err := millrace(t, "serve", "--listen", "127.0.0.1:0", "--data", data).CombinedOutput(); err == nil || !strings.Contains(string(out), "did not finish") {
		t.Errorf("a server starts on half a restore: %v %s", err, out)
	}
	if out, err := millrace(t, "admin", "user", "list", "--data", data).CombinedOutput(); err == nil || !strings.Contains(string(out), "did not finish") {
		t.Errorf("a command works on half a restore: %v %s", err, out)
	}
	refused("another command did not finish", backup, "--data", data)
	for _, bad := range []string{
		`rm "$1/secret.key"`, `rm "$1/secret.key" && ln -s /etc/passwd "$1/secret.key"`, `echo "$(printf %064d 0)  ../../x" >> "$1/backup.sha256"`, `cd "$1" && echo x > lock && sha256sum lock >> backup.sha256`, `touch "$1/unfinished" && echo x > "$1/unfinished"`,
	} {
		other := filepath.Join(t.TempDir(), "other")
		system(t, "cp", "-r", backup, other)
		system(t, "sh", "-c", bad, "sh", other)
		if out, err := millrace(t, "restore", other, "--data", filepath.Join(t.TempDir(), "d")).CombinedOutput(); err == nil {
			t.Errorf("%s: %s", bad, out)
		}
	}

	// It is begun again once the file is mended.
	system(t, "sh", "-c", `f=$(grep -rlx jello "$1/objects") && echo hello > "$f"`, "sh", changed)
	system(t, "sh", "-c", `echo half > "$1/unfinished.file" && echo stale > "$1/millrace.db-wal"`, "sh", data)
	if out, err := millrace(t, "restore", changed, "--data", data).CombinedOutput(); err != nil {
		t.Fatalf("again: %v %s", err, out)
	}
	start(t, "--data", data, "--sandbox", "none").hasRestored(cookie, id)
}

// A restore that was killed is not complete, and continues.
func TestRestoreSurvivesKills(t *testing.T) {
	t.Parallel()
	backup, cookie, id := backedUp(t)
	data := filepath.Join(t.TempDir(), "data")
	marked := func() bool { _, err := os.Stat(filepath.Join(data, "unfinished")); return err == nil }
	for range 3 {
		cmd := millrace(t, "restore", backup, "--data", data)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, "the beginning of the restore", func() bool {
			_, err := os.Stat(filepath.Join(data, "millrace.db"))
			return err == nil
		})
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		out, err := millrace(t, "admin", "user", "list", "--data", data).CombinedOutput()
		if marked() != (err != nil) || marked() != strings.Contains(string(out), "did not finish") {
			t.Errorf("%v %s", err, out)
		}
	}
	if out, err := millrace(t, "restore", backup, "--data", data).CombinedOutput(); err != nil && !strings.Contains(string(out), "is not empty") {
		t.Fatalf("%v %s", err, out)
	}
	chownAll(t, data, os.Geteuid())
	start(t, "--data", data, "--sandbox", "none").hasRestored(cookie, id)
}

// Backups that were made before there was a list of their files can be restored.
func TestRestoreWithoutAList(t *testing.T) {
	t.Parallel()
	backup, cookie, id := backedUp(t)
	if err := os.Remove(filepath.Join(backup, "backup.sha256")); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	if out, err := millrace(t, "restore", backup, "--data", data).CombinedOutput(); err != nil || !strings.Contains(string(out), "has no backup.sha256") {
		t.Fatalf("%v %s", err, out)
	}
	chownAll(t, data, os.Geteuid())
	start(t, "--data", data, "--sandbox", "none").hasRestored(cookie, id)
}

// pageCommands runs the commands under a heading of the page about backups as root of a
// machine whose paths are those of here.
func pageCommands(t *testing.T, text string, here ...string) string {
	t.Helper()
	programs := t.TempDir()
	program := filepath.Join(programs, "millrace")
	if err := os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\nBE_MILLRACE=1 exec %q \"$@\"\n", os.Args[0]), 0o755); err != nil {
		t.Fatal(err)
	}
	c := millrace(t)
	c.Args = []string{"sh", "-euc", strings.NewReplacer(append(here, "/usr/bin/millrace", program)...).Replace(text)}
	c.Env = append(c.Env[1:], "PATH="+programs+":"+os.Getenv("PATH"))
	c.Path = "/bin/sh"
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v %s", text, err, out)
	}
	return string(out)
}

// underHeading is the first shell example under a heading of a page for operators.
func underHeading(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operating/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n"+heading+"\n")
	example := shellFence.FindStringSubmatch(rest)
	if !found || example == nil {
		t.Fatalf("%s has no example under %q", page, heading)
	}
	return example[1]
}

func TestTheRestoreDrill(t *testing.T) {
	t.Parallel()
	backup, _, _ := backedUp(t)
	drill := filepath.Join(t.TempDir(), "drill")
	out := pageCommands(t, underHeading(t, "backup.md", "### Restore drill"), "/var/backups/millrace/2026-11-15", backup, "/var/tmp/millrace-drill", drill, "127.0.0.1:8081", "127.0.0.1:0")
	if !strings.Contains(out, "is complete") || !strings.Contains(out, "4 were opened") || !strings.Contains(out, "0 runs queued") {
		t.Error(out)
	}
	if _, err := os.Stat(drill); err == nil {
		t.Error("the drill left something")
	}
}

// The commands of the pages that make a backup and restore it, without those of systemd.
func TestRestoreAsThePageSays(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root gives folders to others")
	}
	top := reachable(t)
	data := filepath.Join(top, "lib")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--data", data, "--sandbox", "none")
	_, cookie, _ := s.signUp("ada")
	here := []string{"/var/lib/millrace", data, "/var/backups/millrace", top, "-o millrace -g millrace", fmt.Sprintf("-o %d -g %d", serviceID, serviceID), "systemctl", "true"}
	pageCommands(t, underHeading(t, "backup.md", "## Make a backup"), here...)
	s.kill()
	pageCommands(t, underHeading(t, "backup.md", "## Restore a backup"), here...)
	wantOwned(t, data)
	chownAll(t, data, 0)
	start(t, "--data", data, "--sandbox", "none").want(200, "GET", "/api/me", "", "Cookie", cookie)
}

// What the timer starts makes a backup, deletes old ones, and leaves nothing of root's in the
// data folder, with or without a server.
func TestTheBackupUnitMakesBackups(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../deploy/systemd/millrace-backup.service")
	if err != nil {
		t.Fatal(err)
	}
	top := reachable(t)
	data, backups, config := packagedFolder(t), filepath.Join(top, "backups"), filepath.Join(top, "millrace.conf")
	if err := os.WriteFile(config, []byte("data = "+data+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	chownAll(t, data, os.Geteuid())
	start(t, "--data", data, "--sandbox", "none").kill()
	chownAll(t, data, serviceID)
	old := filepath.Join(backups, "2026-01-01T000000")
	system(t, "mkdir", "-p", old)
	system(t, "touch", "-d", "20 days ago", old)
	var lines []string
	for line := range strings.Lines(string(unit)) {
		if name, command, found := strings.Cut(strings.TrimSpace(line), "="); found && strings.HasPrefix(name, "ExecStart") {
			lines = append(lines, strings.NewReplacer("%%", "%", "$$", "$").Replace(command))
		}
	}
	out := pageCommands(t, strings.Join(lines, "\n"), "/var/backups/millrace", backups, "/etc/millrace/millrace.conf", config)
	made, err := filepath.Glob(filepath.Join(backups, "*", "backup.sha256"))
	if err != nil || len(lines) != 3 || len(made) != 1 || !strings.Contains(out, "is a complete backup") {
		t.Errorf("%q made %q, %v: %s", lines, made, err, out)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the old backup is still there")
	}
	wantOwned(t, data)
}
