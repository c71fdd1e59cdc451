package graph

// Results tells which outputs are the results of a run: those that the definition declares, or,
// where it declares none, those of the last nodes, whose files no other node reads. An edge that
// only sets the order reads nothing.
func (g *Graph) Results() func(node, port string) bool {
	if len(g.Outputs) > 0 {
		declared := map[[2]string]bool{}
		for _, o := range g.Outputs {
			declared[[2]string{o.Node, o.Port}] = true
		}
		return func(node, port string) bool { return declared[[2]string{node, port}] }
	}
	read := map[string]bool{}
	for _, e := range g.Edges {
		if e.SourceHandle != "" || e.target.Scatter != nil {
			read[e.Source] = true
		}
	}
	return func(node, _ string) bool { return !read[node] }
}
