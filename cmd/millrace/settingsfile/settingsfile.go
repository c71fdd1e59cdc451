// Package settingsfile reads settings from a file of lines "name = value", and
// writes one that says what all of them are for.
package settingsfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/domain/spelling"
)

type file struct {
	values map[string]string
	lines  map[string]int
}

// Load reads the lines. What is a flag or a variable wins over them.
func Load(r io.Reader) (kong.Resolver, error) {
	f := file{map[string]string{}, map[string]int{}}
	scanner := bufio.NewScanner(r)
	for n := 1; scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !found || name == "" || strings.ContainsAny(name, " \t\""):
			return nil, fmt.Errorf("line %d of the settings file is not `name = value`", n)
		case strings.ContainsRune(value, 0):
			return nil, fmt.Errorf("line %d of the settings file has a NUL character", n)
		case f.lines[name] > 0:
			return nil, fmt.Errorf("lines %d and %d of the settings file both set %s", f.lines[name], n, name)
		}
		f.values[name], f.lines[name] = value, n
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("the settings file cannot be read: %w", err)
	}
	return f, nil
}

// Validate refuses names that no command knows: a misspelled setting would
// otherwise silently keep its default.
func (f file) Validate(app *kong.Application) error {
	known := map[string]bool{}
	var note func(*kong.Node)
	note = func(n *kong.Node) {
		for _, flag := range n.Flags {
			known[flag.Name] = flag.Name != "config" && flag.Name != "help"
		}
		for _, child := range n.Children {
			note(child)
		}
	}
	note(app.Node)
	for name, line := range f.lines {
		if !known[name] {
			return fmt.Errorf("line %d of the settings file: there is no setting %q%s; millrace serve --help and the page /help/operating/settings of every server list them", line, name, spelling.DidYouMean(name, slices.Sorted(maps.Keys(known))))
		}
	}
	return nil
}

// Resolve finds a value.
func (f file) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	value, set := f.values[flag.Name]
	for _, variable := range flag.Envs {
		if _, there := os.LookupEnv(variable); there {
			set = false
		}
	}
	if !set {
		return nil, nil
	}
	return value, nil
}

// Setting is a line to write.
type Setting struct{ Name, Value string }

func (s Setting) line() string { return s.Name + " = " + s.Value + "\n" }

// check refuses what would be read as something else: a second line, spaces around
// the value, too long a line.
func (s Setting) check() error {
	read, err := Load(strings.NewReader(s.line()))
	if err != nil || read.(file).values[s.Name] != s.Value {
		return fmt.Errorf("--%s cannot be written to a file: it has a line break, a NUL character, spaces around it, or is too long", s.Name)
	}
	return nil
}

// Create writes a file that only its owner reads, unless it is there.
func Create(path string, command *kong.Node, set []Setting) error {
	for _, s := range set {
		if err := s.check(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already, and stays as it is", path)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(write(f, command, set), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// write writes the settings, and all others of the command as comments.
func write(w io.Writer, command *kong.Node, set []Setting) error {
	chosen := map[string]string{}
	for _, s := range set {
		chosen[s.Name] = s.Value
	}
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "# Settings of Millrace, one a line: name = value. Lines that begin with # are the")
	fmt.Fprintln(b, "# defaults. Flags and MILLRACE_ variables win over this file.")
	fmt.Fprintln(b, "# This file may hold passwords and keys: nobody else should read it.")
	var groups []string
	flags := map[string][]*kong.Flag{}
	for _, f := range command.Flags {
		if f.Hidden || f.Name == "help" || f.Name == "config" {
			continue
		}
		group := "other"
		if f.Group != nil {
			group = f.Group.Key
		}
		if flags[group] == nil {
			groups = append(groups, group)
		}
		flags[group] = append(flags[group], f)
	}
	for _, group := range groups {
		fmt.Fprintf(b, "\n## %s%s\n", strings.ToUpper(group[:1]), group[1:])
		for _, f := range flags[group] {
			fmt.Fprintf(b, "\n# %s\n", strings.ReplaceAll(f.Help, "\n", " "))
			if value, is := chosen[f.Name]; is {
				fmt.Fprint(b, Setting{f.Name, value}.line())
			} else {
				fmt.Fprintf(b, "#%s = %s\n", f.Name, f.Default)
			}
		}
	}
	return b.Flush()
}
