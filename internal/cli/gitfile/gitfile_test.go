package gitfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// decoded is a JSON text as values to compare.
func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// written writes a definition as YAML and reads it again.
func written(t *testing.T, definition []byte) (again json.RawMessage, text []byte) {
	t.Helper()
	folder := t.TempDir()
	text, err := YAML(Workflow{Name: "w", Definition: definition})
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, text, false); err != nil {
		t.Fatal(err)
	}
	again, err = Read(folder)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return again, text
}

func TestAWorkflowIsTheSameAfterYAML(t *testing.T) {
	t.Parallel()
	values := []string{
		`""`, `" "`, `"yes"`, `"no"`, `"on"`, `"null"`, `"~"`, `"true"`, `"1"`, `"1e3"`, `"0x1F"`, `"0o7"`, `"1_000"`, `".5"`, `".nan"`, `"2026-01-01"`, `"12:30:45"`, `"="`,
		`"a: b"`, `"- a"`, `"# a"`, `"a # b"`, `"{a}"`, `"[a"`, `"&a"`, `"*a"`, `"!a"`, `"%a"`, `"@a"`, "\"`a\"", `"'"`, `"\""`, `"|"`, `">"`, `"<<"`, `"---"`, `"..."`, `"--- a"`,
		`"a\nb"`, `"a\nb\n"`, `"a\n\n"`, `"\na"`, `"\n"`, `"\n\n"`, `"  a\nb"`, `"a\n  b\n c"`, `"\n  a\nb"`, `" \na"`, `"a \nb "`, `"\ta\nb"`, `"a\n\tb"`, `"a\r\nb"`, `"a\rb"`,
		`"\u0000"`, `"\u0007\u001b[31m"`, `"\u0085\u2028\u2029"`, `"\ufeffa"`, `"\u202e"`, `"é 漢 🙂"`, `"\u007f"`, `"\\"`, `"\\n"`,
		`"for f in *; do\n  echo \"$f\"\ndone\n"`, `"  indented first\nthen not\n"`, `"#!/bin/sh\nset -e\n"`, `"trailing space \n"`, `"cat <<'X'\n\n  a\n\nX\n"`,
		`0`, `-1`, `1.5`, `1e3`, `-0.0`, `1E-7`, `9007199254740993`, `true`, `false`, `null`, `[]`, `{}`, `[[],{}]`, `{"":""}`, `{"a b":{"1":[null]}}`, `{"<<":{"x":1}}`, `{"~":1,"yes":2,"1":3}`,
	}
	for _, value := range values {
		definition := []byte(`{"nodes":[{"id":"a","command":` + value + `}],"x":` + value + `}`)
		if again, text := written(t, definition); !reflect.DeepEqual(decoded(t, definition), decoded(t, again)) {
			t.Errorf("%s becomes %s by way of\n%s", definition, again, text)
		}
	}
}

