package graph

import "testing"

func TestTitleUsesTheName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		node Node
		want string
	}{
		{Node{ID: "n_ebfqtvpvbh", Name: "Trim reads"}, `Node "Trim reads"`},
		{Node{ID: "boom", Name: "boom"}, "Node boom"},
		{Node{ID: "boom", Name: "Boom"}, "Node boom"},
		{Node{ID: "boom"}, "Node boom"},
	} {
		if got := tt.node.Title(); got != tt.want {
			t.Errorf("%q named %q: got %s", tt.node.ID, tt.node.Name, got)
		}
	}
}
