package reported

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// launched is a run whose step launches a pipeline with this picture.
type launched struct {
	listedTasks
	picture *Picture
	err     error
}

func (l launched) LaunchedPicture(context.Context, ids.Run) (*Picture, error) {
	return l.picture, l.err
}

// The processes of a launched pipeline are nodes of its run: below their step, in their
// order, with what they follow. What has not ended when its run has never will.
func TestTheProcessesOfALaunchedPipeline(t *testing.T) {
	t.Parallel()
	picture := func(finished bool) *Picture {
		p := emptyPicture()
		p.Step = "launch"
		p.Merge(Report{
			Nodes: []NodeReport{{Name: "b", Ordered: true}, {Name: "a", Ordered: true}, {Name: "c", Ordered: true}},
			Edges: [][2]string{{"b", "a"}, {"a", "c"}, {"c", "b"}, {"c", "c"}},
			Tasks: []Task{attempt(1, "1", 1, Running)},
		}, noon)
		p.Finished = finished
		return p
	}
	for name, tt := range map[string]struct {
		finished bool
		status   lifecycle.Status
		want     string
	}{
		"it goes on":           {false, lifecycle.Running, "b pending, a running, c pending"},
		"its attempt is over":  {true, lifecycle.Running, "b skipped, a cancelled, c skipped"},
		"the run is over":      {false, lifecycle.Cancelled, "b skipped, a cancelled, c skipped"},
		"the run is succeeded": {true, lifecycle.Completed, "b skipped, a cancelled, c skipped"},
	} {
		list, err := Tasks{launched{picture: picture(tt.finished)}}.Processes(t.Context(), runs.Run{Status: tt.status})
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		follows := 0
		for _, n := range list {
			words = append(words, n.Name+" "+string(n.State))
			follows += len(n.Follows)
			if n.LaunchedBy != "launch" || !strings.HasPrefix(n.ID, "launch"+runs.ProcessMark) || slices.Contains(n.Follows, n.ID) {
				t.Errorf("%s: %+v", name, n)
			}
		}
		if got := strings.Join(words, ", "); got != tt.want || follows != 2 { // of a circle, one edge is left out
			t.Errorf("%s: %s, %d edges", name, got, follows)
		}
	}
	if list, err := (Tasks{launched{}}).Processes(t.Context(), runs.Run{}); err != nil || list != nil {
		t.Errorf("a run that launches nothing has %v, %v", list, err)
	}
	away := errors.New("away")
	if _, err := (Tasks{launched{err: away}}).Processes(t.Context(), runs.Run{}); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
}

// A share is a share, however large its numbers are.
func TestProgressOfLargeNumbers(t *testing.T) {
	t.Parallel()
	for want, p := range map[int]Progress{
		29: {29, 100}, 50: {1 << 61, 1 << 62}, 99: {math.MaxInt64, math.MaxInt64}, 33: {math.MaxInt64 / 3, math.MaxInt64}, 0: {-5, 10}, 10: {math.MaxInt64/1000 + 1, math.MaxInt64 / 100}, 1: {1, 100},
	} {
		if c := emptyPicture().Merge(Report{Progress: &p}, noon); c.Progress != want {
			t.Errorf("%d of %d are %d %%, want %d", p.Done, p.Total, c.Progress, want)
		}
	}
}

// A log that is sent again is not doubled, in whatever order its parts come.
func TestALogIsTakenOnce(t *testing.T) {
	t.Parallel()
	p := emptyPicture()
	var all strings.Builder
	for i, tt := range []struct {
		last int64
		log  []LogText
	}{
		{0, []LogText{{1, "one"}, {2, "two\n"}, {3, ""}}},
		{3, []LogText{{1, "one"}, {2, "two\n"}, {4, "four"}}},
		{4, []LogText{{6, "six"}, {5, "five"}, {6, "six"}}}, // the second comes too late
		{6, nil},
	} {
		p.LastSeq = tt.last
		c := p.Merge(Report{Log: tt.log}, noon)
		all.Write(c.Log)
		if c.Texts != int64(len(c.Log)) {
			t.Errorf("%d: %d bytes are counted of %d", i, c.Texts, len(c.Log))
		}
	}
	if got := all.String(); got != "one\ntwo\nfour\nsix\n" {
		t.Errorf("%q", got)
	}
	p.Run.Status = lifecycle.Completed
	if c := p.Merge(Report{Log: []LogText{{9, "late"}}}, noon); len(c.Log) > 0 {
		t.Errorf("after the end %q is added", c.Log)
	}
}

// Circles of a stranger's graph end, and as few edges as can be are left out.
func TestACircleIsCutOnce(t *testing.T) {
	t.Parallel()
	const n = 500
	ring := map[[2]string]bool{}
	for i := range n {
		ring[[2]string{fmt.Sprintf("%04d", i), fmt.Sprintf("%04d", (i+1)%n)}] = true
	}
	for name, tt := range map[string]struct {
		edges map[[2]string]bool
		left  int
	}{
		"a ring":      {ring, n - 1},
		"two nodes":   {map[[2]string]bool{{"a", "b"}: true, {"b", "a"}: true}, 1},
		"a diamond":   {map[[2]string]bool{{"a", "b"}: true, {"a", "c"}: true, {"b", "d"}: true, {"c", "d"}: true}, 4},
		"nothing":     {nil, 0},
		"itself":      {map[[2]string]bool{{"a", "a"}: true}, 0},
		"two circles": {map[[2]string]bool{{"a", "b"}: true, {"b", "a"}: true, {"c", "d"}: true, {"d", "c"}: true, {"b", "c"}: true}, 3},
	} {
		kept := acyclic(tt.edges)
		if len(kept) != tt.left {
			t.Errorf("%s: %d edges are left, want %d", name, len(kept), tt.left)
		}
		if !slices.EqualFunc(kept, acyclic(tt.edges), func(a, b [2]string) bool { return a == b }) {
			t.Errorf("%s: other edges are left the second time", name)
		}
	}
}

// Times of strangers count within a year and a day.
func TestWhichTimesAreBelieved(t *testing.T) {
	t.Parallel()
	for ago, believed := range map[time.Duration]bool{0: true, oldest: true, oldest + time.Second: false, -ahead: true, -ahead - time.Second: false, 100 * oldest: false} {
		if got := within(noon.Add(-ago), noon); got.IsZero() == believed {
			t.Errorf("%s ago: %s", ago, got)
		}
	}
}
