package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/cli/screen"
)

// manualCommand prints the manual page of the program.
type manualCommand struct{}

// Run writes roff, for example for man -l -.
func (manualCommand) Run(w screen.Console, parsed *kong.Context) error {
	return writeManual(w.Out, parsed.Model, w.Version)
}

// writeManual prints all commands with their flags. It names no date, so that the same
// program has the same page.
func writeManual(w io.Writer, app *kong.Application, version string) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, ".TH %s 1 \"\" \"%s %s\" \"User Commands\"\n", strings.ToUpper(app.Name), app.Name, escapeRoff(version))
	fmt.Fprintf(b, ".SH NAME\n%s \\- %s\n", app.Name, escapeRoff(strings.SplitN(app.Help, "\n", 2)[0]))
	fmt.Fprintf(b, ".SH SYNOPSIS\n.B %s\n.I command\n[flags]\n", app.Name)
	fmt.Fprintf(b, ".SH DESCRIPTION\n%s\n", manualParagraphs(app.Help))
	fmt.Fprintf(b, ".SH COMMANDS\n")
	manualCommands(b, app.Node)
	fmt.Fprintf(b, ".SH ENVIRONMENT\nEach flag of the server is also a variable: \\-\\-public\\-urls is MILLRACE_PUBLIC_URLS. Flags win.\n")
	return b.Flush()
}

func manualCommands(w io.Writer, n *kong.Node) {
	for _, c := range n.Children {
		if c.Hidden {
			continue
		}
		if len(c.Children) == 0 || len(c.Positional) > 0 {
			fmt.Fprintf(w, ".SS %s\n%s\n", escapeRoff(c.Summary()), manualParagraphs(c.Help))
			for _, p := range c.Positional {
				manualEntry(w, p.Summary(), p.Help)
			}
			for _, f := range c.Flags {
				if !f.Hidden {
					manualEntry(w, f.String(), f.Help)
				}
			}
		}
		manualCommands(w, c)
	}
}

func manualEntry(w io.Writer, name, help string) {
	if help != "" {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", escapeRoff(name), escapeRoff(help))
	}
}

func manualParagraphs(text string) string {
	return strings.ReplaceAll(escapeRoff(text), "\n\n", "\n.PP\n")
}

// escapeRoff keeps text from being read as a request of roff.
func escapeRoff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
