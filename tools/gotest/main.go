// Command gotest runs `go test -json` with its arguments and prints what go test
// prints: a line for each package and the output of whatever failed, or with -v
// everything. `gotest -program FILE PACKAGE` and arguments run a program of tests
// that was built before.
// The file named by MILLRACE_TEST_SKIPPED collects skipped tests and their reasons
// across several calls, for scripts/skipped to sum up.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

func main() {
	cmd := exec.Command("go", command(os.Args[1:])...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		fatal(err)
	}
	if err := cmd.Start(); err != nil {
		fatal(err)
	}
	p := newPrinter(os.Stdout)
	p.verbose = slices.Contains(os.Args[1:], "-v")
	p.read(events)
	err = cmd.Wait()
	if file := os.Getenv("MILLRACE_TEST_SKIPPED"); file != "" {
		if err := p.note(file); err != nil {
			fatal(err)
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(max(exit.ExitCode(), 1))
	}
	if err != nil {
		fatal(err)
	}
}

// command is what go has to do so that it writes events.
func command(args []string) []string {
	switch {
	case len(args) > 2 && args[0] == "-program":
		return slices.Concat([]string{"tool", "test2json", "-p", args[2], args[1], "-test.v=test2json"}, args[3:])
	case len(args) > 1 && args[0] == "-C": // which must come first
		return slices.Concat([]string{"test", "-C", args[1], "-json"}, args[2:])
	}
	return slices.Concat([]string{"test", "-json"}, args)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "gotest:", err)
	os.Exit(1)
}

// event is what go test -json writes, a line each (go doc test2json).
type event struct {
	Action, Package, Test, Output string
}

// test names a test, or with an empty name its package.
type test struct{ pkg, name string }

type printer struct {
	out     io.Writer
	verbose bool
	output  map[test]*strings.Builder // of tests that have not ended
	ran     map[test]bool
	skipped map[test]string // why
}

func newPrinter(out io.Writer) *printer {
	return &printer{out: out, output: map[test]*strings.Builder{}, ran: map[test]bool{}, skipped: map[test]string{}}
}

// note adds the skipped tests to a file, a line each: the package, the test and
// the reason, separated by tabs. It removes those that an earlier call skipped
// and this one ran.
func (p *printer) note(file string) error {
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var after strings.Builder
	for line := range strings.Lines(string(before)) {
		fields := strings.SplitN(line, "\t", 3)
		if at := (test{fields[0], fields[1]}); !p.ran[at] && p.skipped[at] == "" {
			after.WriteString(line)
		}
	}
	for at, why := range p.skipped {
		fmt.Fprintf(&after, "%s\t%s\t%s\n", at.pkg, at.name, why)
	}
	return os.WriteFile(file, []byte(after.String()), 0o644)
}

func (p *printer) read(events io.Reader) {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			p.handle(e)
		} else {
			p.out.Write(line) // what go test itself writes without -json, such as a warning
		}
		if err != nil {
			return
		}
	}
}

func (p *printer) handle(e event) {
	at := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(p.out, e.Output)
	case "output":
		if p.verbose {
			fmt.Fprint(p.out, e.Output)
		}
		if p.output[at] == nil {
			p.output[at] = &strings.Builder{}
		}
		p.output[at].WriteString(e.Output)
	case "pass":
		p.ran[at] = true
		p.end(at, e.Test == "")
	case "skip":
		if e.Test != "" {
			p.skipped[at] = reason(p.text(at))
		}
		p.end(at, e.Test == "")
	case "fail":
		p.ran[at] = true
		p.end(at, true)
	}
}

// end prints what a test wrote if it failed, and drops it. When a package ends, a
// test of it that has not ended is the one that crashed or hung.
func (p *printer) end(at test, show bool) {
	if at.name == "" {
		for other := range p.output {
			if other.pkg == at.pkg && other.name != "" {
				p.end(other, true)
			}
		}
	}
	if show && !p.verbose {
		fmt.Fprint(p.out, clean(p.text(at), at.name == ""))
	}
	delete(p.output, at)
}

func (p *printer) text(at test) string {
	if b := p.output[at]; b != nil {
		return b.String()
	}
	return ""
}

// clean leaves out the lines that -v adds: that tests ran, and of a package that
// it passed, but for the line with its name and time.
func clean(text string, pkg bool) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "=== ") || pkg && line == "PASS\n" {
			continue
		}
		kept.WriteString(line)
	}
	return kept.String()
}

var logged = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: (.*)$`)

// reason is what a test said when it was skipped.
func reason(output string) string {
	found := logged.FindAllStringSubmatch(output, -1)
	if len(found) == 0 {
		return "no reason given"
	}
	return found[len(found)-1][1]
}
