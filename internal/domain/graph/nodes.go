package graph

import (
	"math"
	"slices"
	"strings"
	"time"
)

// at is the node's place in the definition.
func (n *Node) at() *where {
	at := (*where)(nil).field("nodes").item(n.Index)
	at.node = n
	return at
}

func (n *Node) outputNames() (names []string) {
	for _, port := range n.Outputs {
		names = append(names, port.Name)
	}
	return names
}

var (
	noteFields = []string{"id", "name", "type", "position", "text"}
	taskFields = []string{
		"id", "name", "type", "position", "image", "interpreter", "command", "inputs", "outputs", "env",
		"resources", "retries", "timeoutSeconds", "when", "scatter", "cache", "allowFailure", "secrets", "environment",
	}
)

func (c *checker) node(v *value, i int) {
	n := &Node{
		Index: i, Type: Task, Position: nowhere(),
		Interpreter: "bash", Resources: Resources{VCPU: 1}, Retries: defaultRetries(),
	}
	c.g.Nodes = append(c.g.Nodes, n)
	here := n.at()
	if v.kind != object {
		c.p.add(here, WrongType, "a step is an object, not %s", kindNames[v.kind])
		return
	}
	if t := v.member("type"); t != nil {
		if !t.is("task") && !t.is("note") {
			c.p.add(at(t, here), InvalidValue, "the type of a step is `task` or `note`")
		}
		if t.is("note") {
			n.Type = Note
		}
	}
	for j := range v.items {
		f := &v.items[j]
		if !c.nodeField(n, f, here) {
			c.unknown(f, here, n.fields())
		}
	}
	if v.member("id") == nil {
		c.p.add(here.field("id"), Missing, "a step needs an id")
	}
	if n.Name == "" {
		n.Name = n.ID
	}
	if n.Image != "" && n.Environment != nil {
		c.p.add(here.field("environment"), Conflicting, "a step has an `image` or an `environment`, not both")
	}
}

func (n *Node) fields() []string {
	if n.Type == Note {
		return noteFields
	}
	return taskFields
}

// nodeField reads what every node may have and reports whether f is known.
func (c *checker) nodeField(n *Node, f *value, here *where) bool {
	switch f.name {
	case "id":
		n.ID = c.id(f, here)
	case "name":
		n.Name = c.text(f, here, 4*maxLabel)
		c.label(f, here)
	case "type":
	case "position":
		n.Position = c.position(f, here)
	case "text":
		if n.Type != Note {
			c.p.add(at(f, here), UnknownField, "only a note has a text")
			return true
		}
		n.Text = c.text(f, here, maxProse)
	default:
		if n.Type == Note {
			return c.noteField(f, here)
		}
		return c.taskField(n, f, here)
	}
	return true
}

// noteField explains why a field of a task is not one of a note.
func (c *checker) noteField(f *value, here *where) bool {
	if !slices.Contains(taskFields, f.name) {
		return false
	}
	c.p.add(at(f, here), UnknownField, "a note never runs, so it has no %s", f.name)
	return true
}

func (c *checker) taskField(n *Node, f *value, here *where) bool {
	switch f.name {
	case "image":
		n.Image = c.image(f, here)
	case "environment":
		n.Environment = c.environment(f, here)
	case "interpreter":
		n.Interpreter = c.interpreter(f, here)
	case "command":
		n.Command = c.text(f, here, maxCommand)
	case "inputs":
		c.entries(f, here, func(v *value, in *where) { n.Inputs = append(n.Inputs, c.inPort(v, in)) })
		slices.SortFunc(n.Inputs, func(a, b InPort) int { return strings.Compare(a.Name, b.Name) })
	case "outputs":
		c.entries(f, here, func(v *value, in *where) { n.Outputs = append(n.Outputs, c.outPort(v, in)) })
		slices.SortFunc(n.Outputs, func(a, b OutPort) int { return strings.Compare(a.Name, b.Name) })
	case "env":
		n.Env = c.env(f, here)
	case "secrets":
		n.Secrets = c.secrets(f, here)
	case "resources":
		n.Resources = c.resources(f, here)
	case "retries":
		n.Retries = c.retries(f, here)
	case "timeoutSeconds":
		n.Timeout = seconds(c.positive(f, here, maxSeconds))
	case "when":
		n.When = c.text(f, here, maxExpression)
	case "scatter":
		n.Scatter = c.scatter(f, here)
	case "cache":
		n.Cache = c.boolean(f, here)
	case "allowFailure":
		n.AllowFailure = c.boolean(f, here)
	default:
		return false
	}
	return true
}

// label bounds a text that is shown in one line.
func (c *checker) label(f *value, in *where) {
	if f.kind == text && len([]rune(f.text)) > maxLabel {
		c.p.addAbout(at(f, in), TooLong, "is longer than %d characters", maxLabel)
	}
}

// nowhere marks a node that the author gave no position.
func nowhere() Position { return Position{math.NaN(), math.NaN()} }

func (p Position) known() bool { return !math.IsNaN(p.X) }

var positionFields = []string{"x", "y"}

func (c *checker) position(v *value, in *where) Position {
	const farthest = 1e9
	if v.kind != object {
		c.wrong(v, in, "an object with x and y")
		return nowhere()
	}
	p, here := nowhere(), at(v, in)
	for i := range v.items {
		f := &v.items[i]
		switch f.name {
		case "x":
			p.X = c.number(f, here, -farthest, farthest)
		case "y":
			p.Y = c.number(f, here, -farthest, farthest)
		default:
			c.unknown(f, here, positionFields)
		}
	}
	if math.IsNaN(p.X) || math.IsNaN(p.Y) {
		c.p.addAbout(here, Missing, "needs x and y")
		return nowhere()
	}
	return p
}

var inPortFields = []string{"from", "optional"}

func (c *checker) inPort(v *value, in *where) InPort {
	port, here := InPort{Name: v.name}, at(v, in)
	for i := range v.items {
		f := &v.items[i]
		switch f.name {
		case "from":
			from := c.text(f, here, maxName+len("inputs."))
			name, ok := strings.CutPrefix(from, "inputs.")
			if from != "" && (!ok || !validName(name)) {
				c.p.add(at(f, here), InvalidValue, "`%s` is not of the form `inputs.<name>`", short(from))
				continue
			}
			port.From = name
		case "optional":
			port.Optional = c.boolean(f, here)
		default:
			c.unknown(f, here, inPortFields)
		}
	}
	return port
}

var outPortFields = []string{"path", "many", "directory", "optional"}

func (c *checker) outPort(v *value, in *where) OutPort {
	port, here := OutPort{Name: v.name}, at(v, in)
	for i := range v.items {
		f := &v.items[i]
		switch f.name {
		case "path":
			port.Path = c.text(f, here, maxPath)
		case "many":
			port.Many = c.boolean(f, here)
		case "directory":
			port.Directory = c.boolean(f, here)
		case "optional":
			port.Optional = c.boolean(f, here)
		default:
			c.unknown(f, here, outPortFields)
		}
	}
	if fault := pathFault(port.Path, port.Many); fault != "" {
		c.p.add(here.field("path"), InvalidValue, "%s", fault)
	}
	if port.Many && port.Directory {
		c.p.add(here.field("directory"), Conflicting, "an output is one `directory` or `many` files, not both")
	}
	return port
}

// maxSeconds is a year; a longer wait is a slip.
const maxSeconds = 366 * 24 * 3600

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
