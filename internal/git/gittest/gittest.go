// Package gittest makes Git repositories and serves them as Git itself does, for
// the tests of others.
package gittest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repository is one with a working folder.
type Repository struct {
	t   *testing.T
	Dir string
}

// New makes an empty one, whose branch is main. It gives away whatever it is
// asked for.
func New(t *testing.T) *Repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed")
		}
		t.Skip("git is not installed")
	}
	r := &Repository{t: t, Dir: filepath.Join(t.TempDir(), "repo")}
	if err := os.Mkdir(r.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Git("init", "-q", "-b", "main")
	for _, setting := range []string{"http.receivepack=false", "uploadpack.allowFilter=true", "uploadpack.allowAnySHA1InWant=true", "gc.auto=0"} {
		name, value, _ := strings.Cut(setting, "=")
		r.Git("config", name, value)
	}
	return r
}

// Git runs git in the repository, and returns what it printed.
func (r *Repository) Git(args ...string) string { return r.GitWith("", args...) }

// GitWith runs git with an input.
func (r *Repository) GitWith(input string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	var failed bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stderr = r.Dir, strings.NewReader(input), &failed
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %s: %s: %s", strings.Join(args, " "), err, failed.String())
	}
	return strings.TrimSpace(string(out))
}

var environment = []string{
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
	"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org", "GIT_TERMINAL_PROMPT=0",
}

// Write puts a file into the working folder.
func (r *Repository) Write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.Dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// Commit commits all that is in the working folder, and returns the commit.
func (r *Repository) Commit() string {
	r.t.Helper()
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", "change")
	return r.Git("rev-parse", "HEAD")
}

// CommitTree makes a commit of a tree and moves the branch there.
func (r *Repository) CommitTree(tree string) string {
	r.t.Helper()
	commit := r.Git("commit-tree", "-m", "raw", tree)
	r.Git("update-ref", "refs/heads/main", commit)
	return commit
}

// Serve serves the repository by git http-backend until the test ends, and
// returns its address.
func (r *Repository) Serve() string {
	r.t.Helper()
	return r.ServeBehind(func(h http.Handler) http.Handler { return h })
}

// ServeBehind serves it behind something that looks at each request first.
func (r *Repository) ServeBehind(around func(http.Handler) http.Handler) string {
	r.t.Helper()
	folder := strings.TrimSpace(r.Git("--exec-path"))
	server := httptest.NewServer(around(&cgi.Handler{
		Stderr: io.Discard, Path: filepath.Join(folder, "git-http-backend"), InheritEnv: []string{"PATH"},
		Env: append([]string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.Dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}, environment...),
	}))
	r.t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(r.Dir)
}
