package firstprocess

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever an order holds, it is read as it was given, and no part of one is taken
// for a whole.
func TestAnOrderIsReadAsItWasGiven(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Order{
		"a command":       {Command: []string{"sh", "-c", "true"}, Env: []string{"A=1"}},
		"a script":        {Command: []string{"python3", ScriptPath}, Script: "print('ü\n')"},
		"odd words":       {Command: []string{"--bind", "", "\x00", "\xff", "a\nb"}, Env: []string{"", "=", "A=\x00"}},
		"long words":      {Command: []string{strings.Repeat("x", 1<<20)}, Script: strings.Repeat("y", 1<<20)},
		"many words":      {Command: strings.Split(strings.Repeat("a ", 10_000), " ")},
		"like an order":   {Command: []string{string(Order{Command: []string{"rm"}}.Encode())}},
		"nothing but one": {Command: []string{""}},
	} {
		text := o.Encode()
		got, err := decode(text)
		if diff := cmp.Diff(o, got); err != nil || diff != "" {
			t.Errorf("%s: %v, %.200s", name, err, diff)
		}
		for _, n := range []int{0, 1, 3, 4, 5, len(text) / 2, len(text) - 5, len(text) - 1} {
			if got, err := decode(text[:max(0, n)]); err == nil && n < len(text) {
				t.Errorf("%s: %d of %d bytes: %.100v", name, n, len(text), got)
			}
		}
	}
	for name, text := range map[string]string{
		"nothing":            "",
		"no command":         string(Order{Env: []string{"A=1"}}.Encode()),
		"a length too large": "\x00\x00\x00\x01\xff\xff\xff\xffabc",
		"a count too large":  "\xff\xff\xff\xff\x00\x00\x00\x00",
	} {
		if o, err := decode([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Order{Command: []string{"sh"}, Env: []string{"A=1"}, Script: "x"}.Encode())
	f.Add([]byte("\x00\x00\x00\x01\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := decode(text)
		if err != nil {
			return
		}
		again, err := decode(o.Encode())
		if err != nil || !cmp.Equal(o, again) {
			t.Errorf("%+v, %+v, %v", o, again, err)
		}
	})
}

// What became of a command stands where its order stood: an order that nobody has read
// is no answer.
func TestWhatBecameOfACommand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		kind   byte
		reason string
	}{
		"":                                {0, ""},
		"s":                               {Started, ""},
		"nexec: no such program":          {NoProgram, "exec: no such program"},
		"ffork: too many":                 {Failed, "fork: too many"},
		"x":                               {0, ""},
		"f" + strings.Repeat("x", 10_000): {Failed, strings.Repeat("x", 511)},
		string(Order{Command: []string{"sh"}}.Encode()): {0, ""},
	} {
		file, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if kind, reason := ReadStartResult(int(file.Fd())); kind != want.kind || reason != want.reason {
			t.Errorf("%.20q: %c, %.60q", text, kind, reason)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if kind, _ := ReadStartResult(-1); kind != 0 {
		t.Errorf("of nothing: %c", kind)
	}
}
