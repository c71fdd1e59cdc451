package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/store/storetest"
)

// TestARollingUpgradeLosesNoRun runs the program of an earlier commit beside this
// one, on one database.
func TestARollingUpgradeLosesNoRun(t *testing.T) {
	earlier := os.Getenv("MILLRACE_TEST_EARLIER")
	if earlier == "" {
		t.Skip("MILLRACE_TEST_EARLIER names no earlier program: make test-deploy does")
	}
	db, gates := storetest.Postgres(t), t.TempDir()
	withoutTables(t, db)
	common := []string{
		"--database-url", db, "--secret-key", "shared by all replicas", "--public-urls", "http://millrace.example",
		"--sign-up", "open", "--sandbox", "none", "--storage-url", os.Getenv("MILLRACE_TEST_S3"),
	}
	old := func(args ...string) *exec.Cmd {
		c := millrace(t, append(append([]string{"serve", "--listen", "127.0.0.1:0", "--capacity", "vcpu=2,ramGb=8"}, common...), args...)...)
		c.Path = earlier
		return c
	}
	oldData, newData := t.TempDir(), t.TempDir()
	a := launch(t, old("--data", oldData))
	token, _, _ := a.signUp("ada")
	a.verify("ada")
	who := []string{"Authorization", bearer(token)}
	begin := func(s *server, name string) string {
		t.Helper()
		command := fmt.Sprintf("touch %[1]s/%[2]s.began; until [ -e %[1]s/%[2]s ]; do sleep 0.1; done; echo end", gates, name)
		workflow := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":%q,"definition":{"nodes":[{"id":"a","command":%q}]}}`, name, command), who...)["id"].(string)
		run := s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, workflow), who...)["runId"].(string)
		await(t, name+" begins", func() bool { _, err := os.Stat(filepath.Join(gates, name+".began")); return err == nil })
		return run
	}
	release := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(gates, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stop := func(s *server) {
		t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-s.drained
		if err := s.cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, s.log)
		}
	}

	// The first fills the old server, so that the second is the new one's.
	first := begin(a, "first")
	earlierSchema := schema(t, db)
	b := start(t, append(common, "--data", newData)...)
	second := begin(b, "second")
	a.want(200, "GET", "/api/runs/"+second, "", who...)

	// The old one is replaced in its place. Its tasks had no process of their own, so they
	// are ended, and run again.
	stop(a)
	c := start(t, append(common, "--data", oldData)...)
	release("first")
	if run := c.endedAs(first, who...); run["status"] != "completed" {
		t.Errorf("the run that the earlier server began: %v", run)
	}
	release("second")
	if run := c.endedAs(second, who...); !once(run) {
		t.Errorf("the run that the new server began: %v", run)
	}

	stop(b)
	if schema(t, db) == earlierSchema {
		return // nothing keeps one from going back
	}
	out, err := old("--data", newData).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "newer than this program knows") {
		t.Errorf("going back: %v %s", err, out)
	}
}

// once reports whether a run ended well, with each step started once.
func once(run map[string]any) bool {
	for _, node := range run["nodes"].([]any) {
		if node.(map[string]any)["attempt"] != 1.0 {
			return false
		}
	}
	return run["status"] == "completed"
}

// schema is the last migration that was made.
func schema(t *testing.T, url string) (version int) {
	t.Helper()
	withDatabase(t, url, func(db *sql.DB) error {
		return db.QueryRow("SELECT max(version_id) FROM schema_versions").Scan(&version)
	})
	return version
}

// withoutTables takes the tables away, so that the earlier program makes its own.
func withoutTables(t *testing.T, url string) {
	t.Helper()
	withDatabase(t, url, func(db *sql.DB) error {
		_, err := db.Exec("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
		return err
	})
}

func withDatabase(t *testing.T, url string, do func(*sql.DB) error) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(do(db), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// A database that a newer program has migrated is refused, and not called up to date.
func TestMigrateRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", storetest.Postgres(t)} {
		t.Run(map[bool]string{true: "sqlite", false: "postgres"}[url == ""], func(t *testing.T) {
			t.Parallel()
			folder, driver, where := t.TempDir(), "pgx", url
			args := []string{"migrate", "--data", folder}
			if url == "" {
				driver, where = "sqlite", filepath.Join(folder, "millrace.db")
			} else {
				args = append(args, "--database-url", url)
			}
			if out, err := millrace(t, args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "up to date") {
				t.Fatalf("%v: %s", err, out)
			}
			db, err := sql.Open(driver, where)
			if err != nil {
				t.Fatal(err)
			}
			_, err = db.Exec("INSERT INTO schema_versions (version_id, is_applied) VALUES (99999, TRUE)")
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			out, err := millrace(t, args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "newer than this program knows") || strings.Contains(string(out), "up to date") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
