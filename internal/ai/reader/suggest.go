package reader

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxTasks bounds a suggested workflow to what fits on a canvas.
const maxTasks = 60

// The definition, as far as it is suggested.
type (
	definition struct {
		Version int              `json:"version"`
		Inputs  map[string]input `json:"inputs,omitempty"`
		Nodes   []node           `json:"nodes"`
		Edges   []edgeOf         `json:"edges"`
	}
	input struct {
		Type        string `json:"type"`
		Required    bool   `json:"required"`
		Description string `json:"description"`
	}
	node struct {
		ID           string             `json:"id"`
		Name         string             `json:"name"`
		Type         string             `json:"type"`
		Image        string             `json:"image,omitempty"`
		Command      string             `json:"command"`
		Inputs       map[string]inPort  `json:"inputs,omitempty"`
		Outputs      map[string]outPort `json:"outputs,omitempty"`
		AllowFailure bool               `json:"allowFailure,omitempty"`
		Tool         string             `json:"x-tool"`
		ToolVersion  string             `json:"x-tool-version,omitempty"` // as the paper gives it
	}
	inPort struct {
		From     string `json:"from,omitempty"`
		Optional bool   `json:"optional,omitempty"`
	}
	outPort struct {
		Path     string `json:"path"`
		Many     bool   `json:"many,omitempty"`
		Optional bool   `json:"optional"`
	}
	edgeOf struct {
		ID           string `json:"id"`
		Source       string `json:"source"`
		SourceHandle string `json:"sourceHandle,omitempty"`
		Target       string `json:"target"`
		TargetHandle string `json:"targetHandle,omitempty"`
	}
)

// maker is a task's port from which files of a type come.
type maker struct{ node, port string }

// suggestion collects the tasks of a workflow.
type suggestion struct {
	definition
	data     []string
	makers   map[string][]maker // by type, in order
	carried  int                // edges that carry files
	sketches int
}

// suggest makes a workflow of the tools: a task for each, in the order of the
// methods, joined where one makes what the other takes.
func suggest(title string, list []use, data []string) *Suggestion {
	tasks := chooseTasks(list)
	if len(tasks) == 0 {
		return nil
	}
	s := &suggestion{data: data, makers: map[string][]maker{}}
	s.definition = definition{Version: 1, Inputs: map[string]input{}, Nodes: []node{}, Edges: []edgeOf{}}
	for _, u := range tasks {
		s.task(u)
	}
	raw, err := json.Marshal(s.definition)
	if err != nil {
		return nil
	}
	arranged, problems := Arrange(raw)
	if len(problems) > 0 {
		return nil
	}
	return &Suggestion{Name: nameFor(title), Description: s.describe(tasks), Definition: arranged, Confidence: s.confidence()}
}

// chooseTasks leaves out what other tasks stand on, unless it is all there is.
func chooseTasks(list []use) []use {
	var tasks, rest []use
	covered := map[string]bool{}
	for _, u := range list {
		switch {
		case u.tool.kind.name == "database":
		case background[u.tool.kind.name]:
			rest = append(rest, u)
		default:
			tasks = append(tasks, u)
			way, what, _ := strings.Cut(u.tool.how, " ")
			covered["R"] = covered["R"] || way == "R" || strings.Contains(what, "Rscript")
			covered["Python"] = covered["Python"] || way == "py" || strings.Contains(what, "python3")
			covered["MATLAB"] = covered["MATLAB"] || way == "matlab"
		}
	}
	for _, u := range rest {
		if u.tool.kind.name == "language" && !covered[u.tool.name] || len(tasks) == 0 && u.tool.how != "" {
			tasks = append(tasks, u)
		}
	}
	slices.SortStableFunc(tasks, func(a, b use) int { return a.order - b.order })
	return tasks[:min(len(tasks), maxTasks)]
}

func (s *suggestion) task(u use) {
	k := u.tool.kind
	text, sketch := command(u)
	n := node{
		ID: s.id(u.tool.name), Name: k.title + ": " + u.tool.name, Type: "task", Image: u.tool.image, Command: text,
		Inputs: map[string]inPort{}, Outputs: map[string]outPort{}, AllowFailure: sketch, Tool: u.tool.name, ToolVersion: u.version,
	}
	if sketch {
		s.sketches++
	}
	before := len(s.Edges)
	for _, p := range k.inputs {
		s.feed(&n, p)
	}
	if len(s.Edges) == before && len(s.Nodes) > 0 {
		s.join(s.Nodes[len(s.Nodes)-1].ID, "", n.ID, "")
	}
	for _, p := range k.outputs {
		// What a program calls its files depends on how it is called; a run
		// does not fail for that.
		n.Outputs[p.name] = outPort{Path: p.path, Many: strings.ContainsAny(p.path, "*?["), Optional: true}
		s.makers[p.holds] = append(s.makers[p.holds], maker{n.ID, p.name})
	}
	s.Nodes = append(s.Nodes, n)
}

// feed joins a port to the task that last made what it takes, or to an input
// of the workflow. Reports come from all tasks that made one.
func (s *suggestion) feed(n *node, p port) {
	from := s.makers[p.holds]
	if len(from) > 1 && p.holds != "report" {
		from = from[len(from)-1:]
	}
	for _, m := range from {
		s.join(m.node, m.port, n.ID, p.name)
		s.carried++
	}
	if len(from) > 0 {
		n.Inputs[p.name] = inPort{Optional: p.optional}
		return
	}
	h := lexicon().holdings[p.holds]
	kind := "file"
	if h.many {
		kind = "files"
	}
	n.Inputs[p.name] = inPort{From: "inputs." + p.holds, Optional: true}
	s.Inputs[p.holds] = input{Type: kind, Description: s.about(h)}
}

func (s *suggestion) about(h holding) string {
	if len(s.data) == 0 {
		return h.description
	}
	return clip(h.description+". The paper names "+strings.Join(s.data[:min(len(s.data), 8)], ", "), 1000)
}

func (s *suggestion) join(source, out, target, in string) {
	s.Edges = append(s.Edges, edgeOf{fmt.Sprintf("e%d", len(s.Edges)+1), source, out, target, in})
}

var notInID = compiled(`[^a-z0-9]+`)

// id makes a node's id of a tool's name.
func (s *suggestion) id(name string) string {
	id := "t_" + strings.Trim(notInID().ReplaceAllString(strings.ToLower(name), "_"), "_")
	id = id[:min(len(id), 50)]
	for i, try := 2, id; ; i++ {
		if !slices.ContainsFunc(s.Nodes, func(n node) bool { return n.ID == try }) {
			return try
		}
		try = fmt.Sprintf("%s_%d", id, i)
	}
}

func nameFor(title string) string {
	if title == "" {
		return "Workflow of a paper"
	}
	return clip(title, 150)
}

func (s *suggestion) describe(tasks []use) string {
	var names []string
	for _, u := range tasks {
		names = append(names, u.String())
	}
	text := "Tools named in the paper, in the order of its methods: " + strings.Join(names, ", ") + "."
	if s.sketches > 0 {
		text += " Steps that continue if they fail are drafts: their commands say what to complete."
	}
	return clip(text, 5000)
}

// confidence grows with the tasks that can run as they are, and with how well
// they fit together; without a model it is never great.
func (s *suggestion) confidence() float64 {
	n := float64(len(s.Nodes))
	ready, joined := (n-float64(s.sketches))/n, min(1, float64(s.carried)/max(1, n-1))
	size := min(1, n/5)
	return float64(int(100*(0.1+0.3*ready+0.2*joined+0.2*size))) / 100
}
