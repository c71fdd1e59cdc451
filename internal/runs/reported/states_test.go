package reported

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// attempt is one of a task of the step a, as an engine says it that numbers
// attempts: those of one task have their name in common.
func attempt(number int, chain string, n int, state State, more ...func(*Task)) Task {
	t := Task{ID: fmt.Sprint(number), Chain: chain, Node: "a", Number: number, Attempt: n, State: state, Version: 1}
	for _, change := range more {
		change(&t)
	}
	return t
}

func retried(t *Task)  { t.WillRetry = true }
func ignoring(t *Task) { t.Ignored = true }

func exited(code int) func(*Task) { return func(t *Task) { t.ExitCode = &code } }

func TestAStepIsWhatItsTasksAre(t *testing.T) {
	t.Parallel()
	three := 3
	for name, tt := range map[string]struct {
		node       NodeReport
		tasks      []Task
		want, over lifecycle.NodeState
	}{
		"nothing":                   {NodeReport{}, nil, lifecycle.NodePending, lifecycle.NodeSkipped},
		"nothing, and no more":      {NodeReport{Closed: true}, nil, lifecycle.NodeSkipped, lifecycle.NodeSkipped},
		"one waits":                 {NodeReport{}, []Task{attempt(1, "1", 1, Queued)}, lifecycle.NodeQueued, lifecycle.NodeCancelled},
		"one runs":                  {NodeReport{}, []Task{attempt(1, "1", 1, Running), attempt(2, "2", 1, Failed)}, lifecycle.NodeRunning, lifecycle.NodeFailed},
		"one is tried again":        {NodeReport{}, []Task{attempt(1, "1", 1, Failed, retried)}, lifecycle.NodeRetrying, lifecycle.NodeCancelled},
		"one is done, more may be":  {NodeReport{}, []Task{attempt(1, "1", 1, Succeeded)}, lifecycle.NodeRunning, lifecycle.NodeSucceeded},
		"one of three":              {NodeReport{Expected: &three}, []Task{attempt(1, "1", 1, Succeeded)}, lifecycle.NodeRunning, lifecycle.NodeSucceeded},
		"three of three":            {NodeReport{Expected: &three}, []Task{attempt(1, "1", 1, Succeeded), attempt(2, "2", 1, Cached), attempt(3, "3", 1, Succeeded)}, lifecycle.NodeSucceeded, lifecycle.NodeSucceeded},
		"done, and no more":         {NodeReport{Closed: true}, []Task{attempt(1, "1", 1, Succeeded)}, lifecycle.NodeSucceeded, lifecycle.NodeSucceeded},
		"a failure that is ignored": {NodeReport{Closed: true}, []Task{attempt(1, "1", 1, Failed, ignoring)}, lifecycle.NodeSucceeded, lifecycle.NodeSucceeded},
		"a failure":                 {NodeReport{}, []Task{attempt(1, "1", 1, Failed), attempt(2, "2", 1, Succeeded)}, lifecycle.NodeFailed, lifecycle.NodeFailed},
		"cancelled":                 {NodeReport{Closed: true}, []Task{attempt(1, "1", 1, Cancelled), attempt(2, "2", 1, Succeeded)}, lifecycle.NodeCancelled, lifecycle.NodeCancelled},
		"a retry that succeeded":    {NodeReport{Closed: true}, []Task{attempt(1, "1", 1, Failed, retried), attempt(2, "1", 2, Succeeded)}, lifecycle.NodeSucceeded, lifecycle.NodeSucceeded},
	} {
		p, node := emptyPicture(), tt.node
		node.Name = "a"
		p.Merge(Report{Nodes: []NodeReport{node}, Tasks: tt.tasks}, noon)
		if got := p.Nodes["a"].State; got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		p.Close()
		if got := p.Nodes["a"].State; got != tt.over || len(p.Close()) > 0 {
			t.Errorf("%s, when the run is over: %s, want %s", name, got, tt.over)
		}
	}
}

