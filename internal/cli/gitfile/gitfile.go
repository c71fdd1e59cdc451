// Package gitfile writes a workflow as millrace.yaml into a folder of a Git
// repository, and has the person's own git bring it to its host.
package gitfile

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/internal/definitionfile"
)

// Name is what the file is called.
const Name = "millrace.yaml"

// Template is a workflow to begin with.
//
//go:embed template.yaml
var Template []byte

// Workflow is one as the file has it.
type Workflow struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	License     string          `json:"license,omitempty"`
	Definition  json.RawMessage `json:"definition"`
}

// YAML is a workflow as a person would write it.
func YAML(w Workflow) ([]byte, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	node, err := read(decoder)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err = errors.Join(encoder.Encode(node), encoder.Close())
	return out.Bytes(), err
}

// read takes the next value of a JSON document, its fields in their order.
func read(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if v == '{' {
			n.Kind = yaml.MappingNode
		}
		for d.More() { // names of fields are values of their own here
			one, err := read(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, one)
		}
		_, err := d.Token()
		return n, err
	case string:
		n := &yaml.Node{}
		n.SetString(v)
		// No block of lines may begin with a tab, and << unquoted brings another's fields.
		if strings.HasPrefix(v, "\t") || v == "<<" {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n, nil
	case json.Number:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: v.String()}
		if strings.ContainsAny(v.String(), ".eE") {
			n.Tag = "!!float"
		}
		return n, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// Read takes the definition out of a folder's file, as JSON.
func Read(folder string) (json.RawMessage, error) {
	text, err := os.ReadFile(filepath.Join(folder, Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s in %s: create one with millrace workflows init", Name, folder)
	}
	if err != nil {
		return nil, err
	}
	file, err := definitionfile.Read(Name, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	return file.Definition, nil
}

// Write puts the file into a folder. One that is there stays, unless it may be
// overwritten.
func Write(folder string, text []byte, overwrite bool) error {
	how := os.O_CREATE | os.O_WRONLY | os.O_EXCL
	if overwrite {
		how = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	f, err := os.OpenFile(filepath.Join(folder, Name), how, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists in %s: use --force to replace it", Name, folder)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// Git is the person's own, in a folder. What it says goes to Says.
type Git struct {
	Folder string
	Says   io.Writer
}

// Push commits the file, and nothing else, if it has changed, and pushes the
// branch to where git pushes it. A branch that was never pushed goes to the remote under
// its own name, and from then on git knows where.
func (g Git) Push(ctx context.Context, message string) error {
	if err := g.run(ctx, "add", "--", Name); err != nil {
		return err
	}
	push, err := g.pushArgs(ctx) // before there is a commit that goes nowhere
	if err != nil {
		return err
	}
	changed := exec.CommandContext(ctx, "git", "diff", "--cached", "--quiet", "--", Name)
	changed.Dir = g.Folder
	if changed.Run() != nil {
		if err := g.run(ctx, "commit", "--quiet", "--message="+message, "--", Name); err != nil {
			return err
		}
	}
	return g.run(ctx, push...)
}

// pushArgs are the command that pushes the branch. Without an upstream, git by itself only
// refuses.
func (g Git) pushArgs(ctx context.Context) ([]string, error) {
	branch := g.ask(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	remotes := strings.Fields(g.ask(ctx, "remote"))
	usual := slices.Contains([]string{"", "simple", "upstream"}, g.ask(ctx, "config", "push.default"))
	switch {
	case branch == "":
		return nil, errors.New("no branch is checked out in the repository: check one out with git switch")
	case len(remotes) == 0:
		return nil, errors.New("the repository has no remote to push to: add one with git remote add origin ADDRESS")
	case !usual || g.ask(ctx, "config", "branch."+branch+".merge") != "":
		return []string{"push"}, nil
	}
	remote := cmp.Or(g.ask(ctx, "config", "branch."+branch+".pushRemote"), g.ask(ctx, "config", "remote.pushDefault"), g.ask(ctx, "config", "branch."+branch+".remote"))
	switch {
	case remote != "":
	case slices.Contains(remotes, "origin"):
		remote = "origin"
	case len(remotes) == 1:
		remote = remotes[0]
	default:
		return nil, fmt.Errorf("the repository has several remotes (%s): push the branch once with git push --set-upstream REMOTE %s", strings.Join(remotes, ", "), branch)
	}
	return []string{"push", "--set-upstream", remote, branch}, nil
}

// ask is what git says to a question; empty where it has no answer.
func (g Git) ask(ctx context.Context, args ...string) string {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = g.Folder
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (g Git) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.Folder, g.Says, g.Says
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("git is not installed")
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // it was stopped
	}
	if err != nil {
		return fmt.Errorf("git %s: %s", args[0], err.Error()) // without git's exit status, which would become ours
	}
	return nil
}
