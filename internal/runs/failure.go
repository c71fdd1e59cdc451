package runs

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/suggest"
)

// Failure is where a run failed, and what may help.
type Failure struct {
	Node        string
	Item        *int // of a step that runs once for each item
	Attempt     int  // the last one; 0: nothing ran
	ExitCode    *int
	Lines       []string // the last that it wrote
	Suggestions []suggest.Suggestion
}

// How much of what a step wrote is read for a cause.
const (
	failureLog   = 64 << 10
	failureLines = 20
	failureWidth = 1000 // characters of a line
)

// failureOf is where a run failed; nil for any other, and where that was in no step.
func (s *Service) failureOf(ctx context.Context, r Run, nodes []Node) (*Failure, error) {
	if r.Status != lifecycle.Failed {
		return nil, nil
	}
	steps := stepsOf(r)
	n := firstFailed(steps, nodes)
	if n == nil {
		return nil, nil
	}
	a, err := s.failedAttempt(ctx, r, *n)
	if err != nil {
		return nil, err
	}
	f := &Failure{Node: n.ID, Attempt: a.Number, ExitCode: a.ExitCode}
	if n.Shards != nil {
		f.Item = &a.Shard
	}
	step := steps[n.ID]
	if step == nil {
		f.Lines = lastLines(a.Message)
	} else if f.Lines, err = s.failedLines(ctx, r, n.ID, a.Shard); err != nil {
		return nil, err
	}
	code := r.ErrorCode
	if a.Reason != "" {
		code = lifecycle.ErrorCode(a.Reason)
	}
	f.Suggestions = suggest.For(suggest.Failed{
		Node: step, Code: code, ExitCode: a.ExitCode, Lines: f.Lines, RAMGB: float64(a.Memory) / (1 << 30), RunRAMGB: float64(r.Size.RAMGB),
	})
	return f, nil
}

// stepsOf are the steps of a run by their ids.
func stepsOf(r Run) map[string]*graph.Node {
	g, _ := graph.Salvage(r.Definition)
	steps := map[string]*graph.Node{}
	for _, n := range g.Order() {
		steps[n.ID] = n
	}
	return steps
}

// firstFailed is the node that failed first and was not allowed to: a process of a
// pipeline before the step that launched it.
func firstFailed(steps map[string]*graph.Node, nodes []Node) *Node {
	var first *Node
	before := func(a, b *Node) bool {
		if (a.LaunchedBy == "") != (b.LaunchedBy == "") {
			return a.LaunchedBy != ""
		}
		return a.FinishedAt.Before(b.FinishedAt)
	}
	for i := range nodes {
		n := &nodes[i]
		if step := steps[n.ID]; n.State != lifecycle.NodeFailed || step != nil && step.AllowFailure {
			continue
		}
		if first == nil || before(n, first) {
			first = n
		}
	}
	return first
}

// failedAttempt is the last attempt of the first item of a node that failed; the zero
// Attempt where it failed before there was one.
func (s *Service) failedAttempt(ctx context.Context, r Run, n Node) (last Attempt, err error) {
	var tried []Attempt
	if r.Kind == Reported || n.LaunchedBy != "" {
		list, _, err := s.reported.Shards(ctx, r, ShardPage{Node: n.ID, State: lifecycle.NodeFailed, Limit: 1})
		if err != nil || len(list) == 0 {
			return last, err
		}
		tried = list[0].Attempts
	} else {
		failed, err := s.shards.FailedShards(ctx, r.ID, n.ID, -1, 1)
		if err != nil || len(failed) == 0 {
			return last, err
		}
		if tried, err = s.shards.AttemptsOf(ctx, r.ID, n.ID, failed); err != nil {
			return last, err
		}
	}
	if len(tried) > 0 {
		last = tried[len(tried)-1]
	}
	return last, nil
}

// failedLines are the last that an item of a step wrote.
func (s *Service) failedLines(ctx context.Context, r Run, node string, shard int) ([]string, error) {
	size, err := s.logs.NodeLogSize(ctx, r.Team, r.ID, node, shard)
	if err != nil {
		return nil, err
	}
	page, err := s.nodeLog(ctx, r.Team, r.ID, node, shard, max(0, size-failureLog), failureLog)
	return lastLines(string(page.Text)), err
}

var colors = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// lastLines are the last lines of a text that are not empty, without colors. Of a line
// that was written anew, such as a progress bar, they have what was left standing.
func lastLines(text string) []string {
	lines := []string{}
	for line := range strings.SplitSeq(colors.ReplaceAllString(strings.ToValidUTF8(text, "�"), ""), "\n") {
		line = strings.TrimRight(line, " \t\r")
		if line = line[strings.LastIndexByte(line, '\r')+1:]; line != "" {
			lines = append(lines, line)
		}
	}
	lines = slices.Clone(lines[max(0, len(lines)-failureLines):])
	for i, line := range lines {
		if cut := []rune(line); len(cut) > failureWidth {
			lines[i] = string(cut[:failureWidth]) + "…"
		}
	}
	return lines
}
