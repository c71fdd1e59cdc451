// Package graph is the definition of a workflow: what an author may write,
// everything that is wrong with it, and the order in which it can run. What a
// run needs beyond the definition, such as files, money and time, is left to
// others.
package graph

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/source"
)

// Graph is one definition. It is never changed after it was made, so it may be
// shared.
type Graph struct {
	Source     *source.Source // the code of its commands; nil: none
	Parameters []Parameter    // by name
	Inputs     []Input        // by name
	Nodes      []*Node        // as written
	Edges      []*Edge        // as written, without those that lead nowhere
	Outputs    []Output       // by name

	unreadable  bool // Salvage got no JSON object
	root        value
	size        int // in bytes, as it was written
	byID        map[string]*Node
	incoming    map[string][]*Edge
	outgoing    map[string][]*Edge
	expressions map[string]*expression
}

// Node is a task, or a remark on the canvas. What the author left out has its
// default here, and here only: JSON returns what was written.
type Node struct {
	Index    int // in the definition, for paths
	ID       string
	Name     string
	Type     NodeType
	Position Position
	Text     string // of a note

	Image        string            // empty: the executor's own root
	Environment  *environment.Spec // nil: none; never beside an image
	Interpreter  string
	Command      string
	Inputs       []InPort  // by name
	Outputs      []OutPort // by name
	Env          map[string]string
	Secrets      []string // names; the command finds their values as SECRET_<name>
	Resources    Resources
	Retries      Retries
	Timeout      time.Duration // 0: none
	When         string        // CEL; empty: always
	Scatter      *Scatter      // nil: the node runs once
	Cache        bool
	AllowFailure bool
}

// Title is how a sentence that begins with the node calls it: by its name, or by its
// id where that is its name. People know a node as a step.
func (n *Node) Title() string {
	if n.Name == "" || strings.EqualFold(n.Name, n.ID) {
		return "Step " + n.ID
	}
	return `Step "` + n.Name + `"`
}

// NodeType says what a node is.
type NodeType string

// The types of nodes.
const (
	Task NodeType = "task"
	Note NodeType = "note"
)

// Position is where a node stands on the canvas.
type Position struct{ X, Y float64 }

// Parameter is a value that a run may set. One without a default must be set.
type Parameter struct {
	Name     string
	Required bool

	schema schema
}

// Input is files that a run brings.
type Input struct {
	Name        string
	Many        bool // declared as `files`
	Directory   bool // declared as `directory`
	Required    bool
	Description string
}

// Output is what a run hands out: one output port of one node.
type Output struct {
	Name string
	Node string
	Port string
}

// InPort is a declared input of a node. From is the workflow input that feeds
// it, if one does; edges may feed it too.
type InPort struct {
	Name     string
	From     string
	Optional bool
}

// OutPort is files, or a folder, that a node leaves in its working folder.
type OutPort struct {
	Name      string
	Path      string
	Many      bool
	Directory bool
	Optional  bool
}

// Edge orders two nodes; with handles it also carries files.
type Edge struct {
	Index        int // in the definition, for paths
	ID           string
	Source       string
	SourceHandle string
	Target       string
	TargetHandle string

	source, target *Node
}

// Carries reports whether files go along the edge.
func (e *Edge) Carries() bool { return e.SourceHandle != "" && e.TargetHandle != "" }

// Resources is what a node takes of its run's compute.
type Resources struct {
	VCPU  float64
	RAMGB float64 // 0: the node's share of the run's memory
	GPU   int
}

// Scatter runs a node once for each item of a list.
type Scatter struct {
	Over        string // CEL
	MaxParallel int    // 0: as many as the run has room for
}

// Empty is a definition with nothing in it.
func Empty() *Graph { return empty() }

var empty = sync.OnceValue(func() *Graph {
	g, _ := Parse([]byte(`{"version":1,"parameters":{},"inputs":{},"nodes":[],"edges":[],"outputs":{}}`))
	return g
})

// WithoutSource is the graph without what its author wrote beside it, for those
// who carry it out: it takes less memory, and cannot be written down again.
func (g *Graph) WithoutSource() *Graph {
	slim := *g
	slim.root = value{}
	return &slim
}

// Node finds a node by its id.
func (g *Graph) Node(id string) (*Node, bool) {
	n, ok := g.byID[id]
	return n, ok
}

// Incoming lists the edges into a node, in the order of the definition.
func (g *Graph) Incoming(id string) []*Edge { return g.incoming[id] }

// Outgoing lists the edges out of a node, in the order of the definition.
func (g *Graph) Outgoing(id string) []*Edge { return g.outgoing[id] }

// NodeCount counts the nodes of every type.
func (g *Graph) NodeCount() int { return len(g.Nodes) }

// Input finds a declared input of the workflow.
func (g *Graph) Input(name string) (Input, bool) {
	return find(g.Inputs, name, func(i Input) string { return i.Name })
}

// Parameter finds a declared parameter.
func (g *Graph) Parameter(name string) (Parameter, bool) {
	return find(g.Parameters, name, func(p Parameter) string { return p.Name })
}

// Input finds a declared input port.
func (n *Node) Input(name string) (InPort, bool) {
	return find(n.Inputs, name, func(p InPort) string { return p.Name })
}

// Output finds a declared output port.
func (n *Node) Output(name string) (OutPort, bool) {
	return find(n.Outputs, name, func(p OutPort) string { return p.Name })
}

// find looks a name up in what is sorted by name.
func find[T any](sorted []T, name string, nameOf func(T) string) (found T, ok bool) {
	i, ok := slices.BinarySearchFunc(sorted, name, func(t T, name string) int {
		return strings.Compare(nameOf(t), name)
	})
	if ok {
		found = sorted[i]
	}
	return found, ok
}
