package screen_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/screen"
)

// console is one without a terminal, and what it printed.
func console(t *testing.T, in io.Reader) (w screen.Console, out, errs *bytes.Buffer) {
	t.Helper()
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return screen.Console{Ctx: t.Context(), In: in, Out: out, Err: errs, Env: func(string) string { return "" }, Now: time.Now}, out, errs
}

func TestATableIsAlignedAndItsLastColumnWhole(t *testing.T) {
	t.Parallel()
	w, out, _ := console(t, nil)
	long := strings.Repeat("é", 100)
	w.Table([][]string{{"NAME", "ID"}, {"a", "1"}, {"漢字", "2"}, {long, long}, {"", ""}})
	wide := strings.Repeat(" ", 60)
	want := "NAME" + wide[4:] + "  ID\na" + wide[1:] + "  1\n漢字" + wide[4:] + "  2\n" + strings.Repeat("é", 59) + "…  " + long + "\n\n"
	if out.String() != want {
		t.Errorf("%q\nwant\n%q", out, want)
	}
	out.Reset()
	w.Facts("name", "x", "nothing", "", "a long name", "two\nlines")
	if want := "name         x\na long name  two lines\n"; out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
}

func TestSomebodyElsesTextCannotSteerATerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain é 漢 🙂": "plain é 漢 🙂", "a\nb\tc": "a b c", "a\x1b[2Jb": "a[2Jb", "a\x00\x07\x7fb": "ab", "a\u009b2Jb": "a2Jb", "a\rb": "ab",
		"a\u202egpj.exe": "agpj.exe", "\u2066a\u2069": "a", "a\u2028b\u2029c": "a b c",
	} {
		if got := screen.Clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// failing is a failure with an exit status.
type failing int

func (f failing) Error() string { return fmt.Sprint("fails with ", int(f)) }
func (f failing) ExitCode() int { return int(f) }

func TestAFailureHasItsExitStatus(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err    error
		left   bool
		status int
		tells  string
	}{
		"any":                     {errors.New("no"), false, 1, "millrace: no\n"},
		"one with a status":       {failing(2), false, 2, "millrace: fails with 2\n"},
		"one that has led to it":  {fmt.Errorf("so: %w", failing(2)), false, 2, "millrace: so: fails with 2\n"},
		"one that quotes others":  {errors.New("no\x1b[2J:\r\n  nodes.x: \u202ebad\tname\x07"), false, 1, "millrace: no[2J:\n  nodes.x: bad name\n"},
		"left by Ctrl-C":          {fmt.Errorf("get: %w", context.Canceled), true, 130, "millrace: stopped\n"},
		"cancelled by the server": {context.Canceled, false, 1, "millrace: context canceled\n"},
		"failed as it was left":   {errors.New("no"), true, 1, "millrace: no\n"},
	} {
		w, _, errs := console(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		w.Ctx = ctx
		if tt.left {
			cancel()
		}
		if status := w.Fail(tt.err); status != tt.status || errs.String() != tt.tells {
			t.Errorf("%s: %d, %q", name, status, errs)
		}
		cancel()
	}
	w, _, errs := console(t, nil)
	if status := w.Misused(failing(80)); status != 1 || errs.String() != "millrace: fails with 80\n" {
		t.Errorf("typed wrongly: %d, %q", status, errs)
	}
}

func TestASecretComesFromAPipe(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]string{ // as a line, and as a text
		"secret\n": {"secret", "secret"}, "secret": {"secret", "secret"}, "secret\r\n": {"secret", "secret"}, "a\nb\n": {"a", "a\nb"}, "a\n\n": {"a", "a\n"},
		" a ": {" a ", " a "}, "": {"", ""}, "\n": {"", ""},
	} {
		for i, read := range []func(screen.Console) (string, error){
			func(w screen.Console) (string, error) { return w.Secret("? ") },
			func(w screen.Console) (string, error) { return w.SecretText("? ", 100) },
		} {
			w, out, errs := console(t, strings.NewReader(in))
			got, err := read(w)
			if got != want[i] || (err != nil) != (want[i] == "") || err != nil && err.Error() != "standard input is empty" {
				t.Errorf("%q is %q, %v", in, got, err)
			}
			if out.Len()+errs.Len() > 0 {
				t.Errorf("%q: a script is asked %q%q", in, out, errs)
			}
		}
	}
	w, _, _ := console(t, strings.NewReader(strings.Repeat("x", 1000)))
	if got, err := w.SecretText("", 10); err != nil || len(got) != 10 {
		t.Errorf("%d bytes of a long one, %v", len(got), err)
	}
	// Whoever leaves does not wait for a pipe that says nothing.
	silent, end := io.Pipe()
	defer end.Close()
	w, _, _ = console(t, silent)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Ctx = ctx
	if _, err := w.Secret("? "); !errors.Is(err, context.Canceled) {
		t.Errorf("after leaving: %v", err)
	}
}

func TestAScriptIsAskedNothing(t *testing.T) {
	t.Parallel()
	w, out, errs := console(t, strings.NewReader("y\n"))
	if err := w.Sure(false, "Really?"); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("%v", err)
	}
	if err := w.Sure(true, "Really?"); err != nil {
		t.Error(err)
	}
	w.Note("for people")
	bar := screen.NewBar(w)
	bar.Show("half")
	bar.Above(func() { w.Say("a result") })
	bar.Close()
	if out.String() != "a result\n" || errs.Len() > 0 || w.Interactive() || w.ForPerson() || bar.Due() {
		t.Errorf("%q, %q", out, errs)
	}
	if got := w.Coloured("failed"); got != "failed" {
		t.Errorf("%q", got)
	}
	if got := w.LogText("\x1b[31mred\x1b[0m\x1b[2J"); got != "\x1b[31mred\x1b[0m\x1b[2J" { // a file gets it as it is
		t.Errorf("%q", got)
	}
}

func TestAGaugeIsOfOneWidth(t *testing.T) {
	t.Parallel()
	for share, full := range map[float64]int{0: 0, 0.5: 10, 1: 20, -3: 0, 7: 20, 0.999: 19} {
		if got := screen.Gauge(share); strings.Count(got, "━") != full || len([]rune(got)) != 20 {
			t.Errorf("%v: %s", share, got)
		}
	}
}

// Letters of East Asia take two columns, and marks none: a bar that is too wide wraps, and
// is never cleared.
func TestATextIsAsWideAsATerminalShowsIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "a–…━": 4, "é": 1, "e\u0301": 1, "漢字": 4, "ｆｕｌｌ": 8, "🙂": 2, "한": 2, "a\u200bb": 2} {
		if got := screen.Columns(text); got != want {
			t.Errorf("%q takes %d columns", text, got)
		}
	}
	for _, tt := range []struct {
		text string
		most int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"漢字", 4, "漢字"}, {"漢字", 3, "漢"}, {"漢字", 1, ""}, {"abc", 0, ""}, {"abc", -1, ""}, {"e\u0301x", 1, "e\u0301"}, {"", -1, ""}} {
		if got := screen.Cut(tt.text, tt.most); got != tt.want {
			t.Errorf("%q in %d columns: %q", tt.text, tt.most, got)
		}
	}
	w, out, _ := console(t, nil)
	w.Table([][]string{{strings.Repeat("漢", 31), "x"}, {strings.Repeat("漢", 30), "y"}})
	if want := strings.Repeat("漢", 29) + "…   x\n" + strings.Repeat("漢", 30) + "  y\n"; out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
}
