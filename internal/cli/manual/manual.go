// Package manual prints the manual page of the program.
package manual

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/cli/screen"
)

// Command prints the page.
type Command struct{}

// Run writes roff, for example for man -l -.
func (Command) Run(w screen.Console, parsed *kong.Context) error {
	return Write(w.Out, parsed.Model, w.Version)
}

// Write prints all commands with their flags. It names no date, so that the same
// program has the same page.
func Write(w io.Writer, app *kong.Application, version string) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, ".TH %s 1 \"\" \"%s %s\" \"User Commands\"\n", strings.ToUpper(app.Name), app.Name, escape(version))
	fmt.Fprintf(b, ".SH NAME\n%s \\- %s\n", app.Name, escape(strings.SplitN(app.Help, "\n", 2)[0]))
	fmt.Fprintf(b, ".SH SYNOPSIS\n.B %s\n.I command\n[flags]\n", app.Name)
	fmt.Fprintf(b, ".SH DESCRIPTION\n%s\n", paragraphs(app.Help))
	fmt.Fprintf(b, ".SH COMMANDS\n")
	commands(b, app.Node)
	fmt.Fprintf(b, ".SH ENVIRONMENT\nEach flag of the server is also a variable: \\-\\-public\\-urls is MILLRACE_PUBLIC_URLS. Flags win.\n")
	return b.Flush()
}

func commands(w io.Writer, n *kong.Node) {
	for _, c := range n.Children {
		if c.Hidden {
			continue
		}
		if len(c.Children) == 0 || len(c.Positional) > 0 {
			fmt.Fprintf(w, ".SS %s\n%s\n", escape(c.Summary()), paragraphs(c.Help))
			for _, p := range c.Positional {
				entry(w, p.Summary(), p.Help)
			}
			for _, f := range c.Flags {
				if !f.Hidden {
					entry(w, f.String(), f.Help)
				}
			}
		}
		commands(w, c)
	}
}

func entry(w io.Writer, name, help string) {
	if help != "" {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", escape(name), escape(help))
	}
}

func paragraphs(text string) string {
	return strings.ReplaceAll(escape(text), "\n\n", "\n.PP\n")
}

// escape keeps text from being read as a request of roff.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
