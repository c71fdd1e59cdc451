//go:build linux

package screen_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/screen"
)

// person sits at a terminal of 24 rows and 40 columns.
type person struct {
	screen.Console
	*clitest.Screen
	t    *testing.T
	vars map[string]string
}

func atTerminal(t *testing.T) *person {
	t.Helper()
	p := &person{t: t, Screen: clitest.NewScreen(t), vars: map[string]string{"TERM": "xterm"}}
	p.Console = screen.Console{
		Ctx: t.Context(), In: p.File, Out: p.File, Err: p.File, Env: func(name string) string { return p.vars[name] }, Now: time.Now,
	}
	return p
}

// asked is what somebody answers when a question is there.
func (p *person) asked(question, answer string, ask func() error) error {
	p.t.Helper()
	done := make(chan error, 1)
	go func() { done <- ask() }()
	p.Sees(question)
	p.Types(answer)
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
	p.Sees("[y/N]")
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
	if shown := p.Sees("the end"); strings.Contains(shown, "hunter2") {
		t.Errorf("it is shown: %q", shown)
	}
	// What is typed afterwards is shown again.
	if err := p.asked("Sure? [y/N]", "yes\n", func() error { return p.Sure(false, "Sure?") }); err != nil {
		t.Error(err)
	}
	p.Sees("yes")
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
	now = now.Add(100 * time.Millisecond)
	bar.Show("x" + strings.Repeat("漢", 100))
	bar.Close()
	bar.Close()
	p.Note("the %s", "end")
	shown := p.Sees("the end")
	wide := "\r\x1b[K" + strings.Repeat("é", 39)
	if want := "\r\x1b[Khalf of it" + wide + "\r\x1b[Ka result\r\n" + wide + "\r\x1b[Kx" + strings.Repeat("漢", 19) + "\r\x1b[Kthe end\r\n"; shown != want {
		t.Errorf("%q\nwant\n%q", shown, want)
	}
	p.vars["TERM"] = "dumb"
	if quiet := screen.NewBar(p.Console); quiet.Due() {
		t.Error("a dumb terminal has a bar")
	}
}
