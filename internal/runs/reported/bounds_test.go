package reported

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func emptyPicture() *Picture {
	return &Picture{Run: runs.Run{Status: lifecycle.Running}, Nodes: map[string]*Node{}, Edges: map[[2]string]bool{}, Rows: map[string]*Row{}}
}

func manyTasks(n int) (r Report) {
	for i := range n {
		r.Tasks = append(r.Tasks, Task{ID: fmt.Sprint(i), Chain: fmt.Sprint(i), Node: "a", Number: i, Attempt: 1, State: Running, Version: 1, Script: "echo"})
	}
	return r
}

func TestARunKeepsNoMoreTasksThanItsLimit(t *testing.T) {
	t.Parallel()
	p := emptyPicture()
	p.Tasks = MaxTasks - 2
	c := p.Merge(manyTasks(5), noon)
	if c.Tasks != 2 || len(c.Rows) != 2 || !strings.Contains(c.LeftOut, "100000 tasks") {
		t.Error(c.Tasks, len(c.Rows), c.LeftOut)
	}
	p.Tasks += c.Tasks
	again := manyTasks(2) // what is kept goes on
	for i := range again.Tasks {
		again.Tasks[i].State, again.Tasks[i].Version = Succeeded, 2
	}
	if c = p.Merge(again, noon); len(c.Rows) != 2 || p.Nodes["a"].Counts[done] != 2 {
		t.Error(len(c.Rows), p.Nodes["a"].Counts)
	}
}

func TestARunHasNoMoreStepsAndEdgesThanItsLimits(t *testing.T) {
	t.Parallel()
	p := emptyPicture()
	var r Report
	for i := range MaxNodes + 5 {
		r.Nodes = append(r.Nodes, NodeReport{Name: fmt.Sprint("n", i)})
	}
	for i := range MaxEdges + 5 {
		r.Edges = append(r.Edges, [2]string{fmt.Sprint("n", i%100), fmt.Sprint("n", 100+i/100)})
	}
	c := p.Merge(r, noon)
	if len(p.Nodes) != MaxNodes || len(p.Edges) != MaxEdges || c.LeftOut == "" {
		t.Error(len(p.Nodes), len(p.Edges), c.LeftOut)
	}
	c = p.Merge(Report{Tasks: []Task{{ID: "1", Chain: "1", Node: "one more", State: Running, Version: 1, Attempt: 1}}}, noon)
	if c.Tasks != 0 || len(c.Rows) != 0 || !strings.Contains(c.LeftOut, "2000 steps") {
		t.Error(c.Tasks, len(c.Rows), c.LeftOut)
	}
}

func TestATeamKeepsNoMoreTextsThanItsLimit(t *testing.T) {
	t.Parallel()
	p := emptyPicture()
	p.TeamTexts = MaxTeamTexts - 10
	r := manyTasks(4) // four bytes each
	r.Log = []LogText{{Seq: 1, Text: "a long line for the log"}}
	c := p.Merge(r, noon)
	kept := 0
	for _, row := range c.Rows {
		kept += len(row.Script)
	}
	if len(c.Rows) != 4 || kept > 10 || kept == 0 || c.Texts > 10 || len(c.Log) > 0 || !strings.Contains(c.LeftOut, "1 GB") {
		t.Error(len(c.Rows), kept, c.Texts, len(c.Log), c.LeftOut)
	}
}

// An attempt whose work folder and other short texts alone are too much keeps none.
func TestShortTextsCountToo(t *testing.T) {
	t.Parallel()
	p := emptyPicture()
	p.TeamTexts = MaxTeamTexts - 100
	r := manyTasks(1)
	r.Tasks[0].Name, r.Tasks[0].Details.WorkDir = "a", strings.Repeat("/x", 500)
	if c := p.Merge(r, noon); c.Texts > 100 || c.Rows[0].Details.WorkDir != "" {
		t.Error(c.Texts, c.Rows[0].Details.WorkDir)
	}
}
