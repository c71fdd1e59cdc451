//go:build linux

package screen_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/waittest"
)

// person sits at a terminal: what they type goes in at one end, and what they see
// comes out of it.
type person struct {
	screen.Console
	t    *testing.T
	keys *os.File
	vars map[string]string

	mu   sync.Mutex
	seen bytes.Buffer
}

func atTerminal(t *testing.T) *person {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here: ", err)
	}
	t.Cleanup(func() { keys.Close() })
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}); err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, keys: keys, vars: map[string]string{"TERM": "xterm"}}
	p.Console = screen.Console{
		Ctx: t.Context(), In: terminal, Out: terminal, Err: terminal, Env: func(name string) string { return p.vars[name] }, Now: time.Now,
	}
	go func() { _, _ = io.Copy(p, keys) }() // until the terminal is closed
	t.Cleanup(func() { terminal.Close() })
	return p
}

// Write is what the person sees.
func (p *person) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.Write(text)
}

// sees waits until the terminal shows a text, and gives all that it shows.
func (p *person) sees(text string) string {
	p.t.Helper()
	shown := ""
	if !waittest.Until(func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		shown = p.seen.String()
		return strings.Contains(shown, text)
	}) {
		p.t.Fatalf("no %q in %q", text, shown)
	}
	return shown
}

// asked is what somebody answers when a question is there.
func (p *person) asked(question, answer string, ask func() error) error {
	p.t.Helper()
	done := make(chan error, 1)
	go func() { done <- ask() }()
	p.sees(question)
	if _, err := io.WriteString(p.keys, answer); err != nil {
		p.t.Fatal(err)
	}
	return <-done
}

func TestAPersonIsAskedBeforeSomethingIsGone(t *testing.T) {
	t.Parallel()
	for answer, sure := range map[string]bool{"y\n": true, "yes\n": true, "YES\n": true, "n\n": false, "\n": false, "yess\n": false, "no\n": false, " y\n": false} {
		p := atTerminal(t)
		if !p.Interactive() || !p.ForPerson() {
			t.Fatal("that is no terminal")
		}
		err := p.asked("Delete it? [y/N] ", answer, func() error { return p.Sure(false, "Delete it?") })
		if (err == nil) != sure || err != nil && err.Error() != "cancelled: nothing was changed" {
			t.Errorf("%q: %v", answer, err)
		}
	}
	p := atTerminal(t)
	ctx, leave := context.WithCancel(t.Context())
	p.Ctx = ctx
	done := make(chan error, 1)
	go func() { done <- p.Sure(false, "Delete it?") }()
	p.sees("[y/N]")
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("whoever leaves: %v", err)
	}
}

func TestASecretIsNotShownAsItIsTyped(t *testing.T) {
	t.Parallel()
	p := atTerminal(t)
	for i, ask := range []func() (string, error){
		func() (string, error) { return p.Secret("Password 0: ") },
		func() (string, error) { return p.SecretText("Password 1: ", 100) },
	} {
		got := ""
		err := p.asked(fmt.Sprintf("Password %d: ", i), "hunter2\n", func() (err error) {
			got, err = ask()
			return err
		})
		if err != nil || got != "hunter2" {
			t.Errorf("%q, %v", got, err)
		}
	}
	err := p.asked("Again: ", "\n", func() error { _, err := p.Secret("Again: "); return err })
	if err == nil || err.Error() != "standard input is empty" {
		t.Errorf("nothing was typed: %v", err)
	}
	p.Say("the end")
	if shown := p.sees("the end"); strings.Contains(shown, "hunter2") {
		t.Errorf("it is shown: %q", shown)
	}
	// What is typed afterwards is shown again.
	if err := p.asked("Sure? [y/N]", "yes\n", func() error { return p.Sure(false, "Sure?") }); err != nil {
		t.Error(err)
	}
	p.sees("yes")
}

func TestColoursAreForThoseWhoWantThem(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		vars     map[string]string
		coloured bool
	}{
		"as it is":        {nil, true},
		"NO_COLOR":        {map[string]string{"NO_COLOR": "1"}, false},
		"a dumb terminal": {map[string]string{"TERM": "dumb"}, false},
	} {
		p := atTerminal(t)
		for key, value := range tt.vars {
			p.vars[key] = value
		}
		if got := p.Coloured("failed"); (got == "\x1b[31mfailed\x1b[0m") != tt.coloured || !tt.coloured && got != "failed" {
			t.Errorf("%s: %q", name, got)
		}
		if got := p.Coloured("words of somebody"); got != "words of somebody" {
			t.Errorf("%s: %q", name, got)
		}
		// What a command wrote may be coloured, and nothing else: not the title, the
		// clipboard or the screen.
		want := "a\x1b[31mred\x1b[0m·[2J·]0;title·\n\tb"
		if !tt.coloured {
			want = "ared·[2J·]0;title·\n\tb"
		}
		if got := p.LogText("a\x1b[31mred\x1b[0m\x1b[2J\x1b]0;title\x07\n\tb"); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestABarStaysAtTheBottomAndLeavesNoTrace(t *testing.T) {
	t.Parallel()
	p := atTerminal(t)
	now := time.Now()
	p.Now = func() time.Time { return now }
	bar := screen.NewBar(p.Console)
	bar.Show("half of it")
	bar.Show("too soon to see")
	if bar.Due() {
		t.Error("it is drawn more often than anybody can look")
	}
	now = now.Add(100 * time.Millisecond)
	bar.Show(strings.Repeat("é", 100)) // as wide as the terminal, less the last column, where it would wrap
	bar.Above(func() { p.Say("a result") })
	bar.Close()
	bar.Close()
	p.Note("the %s", "end")
	shown := p.sees("the end")
	wide := "\r\x1b[K" + strings.Repeat("é", 39)
	if want := "\r\x1b[Khalf of it" + wide + "\r\x1b[Ka result\r\n" + wide + "\r\x1b[Kthe end\r\n"; shown != want {
		t.Errorf("%q\nwant\n%q", shown, want)
	}
	p.vars["TERM"] = "dumb"
	if quiet := screen.NewBar(p.Console); quiet.Due() {
		t.Error("a dumb terminal has a bar")
	}
}