// Commands are lines of anything.
func TestAnyCommandIsTheSameAfterYAML(t *testing.T) {
	t.Parallel()
	parts := []string{"\n", "\n", " ", "  ", "\t", "a", "#", ":", "- ", "'", `"`, `\`, "|", "é", "\r", "%", "$x", "{", "}", "\u0085"}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		var command strings.Builder
		for range r.IntN(12) {
			command.WriteString(parts[r.IntN(len(parts))])
		}
		definition, err := json.Marshal(map[string]string{"command": command.String()})
		if err != nil {
			t.Fatal(err)
		}
		if again, text := written(t, definition); !reflect.DeepEqual(decoded(t, definition), decoded(t, again)) {
			t.Fatalf("%s becomes %s by way of\n%s", definition, again, text)
		}
	}
}

func TestFieldsStayInTheirOrder(t *testing.T) {
	t.Parallel()
	text, err := YAML(Workflow{Name: "Align", Description: "reads", Definition: []byte(`{"version":1,"nodes":[{"id":"z","command":"a\nb\n"}],"edges":[]}`)})
	want := "name: Align\ndescription: reads\ndefinition:\n  version: 1\n  nodes:\n    - id: z\n      command: |\n        a\n        b\n  edges: []\n"
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, text, want)
	}
	for _, broken := range []string{`{`, `[1,`, ``} {
		if _, err := YAML(Workflow{Definition: json.RawMessage(broken)}); err == nil {
			t.Errorf("%q is written", broken)
		}
	}
}

func TestWhatIsReadOfAFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // JSON, or a part of the error
		"nodes: []\n":                                `{"nodes":[]}`,
		"name: x\ndefinition:\n  nodes: []\n":        `{"nodes":[]}`,
		"{\"nodes\": [{\"id\": \"a\"}]}":             `{"nodes":[{"id":"a"}]}`,
		"nodes:\n  - id: a\n    command: |\n      x": `{"nodes":[{"id":"a","command":"x"}]}`,
		"nodes: [\n":                                 "millrace.yaml: ",
		"- a\n":                                      "millrace.yaml: ",
		"a: .nan\n":                                  "millrace.yaml: ",
		"nodes: []\nday: 2026-01-02\n":               `{"nodes":[],"day":"2026-01-02"}`,
		"a: 1\na: 2\n":                               "millrace.yaml: ",
		string(Template) + "\n":                      "",
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, Name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(folder)
		switch {
		case strings.HasPrefix(want, "{"):
			if err != nil || !reflect.DeepEqual(decoded(t, got), decoded(t, []byte(want))) {
				t.Errorf("%s is %s, %v", text, got, err)
			}
		case want == "":
			if err != nil || !bytes.Contains(got, []byte(`"nodes"`)) {
				t.Errorf("the template: %s, %v", got, err)
			}
		case err == nil || !strings.HasPrefix(err.Error(), want):
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	if _, err := Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "millrace workflows init") {
		t.Errorf("without a file: %v", err)
	}
}

func TestAFileIsOverwrittenOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, step := range []struct {
		text  string
		force bool
		want  string
	}{{"a long first text", false, "a long first text"}, {"second", false, "a long first text"}, {"third", true, "third"}} {
		err := Write(folder, []byte(step.text), step.force)
		if refused := step.want != step.text; (err != nil) != refused || refused && !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s: %v", step.text, err)
		}
		if got, err := os.ReadFile(filepath.Join(folder, Name)); err != nil || string(got) != step.want {
			t.Errorf("it is %q, %v", got, err)
		}
	}
}

// Only the file is committed, whatever else is in the person's hands, and what has
// not changed is not committed again.
func TestAPushCommitsTheFileAlone(t *testing.T) {
	t.Parallel()
	host, folder := filepath.Join(t.TempDir(), "host.git"), t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet", "--bare", host)
	git("init", "--quiet", "--initial-branch=main")
	for _, setting := range []string{"user.name=Ada", "user.email=ada@example.org", "push.default=current", "commit.gpgsign=false", "remote.origin.url=" + host} {
		name, value, _ := strings.Cut(setting, "=")
		git("config", name, value)
	}
	if err := os.WriteFile(filepath.Join(folder, "notes"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", "notes")
	var says bytes.Buffer
	for _, text := range []string{"one", "one", "two"} {
		if err := Write(folder, []byte(text), true); err != nil {
			t.Fatal(err)
		}
		if err := (Git{Folder: folder, Says: &says}).Push(t.Context(), "-m is part of "+text); err != nil {
			t.Fatalf("%v: %s", err, &says)
		}
	}
	if got := git("--git-dir", host, "log", "--format=%s", "--name-only", "main"); got != "-m is part of two\n\nmillrace.yaml\n-m is part of one\n\nmillrace.yaml" {
		t.Errorf("the host has %s", got)
	}
	if got := git("diff", "--cached", "--name-only"); got != "notes" {
		t.Errorf("what was staged is %q", got)
	}
	if err := (Git{Folder: t.TempDir(), Says: &says}).Push(t.Context(), "x"); err == nil || !strings.HasPrefix(err.Error(), "git add: ") {
		t.Errorf("outside of a repository: %v", err)
	}
}

// A branch that was never pushed has no upstream, which git by itself refuses to push.
func TestABranchWithoutAnUpstreamIsPushed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		setUp  []string // commands of git, in a repository with a commit and the branch work
		fails  string
		remote string // that has the branch afterwards, and is its upstream
		pushes string // the name that the branch has there
	}{
		"one remote":                    {setUp: []string{"remote add origin HOST/a.git"}, remote: "a.git", pushes: "work"},
		"one with another name":         {setUp: []string{"remote add lab HOST/b.git"}, remote: "b.git", pushes: "work"},
		"origin among others":           {setUp: []string{"remote add lab HOST/b.git", "remote add origin HOST/a.git"}, remote: "a.git", pushes: "work"},
		"the remote that git is told":   {setUp: []string{"remote add origin HOST/a.git", "remote add lab HOST/b.git", "config remote.pushDefault lab"}, remote: "b.git", pushes: "work"},
		"several remotes":               {setUp: []string{"remote add red HOST/a.git", "remote add blue HOST/b.git"}, fails: "several remotes (blue, red): push the branch once with git push --set-upstream REMOTE work"},
		"no remote":                     {fails: "the repository has no remote to push to"},
		"no branch":                     {setUp: []string{"remote add origin HOST/a.git", "checkout --quiet --detach"}, fails: "no branch is checked out"},
		"an upstream of another name":   {setUp: []string{"remote add origin HOST/a.git", "config push.default upstream", "push --quiet --set-upstream origin work:main"}, remote: "a.git", pushes: "main"},
		"an upstream that git dislikes": {setUp: []string{"remote add origin HOST/a.git", "push --quiet --set-upstream origin work:main"}, fails: "git push: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hosts, folder := t.TempDir(), t.TempDir()
			git := func(args ...string) string {
				t.Helper()
				cmd := exec.Command("git", args...)
				cmd.Dir = folder
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("git %v: %v %s", args, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			for _, host := range []string{"a.git", "b.git"} {
				git("init", "--quiet", "--bare", filepath.Join(hosts, host))
			}
			git("init", "--quiet", "--initial-branch=work")
			for _, setting := range []string{"user.name=Ada", "user.email=ada@example.org", "commit.gpgsign=false", "push.default=simple"} {
				setting, value, _ := strings.Cut(setting, "=")
				git("config", setting, value)
			}
			git("commit", "--quiet", "--allow-empty", "--message=first")
			for _, command := range tt.setUp {
				git(strings.Fields(strings.ReplaceAll(command, "HOST", hosts))...)
			}
			first := git("rev-parse", "HEAD")
			if err := Write(folder, []byte("one"), true); err != nil {
				t.Fatal(err)
			}
			var says bytes.Buffer
			err := Git{Folder: folder, Says: &says}.Push(t.Context(), "change")
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("%v: %s", err, &says)
				}
				if committed := git("rev-parse", "HEAD") != first; committed != strings.HasPrefix(tt.fails, "git push") {
					t.Errorf("there is a commit: %v", committed)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v: %s", err, &says)
			}
			if got := git("--git-dir", filepath.Join(hosts, tt.remote), "log", "-1", "--format=%s", tt.pushes); got != "change" {
				t.Errorf("the host has %s", got)
			}
			if err := Write(folder, []byte("two"), true); err != nil {
				t.Fatal(err)
			}
			if err := (Git{Folder: folder, Says: &says}).Push(t.Context(), "again"); err != nil || git("rev-parse", "@{upstream}") != git("rev-parse", "HEAD") {
				t.Errorf("the next time: %v: %s", err, &says)
			}
		})
	}
}

// A program that fails exits with 1, and one that is stopped says so: what git exits
// with, 128 or a signal, is not ours.
func TestGitsExitStatusIsItsOwn(t *testing.T) {
	t.Parallel()
	var says bytes.Buffer
	err := Git{Folder: t.TempDir(), Says: &says}.Push(t.Context(), "x")
	if _, has := errors.AsType[interface {
		error
		ExitCode() int
	}](err); has || err == nil {
		t.Errorf("it failed with a status: %v", err)
	}
	if !strings.Contains(says.String(), "not a git repository") {
		t.Errorf("git says %q", &says)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := (Git{Folder: t.TempDir(), Says: &says}).Push(stopped, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
