package graph

import "github.com/millrace/millrace/internal/domain/spelling"

// at is the edge's place in the definition.
func (e *Edge) at() *where {
	at := (*where)(nil).field("edges").item(e.Index)
	at.edge = e
	return at
}

var edgeFields = []string{"id", "source", "sourceHandle", "target", "targetHandle"}

func (c *checker) edge(v *value, i int) {
	e := &Edge{Index: i}
	c.g.Edges = append(c.g.Edges, e)
	if v.kind != object {
		c.p.add(e.at(), WrongType, "an edge is an object, not %s", kindNames[v.kind])
		return
	}
	here := e.at()
	for j := range v.items {
		f := &v.items[j]
		switch f.name {
		case "id":
			e.ID = c.id(f, here)
		case "source":
			e.Source = c.id(f, here)
		case "target":
			e.Target = c.id(f, here)
		case "sourceHandle":
			e.SourceHandle = c.handle(f, here)
		case "targetHandle":
			e.TargetHandle = c.handle(f, here)
		default:
			c.unknown(f, here, edgeFields)
		}
	}
	for _, name := range []string{"id", "source", "target"} {
		if v.member(name) == nil {
			c.p.add(here.field(name), Missing, "an edge needs its %s", name)
		}
	}
}

// handle reads the port at one end. Graph editors write null where an edge has
// none, which says the same as leaving it out.
func (c *checker) handle(f *value, in *where) string {
	if f.kind == null {
		return ""
	}
	return c.id(f, in)
}

// connect checks what the edges join and leaves out those that lead nowhere,
// from the graph and from what it returns as JSON.
func (c *checker) connect() {
	edges := c.g.Edges
	c.g.Edges = make([]*Edge, 0, len(edges))
	c.g.incoming = make(map[string][]*Edge, len(c.g.Nodes))
	c.g.outgoing = make(map[string][]*Edge, len(c.g.Nodes))
	lost := map[int]bool{}
	for _, e := range edges {
		e.source, e.target = c.end(e, "source", e.Source), c.end(e, "target", e.Target)
		if e.source == nil || e.target == nil {
			lost[e.Index] = true
			continue
		}
		if c.joins(e) {
			c.g.Edges = append(c.g.Edges, e)
			c.g.outgoing[e.Source] = append(c.g.outgoing[e.Source], e)
			c.g.incoming[e.Target] = append(c.g.incoming[e.Target], e)
		}
	}
	c.edgeIDs(edges)
	c.drop(lost)
}

func (c *checker) edgeIDs(edges []*Edge) {
	byID := make(map[string]*Edge, len(edges))
	for _, e := range edges {
		if e.ID == "" {
			continue
		}
		if first, taken := byID[e.ID]; taken {
			c.p.add(e.at().field("id"), Duplicate, "`%s` is already the id of %s", short(e.ID), first.label())
			continue
		}
		byID[e.ID] = e
	}
}

// end finds the node at one end of an edge.
func (c *checker) end(e *Edge, field, id string) *Node {
	n := c.g.byID[id]
	if n == nil && id != "" {
		c.p.addFix(removeEdge(e), e.at().field(field), NoSuchStep, "there is no step with the id %s", quote(id))
	}
	return n
}

// joins reports whether the edge can stand between two nodes that exist.
func (c *checker) joins(e *Edge) bool {
	if e.source == e.target {
		c.p.addFix(removeEdge(e), e.at(), Cycle, "the line leads from %s back to itself", e.source.label())
		return false
	}
	if e.source.Type == Note || e.target.Type == Note {
		c.p.addFix(removeEdge(e), e.at(), InvalidValue, "a line cannot begin or end at a note")
		return false
	}
	if (e.SourceHandle == "") != (e.TargetHandle == "") {
		missing := "sourceHandle"
		if e.TargetHandle == "" {
			missing = "targetHandle"
		}
		c.p.add(e.at().field(missing), Missing, "an edge that carries files needs both handles, one that only orders has none")
	}
	if e.SourceHandle == "" {
		return true
	}
	if _, ok := e.source.Output(e.SourceHandle); !ok {
		fix, known := removeEdge(e), e.source.outputNames()
		if near := spelling.Nearest(e.SourceHandle, known); near != "" {
			fix = setFix("edges."+e.ID+".sourceHandle", near, "Use the output %s", quote(near))
		}
		c.p.addFix(fix, e.at().field("sourceHandle"), NoSuchOutput, "%s has no output called %s%s",
			e.source.label(), quote(e.SourceHandle), spelling.DidYouMean(e.SourceHandle, known))
	}
	return true
}

// drop takes edges out of the definition.
func (c *checker) drop(lost map[int]bool) {
	list := c.g.root.member("edges")
	if len(lost) == 0 || list == nil {
		return
	}
	var left []value
	for i := range list.items {
		if !lost[i] {
			left = append(left, list.items[i])
		}
	}
	list.items = left
}