func TestFurtherAttemptsAreOfTheTaskThatFailed(t *testing.T) {
	t.Parallel()
	tasks := []Task{
		attempt(1, "same name", 1, Failed, retried), attempt(2, "same name", 1, Succeeded), attempt(3, "same name", 2, Failed, retried), attempt(4, "same name", 3, Succeeded),
		attempt(5, "other", 2, Succeeded), // of which the first never came
	}
	for seed := range uint64(6) {
		mixed := slices.Clone(tasks)
		rand.New(rand.NewPCG(seed, 7)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		p := emptyPicture()
		for _, one := range mixed {
			p.Merge(Report{Tasks: []Task{one}}, noon)
		}
		var got []string
		for _, id := range []string{"1", "2", "3", "4", "5"} {
			got = append(got, fmt.Sprint(p.Rows[id].Shard, p.Rows[id].Newest))
		}
		if want := "1 false, 2 true, 1 false, 1 true, 5 true"; strings.Join(got, ", ") != want || p.Nodes["a"].Counts.total() != 3 || p.Nodes["a"].Counts[done] != 3 {
			t.Errorf("seed %d: %v with %v, want %s", seed, got, p.Nodes["a"].Counts, want)
		}
	}
}

// An event about a failure names the task by the number that its attempts share.
func TestAFailureIsToldOfItsTaskOnce(t *testing.T) {
	t.Parallel()
	p := emptyPicture()
	told := func(tasks ...Task) string {
		t.Helper()
		var list []string
		for _, e := range p.Merge(Report{Tasks: tasks}, noon).Events {
			if e.Type == lifecycle.NodeFailedEvent || e.Type == lifecycle.NodeRetried {
				list = append(list, fmt.Sprintf("%s %d.%d: %s %s", e.Type, *e.Shard, *e.Attempt, e.Message, e.Data))
			}
		}
		return strings.Join(list, "; ")
	}
	for i, tt := range []struct {
		task Task
		want string
	}{
		{attempt(1, "x", 1, Running), ""},
		{attempt(1, "x", 1, Failed, retried, exited(137), func(t *Task) { t.Version = 2 }), `node.retrying 1.1: Task a exited with status 137; it will be tried again {"exitCode":137}`},
		{attempt(1, "x", 1, Failed, retried, exited(137), func(t *Task) { t.Version = 3 }), ""},
		{attempt(7, "x", 2, Failed, func(t *Task) { t.Name = "a (x)" }), "node.failed 1.2: Task a (x) failed "},
		{attempt(7, "x", 2, Failed), ""},
		{attempt(8, "y", 1, Failed, ignoring), "node.failed 8.1: Task a failed; the failure is ignored "},
	} {
		if got := told(tt.task); got != tt.want {
			t.Errorf("%d: told %q, want %q", i, got, tt.want)
		}
	}
	p.Run.Status = lifecycle.Failed
	if got := told(attempt(9, "z", 1, Failed)); got != "" {
		t.Errorf("after the end: %s", got)
	}
}

func TestARunEndsWithWhatIsKnownOfIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		finish  Finish
		tasks   []Task
		message string
		code    lifecycle.ErrorCode
	}{
		"completed":              {Finish{Status: lifecycle.Completed}, nil, "the run has completed", ""},
		"in its own words":       {Finish{Status: lifecycle.Completed, Message: "all well"}, nil, "all well", ""},
		"failed":                 {Finish{Status: lifecycle.Failed}, nil, "the run failed", lifecycle.NodeFailedCode},
		"failed, as it says":     {Finish{Status: lifecycle.Failed, Message: "no disk"}, []Task{attempt(1, "1", 1, Failed)}, "no disk", lifecycle.NodeFailedCode},
		"an ignored failure":     {Finish{Status: lifecycle.Failed}, []Task{attempt(1, "1", 1, Failed, ignoring)}, "the run failed", lifecycle.NodeFailedCode},
		"cancelled where it ran": {Finish{Status: lifecycle.Cancelled}, nil, "the run was cancelled where it ran", ""},
	} {
		p := emptyPicture()
		c := p.Merge(Report{Finish: &tt.finish, Tasks: tt.tasks}, noon)
		if c.Ending == nil || c.Ending.Status != tt.finish.Status || c.Ending.Message != tt.message || c.Ending.Code != tt.code {
			t.Errorf("%s: %+v", name, c.Ending)
		}
		p.Run.Status = lifecycle.Cancelled
		if c := p.Merge(Report{Finish: &tt.finish}, noon); c.Ending != nil {
			t.Errorf("%s: it ends twice", name)
		}
	}
}

