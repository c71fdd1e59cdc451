package graph

import "strings"

// Incomplete lists what keeps a well-formed draft from running.
func (g *Graph) Incomplete() []Problem {
	var p problems
	tasks := 0
	for _, n := range g.Nodes {
		if n.Type == Task {
			tasks++
			g.open(n, &p)
		}
	}
	if tasks == 0 {
		p.add((*where)(nil).field("nodes"), "the workflow has no steps to run")
	}
	if g.Source != nil && g.Source.Git == "" {
		p.add((*where)(nil).field("source").field("git"), "the address of the repository is missing")
	}
	for _, out := range g.Outputs {
		if out.Node == "" {
			p.add((*where)(nil).field("outputs").field(out.Name).field("from"), "the output is not connected to a step's output")
		}
	}
	return p.all()
}

// open notes what a task still lacks.
func (g *Graph) open(n *Node, p *problems) {
	if strings.TrimSpace(n.Command) == "" {
		p.add(n.at().field("command"), "the task has no command")
	}
	if n.Scatter != nil && n.Scatter.Over == "" {
		p.add(n.at().field("scatter").field("over"), "the task has no list to run once per item of")
	}
	if e := n.Environment; e != nil && e.Empty() {
		p.add(n.at().field("environment"), "the environment has no packages yet: name one, such as `pandas==2.2.*`, or remove it")
	}
	for _, port := range n.Inputs {
		if !port.Optional && port.From == "" && !g.fed(n, port.Name) {
			p.add(n.at().field("inputs").field(port.Name), "nothing feeds this input yet")
		}
	}
	for _, port := range n.Outputs {
		if port.Path == "" {
			p.add(n.at().field("outputs").field(port.Name).field("path"), "the output has no path")
		}
	}
}

// fed reports whether an edge carries files into the port.
func (g *Graph) fed(n *Node, port string) bool {
	for _, e := range g.incoming[n.ID] {
		if e.Carries() && e.TargetHandle == port {
			return true
		}
	}
	return false
}
