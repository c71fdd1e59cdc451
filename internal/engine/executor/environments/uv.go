package environments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && len(failed.Stderr) > 0 {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(failed.Stderr))
	}
	return strings.TrimSpace(string(out)), err
}

// refused reports whether a program ended by itself and with a failure. Any other error is
// that of a machine that could not start it, or that killed it.
func refused(err error) bool {
	failed, ok := errors.AsType[*exec.ExitError](err)
	return ok && failed.Exited()
}

// askUV asks uv about the machine.
func (c Config) askUV(ctx context.Context, args ...string) (string, error) {
	uv, err := c.uv()
	if err != nil {
		return "", err
	}
	return ask(ctx, uvSettings, uv, args...)
}

// errNoOwnIndex is about a uv that does not name an index.
var errNoOwnIndex = errors.New("pip's own index is not known here: the operator has to set --pip-index-url")

// ownIndex is the index that pip asks where it is told nothing. uv knows it as well.
func (c Config) ownIndex(ctx context.Context) (string, error) {
	uv, err := c.uv()
	if err != nil {
		return "", err
	}
	env := maps.Clone(uvSettings)
	delete(env, "UV_DEFAULT_INDEX")
	out, err := ask(ctx, env, uv, "pip", "compile", "--offline", "--no-header", "--emit-index-url", "-") // of no packages
	if err != nil {
		return "", fmt.Errorf("uv cannot say what pip's own index is: %w", err)
	}
	for line := range strings.Lines(out) {
		if address, found := strings.CutPrefix(strings.TrimSpace(line), "--index-url "); found {
			return address, nil
		}
	}
	return "", errNoOwnIndex
}