func TestProgressNeverGoesBackAndEndsWithTheRun(t *testing.T) {
	t.Parallel()
	four := 4
	p := emptyPicture()
	for i, tt := range []struct {
		report Report
		want   int
	}{
		{Report{}, 0},
		{Report{Nodes: []NodeReport{{Name: "a", Expected: &four}}, Tasks: []Task{attempt(1, "1", 1, Succeeded), attempt(2, "2", 1, Running)}}, 25},
		{Report{Nodes: []NodeReport{{Name: "b"}}}, 25}, // a step more is less of the whole
		{Report{Progress: &Progress{Done: 3, Total: 5}}, 60},
		{Report{Progress: &Progress{Done: 1, Total: 5}}, 60},
		{Report{Progress: &Progress{Done: 9, Total: 5}}, 99},
		{Report{Progress: &Progress{Done: 1 << 52, Total: 1 << 53}}, 99},
		{Report{Progress: &Progress{}}, 99},
	} {
		c := p.Merge(tt.report, noon)
		if c.Progress != tt.want {
			t.Errorf("%d: %d %%, want %d", i, c.Progress, tt.want)
		}
		p.Run.Progress = c.Progress
	}
}

func TestReportsAfterTheEndAreTakenForAMoment(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status   lifecycle.Status
		finished bool
		after    time.Duration
		dropped  bool
	}{
		"while it runs":             {lifecycle.Running, false, time.Hour, false},
		"ended by its own report":   {lifecycle.Completed, true, late - time.Second, false},
		"a minute later":            {lifecycle.Completed, true, late, true},
		"cancelled here":            {lifecycle.Cancelled, false, time.Second, true},
		"interrupted for its quiet": {lifecycle.Interrupted, false, 0, true},
	} {
		p := Picture{Run: runs.Run{Status: tt.status, FinishedAt: noon}, Finished: tt.finished}
		if got := p.Dropped(noon.Add(tt.after)); got != tt.dropped {
			t.Errorf("%s: dropped is %v", name, got)
		}
	}
}

func TestAPictureIsAGraphWhateverStepsAreCalled(t *testing.T) {
	t.Parallel()
	names := []string{"align", "NFCORE:align (x)", "NFCORE_align__x_", "", strings.Repeat("long ", 40), "über", "9lives", "x\"y\\z"}
	seen := map[string]string{}
	for _, name := range names {
		id := NodeID(name)
		if other, twice := seen[id]; twice || !nodeID.MatchString(id) || id != NodeID(name) {
			t.Errorf("%q is %q, as is %q", name, id, other)
		}
		seen[id] = name
	}
	p := emptyPicture()
	r := Report{Edges: [][2]string{{"align", "über"}, {"über", "9lives"}, {"9lives", "align"}, {"align", "align"}, {"align", "über"}}}
	for _, name := range names {
		r.Nodes = append(r.Nodes, NodeReport{Name: name, Ordered: true})
	}
	p.Merge(r, noon)
	g, wrong := graph.Parse(p.Definition())
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if len(g.Nodes) != len(names) || len(g.Edges) != 2 {
		t.Errorf("%d nodes and %d edges: %v", len(g.Nodes), len(g.Edges), wrong)
	}
	if g.Nodes[3].Name != "(unnamed)" || g.Nodes[5].Name != "über" {
		t.Errorf("%q and %q are not where the engine has them", g.Nodes[3].Name, g.Nodes[5].Name)
	}
	if about := Canvas("snakemake"); len(about.Nodes) != 1 || !strings.Contains(string(about.JSON()), "run by snakemake") {
		t.Errorf("%s", about.JSON())
	}
}

func TestCountsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	before := Counts{done: 3, retrying: 1}
	after, err := ReadCounts(before.Text())
	if err != nil || after.total() != 4 || after[done] != 3 {
		t.Errorf("%v, %v", after, err)
	}
	if empty, err := ReadCounts(Counts{}.Text()); err != nil || empty == nil || empty.total() != 0 {
		t.Errorf("%v, %v", empty, err)
	}
	if _, err := ReadCounts("[1]"); err == nil {
		t.Error("a list is read as counts")
	}
	var text map[string]int
	if err := json.Unmarshal([]byte(before.Text()), &text); err != nil || text["retrying"] != 1 {
		t.Errorf("%v, %v", text, err)
	}
}
