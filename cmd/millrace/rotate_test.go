package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// The key of an embedded installation is changed by one command: accounts,
// secrets and links work on, and a change that was cut off is finished.
func TestTheKeyOfAnInstallationIsChanged(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := start(t, "--data", folder)
	_, cookie, _ := s.signUp("ada")
	s.want(200, "PUT", "/api/secrets/TOKEN", `{"value":"the value of it"}`, "Cookie", cookie)
	rotate := func() (string, error) {
		out, err := millrace(t, "admin", "rotate-key", "--data", folder).CombinedOutput()
		return string(out), err
	}
	if out, err := rotate(); err == nil || !strings.Contains(out, "in use by another server") {
		t.Errorf("beside a running server: %v, %s", err, out)
	}
	s.kill()
	old, err := os.ReadFile(filepath.Join(folder, installation.KeyName))
	if err != nil {
		t.Fatal(err)
	}
	// As if it had been killed before anything was sealed.
	if err := os.WriteFile(filepath.Join(folder, installation.NextKeyName), []byte("a key that is long enough for it\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := rotate(); err != nil {
		t.Fatal(out)
	}
	text, err := os.ReadFile(filepath.Join(folder, installation.KeyName))
	if err != nil || string(text) == string(old) || strings.TrimSpace(string(text)) != "a key that is long enough for it" {
		t.Errorf("the key is %q, %v", text, err)
	}
	if out, err := rotate(); err != nil { // and again, to one that it makes
		t.Fatal(out)
	}
	s = start(t, "--data", folder)
	token := s.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	w := s.workflow(token, `{"nodes":[{"id":"a","secrets":["TOKEN"],"command":"[ \"$SECRET_TOKEN\" = 'the value of it' ]"}]}`)
	body := `{"workflowId":"` + w + `"}`
	var status int
	var answer map[string]any
	if !waittest.Until(func() bool {
		status, answer, _ = s.call("POST", "/api/runs", body, "Authorization", bearer(token))
		return status == 202
	}) {
		t.Fatalf("no run is accepted: %d, %v\n%s", status, answer, s.log)
	}
	if r := s.ended(token, s.run(token, body)); r["status"] != "completed" {
		t.Errorf("%v", r["errorMessage"])
	}
	s.kill()
	// A key that was lost is missed at the start.
	if err := os.Remove(filepath.Join(folder, installation.KeyName)); err != nil {
		t.Fatal(err)
	}
	out, err := millrace(t, "serve", "--data", folder, "--listen", "127.0.0.1:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "put the secret.key of the first server there") {
		t.Errorf("without its key: %v, %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(folder, installation.KeyName)); err == nil {
		t.Error("it made another key")
	}
}

// listing is the files of a folder with their contents.
func listing(t *testing.T, folder string, names string) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, names))
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list[filepath.Base(file)] = string(text)
	}
	return list
}

