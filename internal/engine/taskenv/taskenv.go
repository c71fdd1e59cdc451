// Package taskenv is what a command sees of the world: its variables, and the
// names of the files it reads.
package taskenv

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/domain/source"
)

// Task is one shard of one node, ready to be tried.
type Task struct {
	Run     ids.Run
	Node    *graph.Node
	Attempt int
	Values  graph.Values
	// Inputs are the staged files by port, as the command will see them; Lists
	// are the files that name them, one a line.
	Inputs map[string][]string
	Lists  map[string]string
	// Item is a shard's value or path; only with Index.
	Item     string
	Index    int
	Shard    bool
	VCPU     float64
	RAMGB    float64
	Progress string            // the file that the command may write its progress into
	Staged   bool              // something was put where the command finds it
	Secrets  map[string]string // by name
	Source   string            // the folder of the workflow's code; empty: it sees none
	Launch   map[string]string // what a command finds that launches a pipeline
}

// VCPUOf is how many vCPUs of a run's size a task of a node has: one where the node does
// not say, and all of them where it launches a pipeline.
func VCPUOf(n *graph.Node, size credits.Size) float64 {
	switch {
	case pipeline.LaunchedBy(n) != "":
		return float64(size.VCPU)
	case n.Resources.VCPU == 0:
		return 1
	}
	return n.Resources.VCPU
}

var parameterName = regexp.MustCompile(`PARAM_([A-Za-z_][A-Za-z0-9_]*)`)

// maxInline is how long a variable with paths may get before it names the
// list instead.
const maxInline = 64 << 10

// Environment is what the command sees of the world: values reach it as
// variables only, so that none can become shell. The platform's own names win
// over the author's.
func (t Task) Environment() map[string]string {
	env := maps.Clone(t.Node.Env)
	if env == nil {
		env = map[string]string{}
	}
	for _, name := range t.Parameters() {
		if text, ok := t.Values.Text(name); ok {
			env["PARAM_"+name] = text
		}
	}
	for port, paths := range t.Inputs {
		inline := strings.Join(paths, " ")
		if len(inline) > maxInline {
			inline = t.Lists[port]
		}
		env["INPUT_"+port], env["INPUT_"+port+"_LIST"] = inline, t.Lists[port]
	}
	if t.Shard {
		env["ITEM"], env["ITEM_INDEX"] = t.Item, strconv.Itoa(t.Index)
	}
	if t.Source != "" {
		env[source.Variable] = t.Source
	}
	maps.Copy(env, t.Launch)
	for name, value := range t.Secrets {
		env["SECRET_"+name] = value
	}
	maps.Copy(env, map[string]string{
		"ATTEMPT": strconv.Itoa(t.Attempt), "RUN_ID": string(t.Run), "NODE_ID": t.Node.ID, "PROGRESS_FILE": t.Progress,
		"VCPU": strconv.FormatFloat(t.VCPU, 'f', -1, 64), "RAM_GB": strconv.FormatFloat(t.RAMGB, 'f', -1, 64),
	})
	return env
}

// Check refuses variables that could not be handed over as they are, whatever
// they were made from.
func Check(env map[string]string) error {
	for name, value := range env {
		if err := bounds.TextFault(value); err != nil {
			return fault.Invalid("%s: %s", name, err)
		}
	}
	return nil
}

// StagedName is what a file is called where a command finds it. A list of paths
// is split at spaces or lines, so that no name holds either.
func StagedName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
}

// Parameters are the names that occur in the command or its environment, and
// no others: what a task does not mention cannot change what it computes.
func (t Task) Parameters() []string {
	texts := append([]string{t.Node.Command}, slices.Collect(maps.Values(t.Node.Env))...)
	var names []string
	for _, text := range texts {
		for _, m := range parameterName.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
