package mask

// automaton finds any of many patterns in a stream of bytes (Aho and Corasick),
// one step a byte. Its size is a few words for each byte of the patterns.
type automaton struct {
	nodes []node
	first [256]int32 // the steps from the root, which are most of all steps
}

// node is what was read so far, as the longest beginning of a pattern.
type node struct {
	child, sibling int32 // 0: none; the root is nobody's child
	fail           int32 // the longest other beginning that ends here
	depth          int32
	match          int32 // the length of the longest pattern that ends here; 0: none
	b              byte
}

func newAutomaton(patterns []string) *automaton {
	a := &automaton{nodes: make([]node, 1)}
	for _, p := range patterns {
		a.add(p)
	}
	a.link()
	return a
}

func (a *automaton) add(pattern string) {
	at := int32(0)
	for i := range len(pattern) {
		next := a.child(at, pattern[i])
		if next == 0 {
			next = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{b: pattern[i], depth: int32(i + 1), sibling: a.nodes[at].child})
			a.nodes[at].child = next
		}
		at = next
	}
	a.nodes[at].match = a.nodes[at].depth
}

// link finds where to go on where a beginning does not, by breadth.
func (a *automaton) link() {
	var queue []int32
	for n := a.nodes[0].child; n != 0; n = a.nodes[n].sibling {
		a.first[a.nodes[n].b] = n
		queue = append(queue, n)
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for n := a.nodes[at].child; n != 0; n = a.nodes[n].sibling {
			fail := a.step(a.nodes[at].fail, a.nodes[n].b)
			a.nodes[n].fail = fail
			a.nodes[n].match = max(a.nodes[n].match, a.nodes[fail].match)
			queue = append(queue, n)
		}
	}
}

func (a *automaton) child(at int32, b byte) int32 {
	for n := a.nodes[at].child; n != 0; n = a.nodes[n].sibling {
		if a.nodes[n].b == b {
			return n
		}
	}
	return 0
}

func (a *automaton) step(at int32, b byte) int32 {
	for at != 0 {
		if next := a.child(at, b); next != 0 {
			return next
		}
		at = a.nodes[at].fail
	}
	return a.first[b]
}