// A change of the key is refused while a server runs, also one that executes nothing, and
// leaves nothing behind: the server starts again.
func TestRefusedRotationChangesNothing(t *testing.T) {
	t.Parallel()
	for _, executor := range []string{"local", "none"} {
		t.Run(executor, func(t *testing.T) {
			t.Parallel()
			db, folder := storetest.Postgres(t), t.TempDir()
			args := []string{"--database-url", db, "--data", folder, "--executor", executor, "--sandbox", "none"}
			s := start(t, args...)
			withDatabase(t, db, func(db *sql.DB) error {
				await(t, "a sign of the server", func() bool {
					var n int
					err := db.QueryRow(`SELECT (SELECT COUNT(*) FROM workers) + (SELECT COUNT(*) FROM upkeep_lease WHERE until > 0)`).Scan(&n)
					return err == nil && n > 0
				})
				return nil
			})
			before := listing(t, folder, "secret.key*")
			other := t.TempDir() // an operator's own folder with a copy of the key
			if err := os.WriteFile(filepath.Join(other, installation.KeyName), []byte(before[installation.KeyName]), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, data := range []string{folder, other} {
				out, err := millrace(t, "admin", "rotate-key", "--database-url", db, "--data", data).CombinedOutput()
				if err == nil || !strings.Contains(string(out), "stop") {
					t.Errorf("beside a running server: %v, %s", err, out)
				}
				if diff := cmp.Diff(before, listing(t, data, "secret.key*")); diff != "" {
					t.Errorf("the keys changed (-before +after): %s", diff)
				}
			}
			s.kill()
			start(t, args...)
		})
	}
}

// A server that a change of the key overlooks, because it stood still for so long that
// nothing tells of it any more, ends: it would go on sealing with the old key.
func TestServerWhoseKeyWasChangedEnds(t *testing.T) {
	t.Parallel()
	const old, next = "the key of all servers", "the key that comes after it"
	url := storetest.Postgres(t)
	s := start(t, "--database-url", url, "--data", t.TempDir(), "--secret-key", old, "--executor", "none")
	withDatabase(t, url, func(db *sql.DB) error {
		await(t, "a change of the key", func() bool {
			if _, err := db.Exec(`UPDATE upkeep_lease SET until = 0`); err != nil {
				t.Fatal(err)
			}
			_, err := store.RotateSecretKey(t.Context(), store.Options{URL: url, SecretKey: old}, next)
			return err == nil
		})
		return nil
	})
	<-s.drained
	if err := s.cmd.Wait(); err == nil || !strings.Contains(s.log.String(), "secret key was changed") {
		t.Errorf("%v: %s", err, s.log)
	}
}

// Run by root, a change of the key leaves all files to the user of the service, with the
// permissions that they had, and keeps the old key.
func TestRotationKeepsOwnerAndMode(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can run it for another user")
	}
	const service, mode = 4242, 0o640
	folder := reachable(t)
	start(t, "--data", folder).kill()
	old := listing(t, folder, installation.KeyName)[installation.KeyName]
	if err := os.Chmod(filepath.Join(folder, installation.KeyName), mode); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, service, service))
	}); err != nil {
		t.Fatal(err)
	}
	out, err := millrace(t, "admin", "rotate-key", "--data", folder).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	keys := listing(t, folder, "secret.key*")
	if len(keys) != 2 || keys[installation.KeyName] == old {
		t.Errorf("the keys are %v", keys)
	}
	for name, text := range keys {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has the mode %v, %v", name, info.Mode(), err)
		}
		if name != installation.KeyName && (text != old || !strings.Contains(string(out), name)) {
			t.Errorf("%s holds %q; the command says %s", name, text, out)
		}
	}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != service || owner.Gid != service {
			t.Errorf("%s belongs to %d:%d", path, owner.Uid, owner.Gid)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A change of the key that was killed is finished or undone, whatever it had done. What
// can happen inside of the database is tried statement by statement in package store.
func TestKilledRotationIsFinishedOrUndone(t *testing.T) {
	t.Parallel()
	const next = "a key that is long enough for it"
	made := t.TempDir()
	s := start(t, "--data", made)
	_, cookie, _ := s.signUp("ada")
	s.want(200, "PUT", "/api/secrets/TOKEN", `{"value":"the value of it"}`, "Cookie", cookie)
	s.kill()
	kept := listing(t, made, "millrace.db*")
	maps.Copy(kept, listing(t, made, installation.KeyName))
	old := strings.TrimSpace(kept[installation.KeyName])
	write := func(t *testing.T, folder, name, key string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rotate := func(t *testing.T, folder string, statements int) {
		t.Helper()
		ctx, kill := context.WithCancel(t.Context())
		defer kill()
		o := store.Options{URL: filepath.Join(folder, "millrace.db"), SecretKey: old, Statement: func(string) {
			if statements--; statements < 0 {
				kill()
			}
		}}
		if _, err := store.RotateSecretKey(ctx, o, next); (err == nil) != (statements >= 0) {
			t.Fatalf("%d statements are left: %v", statements, err)
		}
	}
	for name, tt := range map[string]struct {
		killed func(t *testing.T, folder string)
		starts bool // a server, before the change is finished or undone
	}{
		"after the new key was written": {func(t *testing.T, folder string) {
			write(t, folder, installation.NextKeyName, next)
		}, true},
		"while the database was changed": {func(t *testing.T, folder string) {
			write(t, folder, installation.NextKeyName, next)
			rotate(t, folder, 12)
		}, false},
		"after the database was changed": {func(t *testing.T, folder string) {
			write(t, folder, installation.NextKeyName, next)
			rotate(t, folder, 1<<20)
		}, false},
		"after the old key was kept": {func(t *testing.T, folder string) {
			write(t, folder, installation.NextKeyName, next)
			rotate(t, folder, 1<<20)
			write(t, folder, "secret.key.old-1", old)
		}, false},
	} {
		for _, undo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, undo %t", name, undo), func(t *testing.T) {
				t.Parallel()
				folder := t.TempDir()
				for name, text := range kept {
					if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				tt.killed(t, folder)
				out, err := millrace(t, "admin", "audit", "verify", "--data", folder).CombinedOutput()
				if (err == nil) != tt.starts || err != nil && (!strings.Contains(string(out), "rotate-key") || !strings.Contains(string(out), "--undo")) {
					t.Errorf("a command beside it: %v, %s", err, out)
				}
				args, key := []string{"admin", "rotate-key", "--data", folder}, next
				if undo {
					args, key = append(args, "--undo"), old
				}
				if out, err := millrace(t, args...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				keys := listing(t, folder, "secret.key*")
				if _, left := keys[installation.NextKeyName]; left || strings.TrimSpace(keys[installation.KeyName]) != key || !undo && strings.TrimSpace(keys["secret.key.old-1"]) != old {
					t.Errorf("the keys are %v", keys)
				}
				if out, err := millrace(t, "admin", "audit", "verify", "--data", folder).CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
				if out, err := millrace(t, "admin", "rotate-key", "--undo", "--data", folder).CombinedOutput(); err == nil || !strings.Contains(string(out), "nothing to undo") {
					t.Errorf("undone once more: %v, %s", err, out)
				}
			})
		}
	}
}
