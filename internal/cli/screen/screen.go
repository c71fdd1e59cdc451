// Package screen is a command's view of the person before it: what it may
// read, print, draw and wait for. Whether it is a person or a script is
// decided here, and nowhere else.
package screen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Console is what a command may touch besides its flags.
type Console struct {
	Ctx     context.Context
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Env     func(name string) string
	Now     func() time.Time
	Sleep   func(ctx context.Context, d time.Duration) error
	Browse  func(url string) error
	Config  func() (folder string, err error)
	Version string
}

// Sleep waits, or returns early with the reason that ctx ended.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Fail says what went wrong and gives the exit status.
func (w Console) Fail(err error) int {
	if errors.Is(err, context.Canceled) && w.Ctx.Err() != nil {
		fmt.Fprintln(w.Err, "millrace: stopped")
		return 130
	}
	fmt.Fprintln(w.Err, "millrace:", CleanLines(err.Error())) // which may quote what others named
	if e, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return e.ExitCode()
	}
	return 1
}

// Misused says what is wrong with what was typed and gives the exit status, which is
// that of any failure: the parser has another of its own.
func (w Console) Misused(err error) int { return w.Fail(errors.New(err.Error())) }

// ForPerson reports whether results go to a terminal.
func (w Console) ForPerson() bool {
	_, ok := terminal(w.Out)
	return ok
}

// terminal reports whether a person is at the other end of stream.
func terminal(stream any) (fd int, ok bool) {
	f, isFile := stream.(*os.File)
	if !isFile {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// Interactive reports whether somebody can be asked.
func (w Console) Interactive() bool {
	_, in := terminal(w.In)
	_, out := terminal(w.Err)
	return in && out
}

// Note tells a person something that is no result; scripts are spared it.
func (w Console) Note(format string, args ...any) {
	if _, ok := terminal(w.Err); ok {
		w.Tell(format, args...)
	}
}

// Secret asks without showing what is typed; from a pipe it takes a line.
func (w Console) Secret(prompt string) (string, error) { return w.secret(prompt, w.readLine) }

// SecretText is Secret for a value that may have several lines: from a pipe it
// takes all there is, up to most bytes, without the last line end.
func (w Console) SecretText(prompt string, most int64) (string, error) {
	return w.secret(prompt, func() (string, error) {
		text, err := io.ReadAll(io.LimitReader(w.In, most))
		return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), err
	})
}

func (w Console) secret(prompt string, read func() (string, error)) (string, error) {
	fd, person := terminal(w.In)
	if person {
		before, err := term.GetState(fd)
		if err != nil {
			return "", err
		}
		// Whoever leaves by Ctrl-C is to see again what they type.
		defer func() { _ = term.Restore(fd, before) }()
		defer fmt.Fprintln(w.Err)
		// Before the question: some begin to type as soon as they see it.
		if err := hideTyped(fd); err != nil {
			return "", err
		}
		fmt.Fprint(w.Err, prompt)
		read = func() (string, error) {
			typed, err := term.ReadPassword(fd)
			return string(typed), err
		}
	}
	text, err := w.await(read)
	if err == nil && text == "" {
		err = errors.New("standard input is empty")
	}
	return text, err
}

func (w Console) readLine() (string, error) {
	line, err := bufio.NewReader(io.LimitReader(w.In, 64<<10)).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}

// await reads, unless the person leaves first. A read of a terminal cannot be
// broken off; it ends with the program.
func (w Console) await(read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := read()
		got <- answer{text, err}
	}()
	select {
	case <-w.Ctx.Done():
		return "", w.Ctx.Err()
	case a := <-got:
		return a.text, a.err
	}
}

// Confirm asks a person; a script has said it by calling.
func (w Console) Confirm(yes bool, question string) error {
	return w.Sure(yes || !w.Interactive(), question)
}

// Sure asks a person; a script must say --yes.
func (w Console) Sure(yes bool, question string) error {
	if yes {
		return nil
	}
	if !w.Interactive() {
		return errors.New("cannot ask for confirmation here: use --yes")
	}
	fmt.Fprint(w.Err, question+" [y/N] ")
	answer, err := w.await(w.readLine)
	if err != nil {
		return err
	}
	if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
		return errors.New("cancelled: nothing was changed")
	}
	return nil
}
