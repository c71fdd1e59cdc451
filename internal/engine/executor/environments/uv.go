package environments

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
)

// uv is the program that chooses and installs Python packages. The one that was brought
// along counts before others.
func (c Config) uv() (string, error) {
	if c.UV != "" {
		return exec.LookPath(c.UV)
	}
	if self, err := os.Executable(); err == nil {
		if path := broughtAlong(self); path != "" {
			return path, nil
		}
	}
	return exec.LookPath("uv")
}

// broughtAlong is the uv that came with a program: beside it, or where our Debian package
// has it.
func broughtAlong(program string) string {
	for _, place := range []string{"uv", "../lib/millrace/uv"} {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(program), place)); err == nil {
			return path
		}
	}
	return ""
}

// ask runs a program outside of a sandbox, as tasks find it, and returns what it prints.
func ask(ctx context.Context, env map[string]string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Env, c.Dir = append(command.Variables(command.Environment(executor.Spec{Env: env})), "UV_NO_CACHE=1"), "/"
	out, err := c.Output()
	return strings.TrimSpace(string(out)), err
}

// askUV asks uv about the machine.
func (c Config) askUV(ctx context.Context, args ...string) (string, error) {
	uv, err := c.uv()
	if err != nil {
		return "", err
	}
	return ask(ctx, uvSettings, uv, args...)
}

// ownIndex is the index that pip asks where it is told nothing. uv knows it as well.
func (c Config) ownIndex(ctx context.Context) (string, error) {
	uv, err := c.uv()
	if err != nil {
		return "", errors.New("uv is not installed")
	}
	env := maps.Clone(uvSettings)
	delete(env, "UV_DEFAULT_INDEX")
	out, err := ask(ctx, env, uv, "pip", "compile", "--offline", "--no-header", "--emit-index-url", "-") // of no packages
	for line := range strings.Lines(out) {
		if address, found := strings.CutPrefix(strings.TrimSpace(line), "--index-url "); found && err == nil {
			return address, nil
		}
	}
	return "", errors.New("pip's own index is not known here: the operator has to set --pip-index-url")
}
