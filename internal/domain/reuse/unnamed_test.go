package reuse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/reuse"
)

// What a command takes without naming it is foretold, too.
func TestWhatANodeTakesWithoutNamingItIsForetold(t *testing.T) {
	t.Parallel()
	definition := func(node, source string) string {
		return `{"parameters":{"q":{"type":"integer","default":1},"r":{"type":"integer","default":1}},` + source + `"nodes":[{"id":"a",` + node + `}]}`
	}
	const code, moved = `"source":{"git":"https://example.org/x.git","ref":"v1"},`, `"source":{"git":"https://example.org/x.git","ref":"v2"},`
	for name, tt := range map[string]struct {
		before, now, parameters, want string
	}{
		"a file of all parameters":      {definition(`"command":"run $PARAMS_FILE"`, ""), "", `{"r":2}`, "computed: the parameters changed"},
		"the same file":                 {definition(`"command":"run $PARAMS_FILE"`, ""), "", `{"r":1}`, "reused"},
		"a file in a variable":          {definition(`"command":"run","env":{"F":"$PARAMS_FILE"}`, ""), "", `{"q":2}`, "computed: the parameters changed"},
		"a variable of that name":       {definition(`"command":"run $PARAMS_FILE","env":{"PARAMS_FILE":"mine"}`, ""), "", `{"q":2}`, "reused"},
		"a parameter in a variable":     {definition(`"command":"run","env":{"F":"$PARAM_q"}`, ""), "", `{"q":2}`, "computed: the parameter q changed"},
		"a parameter that nobody names": {definition(`"command":"run $PARAM_q"`, ""), "", `{"r":2}`, "reused"},
		"a secret more":                 {definition(`"command":"run","secrets":["KEY"]`, ""), definition(`"command":"run","secrets":["KEY","MORE"]`, ""), `{}`, "computed: its secrets changed"},
		"the same secrets":              {definition(`"command":"run","secrets":["KEY"]`, ""), "", `{}`, "reused"},
		"code at another commit":        {definition(`"command":"$SOURCE_DIR/run"`, code), definition(`"command":"$SOURCE_DIR/run"`, moved), `{}`, "depends: its code comes from elsewhere now: it runs again unless that is the same"},
		"code that it does not look at": {definition(`"command":"run"`, code), definition(`"command":"run"`, moved), `{}`, "reused"},
		"code where there was none":     {definition(`"command":"$SOURCE_DIR/run"`, ""), definition(`"command":"$SOURCE_DIR/run"`, code), `{}`, "depends: its code comes from elsewhere now: it runs again unless that is the same"},
		"another command of other code": {definition(`"command":"$SOURCE_DIR/run"`, code), definition(`"command":"$SOURCE_DIR/go"`, moved), `{}`, "computed: its command changed"},
		"the same code":                 {definition(`"command":"$SOURCE_DIR/run"`, code), "", `{}`, "reused"},
	} {
		now := tt.now
		if now == "" {
			now = tt.before
		}
		before := reuse.Ended{Run: runOf(t, tt.before, `{}`), States: map[string]lifecycle.NodeState{"a": lifecycle.NodeSucceeded}}
		list := reuse.Foretell(before, runOf(t, now, tt.parameters))
		if got := strings.TrimSuffix(fmt.Sprintf("%s: %s", list[0].Expect, list[0].Reason), ": "); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
