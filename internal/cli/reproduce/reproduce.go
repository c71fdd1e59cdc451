// Package reproduce writes down how to do a step of a run again on another
// machine, beside the files that it was given.
package reproduce

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/api"
)

// Step is what is to be done again.
type Step struct {
	Run    string
	Node   string
	Recipe api.Recipe
	// Software is what the step was installed; nil: nothing.
	Software *Software
	Force    bool // replace files that are there and differ
}

// Software is an environment: what is in it, to the version and the hash.
type Software struct {
	Python string // its version; empty: they are conda packages
	Lock   string
}

// LockFile is where the lock is.
const LockFile = "environment.lock"

// runScript does the step again; it is the same for every step.
//
//go:embed run.sh
var runScript string

// installScript installs conda packages.
//
//go:embed install.py
var installScript string

// snakemakeScript calls Snakemake without what Millrace adds to follow it.
//
//go:embed snakemake.sh
var snakemakeScript string

// file is one to write, below the folder.
type file struct {
	name, text string
	mode       os.FileMode
}

// Write puts the scripts into the folder with the inputs, all of them or, where another file
// is in the way, none. Names come from the server: nothing outside the folder is touched.
func Write(folder string, step Step) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	files, err := step.files(folder)
	if err != nil {
		return err
	}
	for _, f := range files {
		have, err := root.ReadFile(f.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case string(have) != f.text && !step.Force:
			return fmt.Errorf("%s already exists and differs: replace it with --force, or choose another folder with --to", f.name)
		}
	}
	for _, f := range files {
		if err := root.MkdirAll(filepath.Dir(f.name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(f.name, []byte(f.text), f.mode); err != nil {
			return err
		}
		if err := root.Chmod(f.name, f.mode); err != nil {
			return err
		}
	}
	return nil
}

func (s Step) files(folder string) ([]file, error) {
	r := s.Recipe
	start, err := startScript(r)
	if err != nil {
		return nil, err
	}
	settings, err := s.settings()
	if err != nil {
		return nil, err
	}
	here, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, name := range slices.Sorted(maps.Keys(r.Lists)) {
		// A list has paths, one a line, of which nobody knew where they would be.
		files = append(files, file{filepath.FromSlash(name), strings.ReplaceAll(r.Lists[name], r.Folder, here), 0o644})
	}
	if s.Software != nil {
		files = append(files, file{LockFile, s.Software.Lock, 0o644}, file{"install.py", installScript, 0o644})
	}
	image := ""
	if r.Image != nil {
		image = *r.Image
	}
	engine := ""
	if r.Engine != nil {
		engine = string(*r.Engine)
	}
	if engine == string(api.PipelineEngineSnakemake) {
		files = append(files, file{filepath.Join("bin", engine), snakemakeScript, 0o755})
	}
	head := fmt.Sprintf("#!/usr/bin/env bash\n# Does step %s of run %s again.\nimage=%s\nengine=%s\n%s", s.Node, s.Run, quoted(image), quoted(engine), settings)
	return append(files, file{"run.sh", head + runScript, 0o755}, file{"command", r.Command, 0o644}, file{"start.sh", start, 0o644}), nil
}

var (
	gitAddress    = regexp.MustCompile(`^(https?://|ssh://|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:)`)
	gitCommit     = regexp.MustCompile(`^[0-9a-f]{40}$`)
	pythonVersion = regexp.MustCompile(`^[0-9]+(\.[0-9]+){0,2}$`)
	condaHead     = regexp.MustCompile(`^# conda ([a-z0-9-]+)$`)
	condaPackage  = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9-]*/[A-Za-z0-9_][A-Za-z0-9_.!+-]* --hash=sha256:[0-9a-f]{64}$`)
)

// settings are what run.sh has to know of code and software. What comes from a
// server is checked: it becomes words of a command.
func (s Step) settings() (string, error) {
	git, commit, submodules, python, conda := "", "", "", "", ""
	if from := s.Recipe.Source; from != nil {
		if !gitAddress.MatchString(from.Git) || !gitCommit.MatchString(from.Commit) {
			return "", fmt.Errorf("can't get the code of the step: %q at %q", from.Git, from.Commit)
		}
		git, commit = from.Git, from.Commit
		if from.Submodules {
			submodules = "yes"
		}
	}
	if s.Software != nil && s.Software.Python == "" {
		var err error
		if conda, err = condaPlatform(s.Software.Lock); err != nil {
			return "", err
		}
	} else if s.Software != nil {
		if python = s.Software.Python; !pythonVersion.MatchString(python) {
			return "", fmt.Errorf("%q is not a Python version", python)
		}
	}
	return fmt.Sprintf("git=%s\ncommit=%s\nsubmodules=%s\npython=%s\nconda=%s\n", quoted(git), quoted(commit), quoted(submodules), quoted(python), quoted(conda)), nil
}

// condaPlatform is what the packages of a lock are for. Each of its lines becomes a
// path and an address.
func condaPlatform(lock string) (string, error) {
	lines := strings.Split(strings.TrimSpace(lock), "\n")
	head := condaHead.FindStringSubmatch(lines[0])
	if head == nil {
		return "", fmt.Errorf("%q is not the start of a conda lock file", lines[0])
	}
	for _, line := range lines[1:] {
		if !condaPackage.MatchString(line) || strings.Contains(line, "..") {
			return "", fmt.Errorf("%q is not a conda package of a lock file", line)
		}
	}
	return head[1], nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// startScript sets the variables and runs the command, wherever it is.
func startScript(r api.Recipe) (string, error) {
	var b strings.Builder
	b.WriteString("# Sets the variables of the step and runs its command. An image need not\n# have any program but its shell.\nhere=${0%/*}\n")
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		if !variableName.MatchString(name) {
			return "", fmt.Errorf("%q is not a valid variable name", name)
		}
		parts := strings.Split(r.Env[name], r.Folder)
		for i, part := range parts {
			parts[i] = quoted(part)
		}
		fmt.Fprintf(&b, "export %s=%s\n", name, strings.Join(parts, `"$here"`))
	}
	interpreter := quoted(r.Interpreter)
	if r.Interpreter == "bash" {
		interpreter += " -euo pipefail"
	}
	fmt.Fprintf(&b, "cd \"$here/work\"\nexec %s \"$here/command\"\n", interpreter)
	return b.String(), nil
}

// quoted is text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
