package line_test

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/line"
)

func TestFramesAreReadAsTheFormatSays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"lines end in LF":           {"id: 1:2\ndata: a\n\ndata: b\n\n", []string{"1:2 a", "1:2 b"}},
		"or CRLF":                   {"id: 1:2\r\ndata: a\r\n\r\n", []string{"1:2 a"}},
		"or CR":                     {"data: a\r\rdata: b\r\r", []string{" a", " b"}},
		"data goes over lines":      {"data: a\ndata:b\n\n", []string{" a\nb"}},
		"comments are no frames":    {": heartbeat\n\ndata: a\n: x\n\n", []string{" a"}},
		"what was cut off is none":  {"data: a\n\ndata: {\"half", []string{" a"}},
		"an unknown field is quiet": {"event: x\nfoo: y\nretry: 1500\ndata: a\n\n", []string{" a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			var pause time.Duration
			// One byte at a time: a frame may arrive in any pieces.
			err := line.Frames(oneByOne{strings.NewReader(tt.in)}, func() {}, func(d time.Duration) { pause = d }, func(f line.Frame) error {
				got = append(got, f.ID+" "+string(f.Data))
				return nil
			})
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%q %v", got, err)
			}
			if strings.Contains(tt.in, "retry") && pause != 1500*time.Millisecond {
				t.Errorf("pause %v", pause)
			}
		})
	}
}

type oneByOne struct{ in io.Reader }

func (o oneByOne) Read(p []byte) (int, error) { return o.in.Read(p[:min(1, len(p))]) }
