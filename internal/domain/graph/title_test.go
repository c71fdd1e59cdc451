package graph

import "testing"

func TestTitleUsesTheName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		node Node
		want string
	}{
		{Node{ID: "n_ebfqtvpvbh", Name: "Trim reads"}, `Step "Trim reads"`},
		{Node{ID: "boom", Name: "boom"}, "Step boom"},
		{Node{ID: "boom", Name: "Boom"}, "Step boom"},
		{Node{ID: "boom"}, "Step boom"},
	} {
		if got := tt.node.Title(); got != tt.want {
			t.Errorf("%q named %q: got %s", tt.node.ID, tt.node.Name, got)
		}
	}
}
