package reported

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/graph"
)

var nodeID = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// NodeID is the id of a step: its name where that can be one, else what is left of
// the name, and a hash.
func NodeID(name string) string {
	if nodeID.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	plain := strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return '_'
	}, name)
	return "n_" + plain[:min(len(plain), 50)] + "_" + hex.EncodeToString(sum[:4])
}

// Canvas is what the workflow of a project shows: there is nothing to start here.
func Canvas(engine string) *graph.Graph {
	text, _ := json.Marshal("This pipeline is run by " + engine + ", not by Millrace. Open one of its runs to see its steps.")
	g, _ := graph.Salvage([]byte(`{"version":1,"nodes":[{"id":"about","type":"note","name":"About","text":` + string(text) + `}],"edges":[]}`))
	return g
}

// Definition is the graph of a run as people see it: a task for each step and an
// edge for what follows what. An edge that would close a circle is left out.
func (p *Picture) Definition() []byte {
	type node struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Type string `json:"type"`
	}
	type edge struct {
		ID     string `json:"id"`
		Source string `json:"source"`
		Target string `json:"target"`
	}
	d := struct {
		Version int    `json:"version"`
		Nodes   []node `json:"nodes"`
		Edges   []edge `json:"edges"`
	}{1, []node{}, []edge{}}
	for _, n := range p.Sorted() {
		d.Nodes = append(d.Nodes, node{n.ID, n.Name, "task"})
	}
	for _, e := range acyclic(p.Edges) {
		d.Edges = append(d.Edges, edge{"e_" + short(e[0]+" "+e[1]), e[0], e[1]})
	}
	text, _ := json.Marshal(d) // texts only
	g, _ := graph.Salvage(text)
	return g.JSON()
}

func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// acyclic are the edges in order, without those that lead back.
func acyclic(edges map[[2]string]bool) (kept [][2]string) {
	list := make([][2]string, 0, len(edges))
	for e := range edges {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	after := map[string][]string{}
	for _, e := range list {
		after[e[0]] = append(after[e[0]], e[1])
	}
	// An edge to a node that the walk has not left closes a circle.
	const entered, left = 1, 2
	state, back := map[string]int{}, map[[2]string]bool{}
	type step struct {
		node string
		next int
	}
	for _, e := range list {
		if state[e[0]] != 0 {
			continue
		}
		state[e[0]] = entered
		for path := []step{{node: e[0]}}; len(path) > 0; {
			at := &path[len(path)-1]
			if at.next == len(after[at.node]) {
				state[at.node] = left
				path = path[:len(path)-1]
				continue
			}
			to := after[at.node][at.next]
			at.next++
			switch state[to] {
			case entered:
				back[[2]string{at.node, to}] = true
			case 0:
				state[to] = entered
				path = append(path, step{node: to})
			}
		}
	}
	for _, e := range list {
		if !back[e] {
			kept = append(kept, e)
		}
	}
	return kept
}

// maxWalk bounds the steps through a graph of a stranger, in which thousands of
// processes may lead into the same thousands of operators.
const maxWalk = 1_000_000

// Contract are the edges between named vertices of a graph, through those without
// a name.
func Contract(names map[string]string, edges [][2]string) (list [][2]string) {
	after := map[string][]string{}
	for _, e := range edges[:min(len(edges), MaxEdges)] {
		after[e[0]] = append(after[e[0]], e[1])
	}
	walked := 0
	for from, name := range names {
		if name == "" || len(list) > MaxEdges || walked > maxWalk {
			continue
		}
		seen := map[string]bool{from: true}
		for next := slices.Clone(after[from]); len(next) > 0; {
			to := next[0]
			next = next[1:]
			if walked++; seen[to] {
				continue
			}
			seen[to] = true
			if other := names[to]; other != "" {
				list = append(list, [2]string{name, other})
				continue
			}
			next = append(next, after[to]...)
		}
	}
	return list
}
