package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/spelling"
)

// Parse reads a definition as strictly as saving one does. malformed holds
// everything that makes it refused; when it is empty, the graph is usable.
func Parse(data []byte) (g *Graph, malformed []Problem) {
	g, malformed = build(data)
	if len(malformed) > 0 {
		return nil, malformed
	}
	return g, nil
}

// Salvage reads what live editing produced and never refuses: it leaves out
// the edges that lead nowhere, keeps the rest as it is, and returns every
// problem that Parse would have raised. Of bytes that are no definition at all
// nothing is left but an empty one.
func Salvage(data []byte) (*Graph, []Problem) {
	g, malformed := build(data)
	if g == nil {
		none := *Empty()
		none.unreadable = true
		return &none, malformed
	}
	return g, malformed
}

// build returns no graph only when data is not a JSON object.
func build(data []byte) (*Graph, []Problem) {
	c := &checker{}
	root, ok := read(data, nil, &c.p)
	if !ok {
		return nil, c.p.all()
	}
	if root.kind != object {
		c.p.add(nil, WrongType, "a definition is an object, not %s", kindNames[root.kind])
		return nil, c.p.all()
	}
	c.g = &Graph{root: root, size: len(data)}
	c.top()
	c.index()
	c.connect()
	c.references()
	order := c.g.sorted()
	c.cycles(order)
	c.expressions(order)
	c.g.place(order)
	return c.g, c.p.all()
}

// checker fills a graph from its JSON and notes what is wrong on the way. It
// fills in what it can of a malformed one, so that all problems come at once.
type checker struct {
	p problems
	g *Graph

	unknownFields map[string]bool // nil: nobody asks for them
}

// UnknownFields are the names of fields that mean nothing in a definition and are not
// kept for its author, such as nodes.comand, each once and in order. It looks into
// everything but the schemas of parameters.
func UnknownFields(data []byte) []string {
	c := &checker{unknownFields: map[string]bool{}}
	root, ok := read(data, nil, &c.p)
	if !ok || root.kind != object {
		return nil
	}
	root.items = slices.DeleteFunc(root.items, func(f value) bool { return f.name == "parameters" })
	c.g = &Graph{root: root}
	c.top()
	return slices.Sorted(maps.Keys(c.unknownFields))
}

var topFields = []string{"version", "source", "parameters", "inputs", "nodes", "edges", "outputs"}

func (c *checker) top() {
	for i := range c.g.root.items {
		f := &c.g.root.items[i]
		switch f.name {
		case "version":
			if n, ok := integer(f.text); f.kind != number || !ok || n != 1 {
				c.p.add(at(f, nil), InvalidValue, "the version must be 1")
			}
		case "source":
			c.source(f)
		case "parameters":
			c.parameters(f)
		case "inputs":
			c.entries(f, nil, c.input)
		case "nodes":
			c.list(f, "steps", MaxNodes, c.node)
		case "edges":
			c.list(f, "lines", MaxEdges, c.edge)
		case "outputs":
			c.entries(f, nil, c.output)
		default:
			c.unknown(f, nil, topFields)
		}
	}
	slices.SortFunc(c.g.Inputs, func(a, b Input) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.g.Outputs, func(a, b Output) int { return strings.Compare(a.Name, b.Name) })
}

// list walks a top-level array up to its limit. People know its items as called.
func (c *checker) list(f *value, called string, most int, each func(v *value, i int)) {
	if f.kind != array {
		c.wrong(f, nil, "an array")
		return
	}
	if len(f.items) > most {
		c.p.add(at(f, nil), TooMany, "there are %d %s; at most %d are allowed", len(f.items), called, most)
	}
	for i := range f.items[:min(len(f.items), most)] {
		each(&f.items[i], i)
	}
}

var inputFields = []string{"type", "required", "description"}

func (c *checker) input(v *value, in *where) {
	here := at(v, in)
	input := Input{Name: v.name, Required: true}
	for i := range v.items {
		f := &v.items[i]
		switch f.name {
		case "type":
			if !f.is("file") && !f.is("files") && !f.is("directory") {
				c.p.add(at(f, here), InvalidValue, "the type of an input is `file`, `files` or `directory`")
			}
			input.Many, input.Directory = f.is("files"), f.is("directory")
		case "required":
			input.Required = c.boolean(f, here)
		case "description":
			input.Description = c.text(f, here, maxProse)
		default:
			c.unknown(f, here, inputFields)
		}
	}
	c.g.Inputs = append(c.g.Inputs, input)
}

var outputFields = []string{"from"}

func (c *checker) output(v *value, in *where) {
	here := at(v, in)
	output := Output{Name: v.name}
	for i := range v.items {
		f := &v.items[i]
		if f.name != "from" {
			c.unknown(f, here, outputFields)
			continue
		}
		from := c.text(f, here, 2*maxName+1)
		node, port, ok := strings.Cut(from, ".")
		switch {
		case from == "":
		case !ok || !validName(node) || !validName(port):
			c.p.add(at(f, here), InvalidValue, "`%s` is not of the form `<step>.<output>`", short(from))
		default:
			output.Node, output.Port = node, port
		}
	}
	c.g.Outputs = append(c.g.Outputs, output)
}

// index makes nodes findable by their id.
func (c *checker) index() {
	c.g.byID = make(map[string]*Node, len(c.g.Nodes))
	for _, n := range c.g.Nodes {
		if n.ID == "" {
			continue
		}
		if first, taken := c.g.byID[n.ID]; taken {
			c.p.add(n.at().field("id"), Duplicate, "`%s` is already the id of %s", short(n.ID), first.label())
			continue
		}
		c.g.byID[n.ID] = n
	}
}

// references checks the names by which ports and outputs point at each other.
func (c *checker) references() {
	inputs := c.g.inputNames()
	for _, n := range c.g.Nodes {
		for _, port := range n.Inputs {
			if _, ok := c.g.Input(port.From); port.From == "" || ok {
				continue
			}
			fix := newInput(port.From)
			if near := spelling.Nearest(port.From, inputs); near != "" {
				fix = setFix("nodes."+n.ID+".inputs."+port.Name+".from", "inputs."+near, "Use the input %s", quote(near))
			}
			c.p.addFix(fix, n.at().field("inputs").field(port.Name).field("from"),
				NoSuchInput, "there is no input called %s%s", quote(port.From), spelling.DidYouMean(port.From, inputs))
		}
	}
	for _, out := range c.g.Outputs {
		if out.Node == "" {
			continue
		}
		from, remove := (*where)(nil).field("outputs").field(out.Name).field("from"), setFix("outputs."+out.Name, nil, "Remove the output")
		if n, ok := c.g.byID[out.Node]; !ok {
			c.p.addFix(remove, from, NoSuchStep, "there is no step with the id %s", quote(out.Node))
		} else if _, ok := n.Output(out.Port); !ok {
			if near := spelling.Nearest(out.Port, n.outputNames()); near != "" {
				remove = setFix("outputs."+out.Name+".from", out.Node+"."+near, "Use the output %s", quote(near))
			}
			c.p.addFix(remove, from, NoSuchOutput, "%s has no output called %s%s", n.label(), quote(out.Port), spelling.DidYouMean(out.Port, n.outputNames()))
		}
	}
}

func (g *Graph) inputNames() (names []string) {
	for _, in := range g.Inputs {
		names = append(names, in.Name)
	}
	return names
}
