package longlines_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace/millrace/internal/engine/executor/shim/longlines"
)

func TestLinesAreCutTheSameHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for _, length := range rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 80, longlines.Most - 1, longlines.Most, longlines.Most + 1, 3 * longlines.Most}), 0, 6).Draw(t, "lines") {
			text = append(append(text, bytes.Repeat([]byte("x"), length)...), '\n')
		}
		text = append(text, bytes.Repeat([]byte("y"), rapid.IntRange(0, 2*longlines.Most).Draw(t, "rest"))...)
		var pieces longlines.Cutter
		var got []byte
		for rest := text; len(rest) > 0; {
			n := min(len(rest), rapid.IntRange(1, 50_000).Draw(t, "piece"))
			got = append(got, pieces.Cut(rest[:n])...)
			rest = rest[n:]
		}
		if !bytes.Equal(got, wanted(text)) {
			t.Fatalf("%d bytes of %d", len(got), len(text))
		}
	})
}

// wanted cuts in the plainest way.
func wanted(text []byte) []byte {
	var want []byte
	for line := range strings.Lines(string(text)) {
		if body := strings.TrimSuffix(line, "\n"); len(body) > longlines.Most {
			line = body[:longlines.Most] + longlines.Mark
		}
		want = append(want, line...)
	}
	return want
}
