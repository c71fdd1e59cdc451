package produced_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/engine/produced"
	"github.com/millrace/millrace/internal/runs"
)

// Whatever order shards end in, their files are listed in the order of the shards.
func TestFilesAreInTheOrderOfTheirShards(t *testing.T) {
	t.Parallel()
	var list []runs.Output
	var want []string
	for _, shard := range []string{"000000", "000001", "000002", "000009", "000010", "000100"} {
		for _, i := range []string{"000000", "000001"} {
			o := runs.Output{Node: "n", Port: "out", Key: produced.Key("team_1", "run_1", "n."+shard+".1-f.out."+i, "x")}
			list, want = append(list, o), append(want, o.Key)
		}
	}
	other := runs.Output{Node: "n", Port: "log", Key: "log"}
	for range 20 {
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		m := produced.Files{}
		for _, o := range append(list, other) {
			m.Add(o)
		}
		if got := m.Keys("n", "out"); !slices.Equal(got, want) {
			t.Fatalf("%q", got)
		}
		if m.Count() != len(list)+1 {
			t.Errorf("%d files", m.Count())
		}
		for _, o := range append(list, other) {
			if got, ok := m.Find(o.Key); !ok || got.Key != o.Key || got.Port != o.Port {
				t.Errorf("%s: %+v", o.Key, got)
			}
		}
	}
	m := produced.Files{}
	if _, ok := m.Find("log"); ok || m.Keys("n", "out") != nil || m.Count() != 0 {
		t.Error("something was made by nobody")
	}
}

// A file may be called whatever a file system lets it be called.
func TestNamesOfAllLengthsCanBeKept(t *testing.T) {
	t.Parallel()
	c := left(t, nil)
	keys := map[string]bool{}
	for _, n := range []int{1, 50, 230, 236, 237, 238, 239, 240, 255} {
		name := strings.Repeat("x", n)
		c.write(name, name)
		got, err := c.keep(c.collect(name, false), "1")
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		for part := range strings.SplitSeq(got.Key, "/") {
			if len(part) > 255 {
				t.Errorf("%d bytes: a part of %d", n, len(part))
			}
		}
		if filepath.Base(got.Name) != name || c.read(got.Key) != name || keys[got.Key] {
			t.Errorf("%d bytes: %+v", n, got)
		}
		keys[got.Key] = true
	}
}

func TestTextsForPeople(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1 KB", 1500: "1.46 KB", 1<<20 - 1: "1024 KB", 1 << 20: "1 MB", 50 << 20: "50 MB", 12_345_678: "11.8 MB", 1<<30 - 1: "1024 MB",
		1 << 30: "1 GB", 3 << 29: "1.5 GB", 1234 << 30: "1234 GB", 123_456 << 30: "123456 GB",
	} {
		if got := produced.SizeText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	n := &graph.Node{Outputs: []graph.OutPort{{Name: "a", Path: "x/*.bam"}, {Name: "b", Path: "log"}}}
	if got := produced.MissingPaths(n, []string{"b", "a", "none"}); got != "log, x/*.bam" {
		t.Errorf("%q", got)
	}
}
