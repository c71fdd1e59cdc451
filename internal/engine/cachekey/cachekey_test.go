package cachekey_test

import (
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/engine/cachekey"
	"github.com/millrace/millrace/internal/engine/taskenv"
)

// The values of all parameters count only where the command is given them.
func TestParametersCountWhereTheyAreGiven(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]map[string]string{"given": nil, "its own": {"PARAMS_FILE": "mine.json"}} {
		parts := cachekey.Of(taskenv.Task{Node: &graph.Node{Command: `cat "$PARAMS_FILE"`, Env: env}})
		if _, counts := parts["PARAMS_FILE"]; counts != (env == nil) || parts["env.PARAMS_FILE"] != env["PARAMS_FILE"] {
			t.Errorf("%s: %v", name, parts)
		}
	}
}
