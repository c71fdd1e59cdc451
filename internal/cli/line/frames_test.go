package line_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/millrace/millrace/internal/cli/line"
)

// A stream ends with what ended it: the reader's own error, the wire's, or nothing.
func TestAStreamEndsWithWhatEndedIt(t *testing.T) {
	t.Parallel()
	refused, broken := errors.New("refused"), errors.New("broken")
	long := strings.Repeat("x", 16<<20)
	for name, tt := range map[string]struct {
		in   io.Reader
		want string // the frames
		err  error
	}{
		"at its end":             {strings.NewReader("data: a\n\ndata: b\n\n"), "a b", nil},
		"before an empty line":   {strings.NewReader("data: a\n\ndata: b\n"), "a", nil},
		"within a line":          {io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)), "a", broken},
		"behind a frame":         {io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(broken)), "a", broken},
		"by whoever reads":       {strings.NewReader("data: a\n\ndata: refuse\n\ndata: b\n\n"), "a refuse", refused},
		"by a line for ever":     {strings.NewReader("data: a\n\ndata: " + long + "\n\ndata: b\n\n"), "a", errTooLong},
		"with nothing":           {strings.NewReader(""), "", nil},
		"with empty frames":      {strings.NewReader("\n\n\nid: 1\n\ndata\n\ndata:\n\ndata: a\n\n"), "  a", nil},
		"with an id that stays":  {strings.NewReader("id: 7\n\ndata: id\n\n"), "7:id", nil},
		"with an id taken back":  {strings.NewReader("id: 7\nid\ndata: id\n\n"), ":id", nil},
		"with a colon, unspaced": {strings.NewReader("data:a:b\n\ndata:  c\n\n"), "a:b  c", nil},
	} {
		var got []string
		err := line.Frames(tt.in, func() {}, func(time.Duration) {}, func(f line.Frame) error {
			text := string(f.Data)
			if text == "id" {
				text = f.ID + ":id"
			}
			got = append(got, text)
			if text == "refuse" {
				return refused
			}
			return nil
		})
		same := errors.Is(err, tt.err)
		if errors.Is(tt.err, errTooLong) {
			same = err != nil
		}
		if frames := strings.Join(got, " "); frames != tt.want || !same {
			t.Errorf("%s: %q, %v", name, frames, err)
		}
	}
}

var errTooLong = errors.New("a line is too long")

// Each line is a sign of life, and a pause counts only as the format has it.
func TestHeartbeatsAndPausesOfAStream(t *testing.T) {
	t.Parallel()
	lines, pauses := 0, []time.Duration{}
	in := ": heartbeat\n\n: heartbeat\n\nretry: 1500\n\nretry: soon\n\nretry: -1\n\nretry:\n\nretry: 0\n\nretry: 1.5\n\n"
	err := line.Frames(strings.NewReader(in), func() { lines++ }, func(d time.Duration) { pauses = append(pauses, d) }, func(f line.Frame) error {
		return fmt.Errorf("%q is no frame", f.Data)
	})
	if err != nil || lines != 16 || fmt.Sprint(pauses) != "[1.5s 0s]" {
		t.Errorf("%d lines, pauses %v, %v", lines, pauses, err)
	}
}
