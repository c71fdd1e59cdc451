package runs

import (
	"testing"

	"github.com/millrace/millrace/api"
)

func TestARunSaysHowMuchItReused(t *testing.T) {
	t.Parallel()
	each := api.RunNode{Shards: &api.Shards{Total: 1000, Done: 1000}}
	for want, r := range map[string]api.Run{
		"":                                {Nodes: []api.RunNode{{}}},
		"1 of 2 steps":                    {Nodes: []api.RunNode{{}, {}}, Reused: &api.RunReused{Steps: 1}},
		"0 of 2 steps, 997 of 1000 items": {Nodes: []api.RunNode{{}, each}, Reused: &api.RunReused{Items: 997}},
	} {
		if got := reusedText(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
