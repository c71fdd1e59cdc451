// Package produced knows the files that the nodes of a run have made.
package produced

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/runs"
)

// Files is what the nodes of a run have produced, by node and port.
type Files map[string]map[string]port

// port are the files of one, in the order of the shards.
type port []runs.Output

// Add takes in a file.
func (m Files) Add(o runs.Output) {
	if m[o.Node] == nil {
		m[o.Node] = map[string]port{}
	}
	list := m[o.Node][o.Port]
	at, _ := slices.BinarySearchFunc(list, o, func(a, b runs.Output) int { return strings.Compare(a.Key, b.Key) })
	m[o.Node][o.Port] = slices.Insert(list, at, o)
}

func (p port) keys() []string {
	var keys []string
	for _, o := range p {
		keys = append(keys, o.Key)
	}
	return keys
}

// Keys are those of the files of a port, as expressions see them.
func (m Files) Keys(node, port string) []string { return m[node][port].keys() }

// Count is how many there are.
func (m Files) Count() (n int) {
	for _, ports := range m {
		for _, list := range ports {
			n += len(list)
		}
	}
	return n
}

// Find is the file of this run with a key.
func (m Files) Find(key string) (runs.Output, bool) {
	for _, ports := range m {
		for _, list := range ports {
			at, ok := slices.BinarySearchFunc(list, key, func(o runs.Output, key string) int { return strings.Compare(o.Key, key) })
			if ok {
				return list[at], true
			}
		}
	}
	return runs.Output{}, false
}

// SizeText is a number of bytes for people.
func SizeText(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	size, unit := float64(n)/(1<<10), "KB"
	for _, larger := range []string{"MB", "GB"} {
		if size >= 1<<10 {
			size, unit = size/(1<<10), larger
		}
	}
	step := 1.0 // three digits or more
	switch {
	case size < 10:
		step = 100
	case size < 100:
		step = 10
	}
	return strconv.FormatFloat(math.Round(size*step)/step, 'f', -1, 64) + " " + unit
}

// MissingPaths names the paths that were promised at ports and are not there.
func MissingPaths(n *graph.Node, ports []string) string {
	var paths []string
	for _, port := range ports {
		if out, ok := n.Output(port); ok {
			paths = append(paths, out.Path)
		}
	}
	return strings.Join(paths, ", ")
}
