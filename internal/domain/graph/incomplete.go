package graph

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Problems lists everything that keeps a definition from being saved or run: what
// Salvage found malformed in it, and what is incomplete. A field that is malformed is
// listed once.
func (g *Graph) Problems(malformed []Problem) []Problem {
	listed := make(map[string]bool, len(malformed))
	for _, p := range malformed {
		listed[p.Path] = true
	}
	incomplete := slices.DeleteFunc(g.Incomplete(), func(p Problem) bool { return listed[p.Path] })
	return slices.Concat(malformed, incomplete)
}

// Incomplete lists what keeps a well-formed draft from running.
func (g *Graph) Incomplete() []Problem {
	if g.unreadable {
		return nil
	}
	var p problems
	tasks := 0
	for _, n := range g.Nodes {
		if n.Type == Task {
			tasks++
			g.open(n, &p)
		}
	}
	if tasks == 0 {
		p.add((*where)(nil).field("nodes"), NoSteps, "the workflow has no steps to run")
	}
	if g.Source != nil && g.Source.Git == "" {
		p.add((*where)(nil).field("source").field("git"), Missing, "the address of the repository is missing")
	}
	for _, out := range g.Outputs {
		if out.Node == "" {
			p.addFix(setFix("outputs."+out.Name, nil, "Remove the output"),
				(*where)(nil).field("outputs").field(out.Name).field("from"), NotConnected, "the output %s is not connected to a step's output", quote(out.Name))
		}
	}
	return p.all()
}

// open notes what a task still lacks.
func (g *Graph) open(n *Node, p *problems) {
	at := "nodes." + n.ID
	if strings.TrimSpace(n.Command) == "" {
		p.add(n.at().field("command"), NoCommand, "%s has no command", n.label())
	}
	if n.Scatter != nil && n.Scatter.Over == "" {
		p.addFix(setFix(at+".scatter", nil, "Run the step once"),
			n.at().field("scatter").field("over"), NoItems, "%s runs once per item, but has no list of items", n.label())
	}
	if e := n.Environment; e != nil && e.Empty() {
		p.addFix(setFix(at+".environment", nil, "Remove the environment"),
			n.at().field("environment"), Missing, "the environment has no packages yet: name one, such as `pandas==2.2.*`, or remove it")
	}
	for _, port := range n.Inputs {
		if !port.Optional && port.From == "" && !g.fed(n, port.Name) {
			p.addFix(setFix(at+".inputs."+port.Name+".optional", true, "Make the input optional"),
				n.at().field("inputs").field(port.Name), NotConnected, "nothing is connected to the input %s of %s", quote(port.Name), n.label())
		}
	}
	for _, port := range n.Outputs {
		if port.Path == "" {
			p.add(n.at().field("outputs").field(port.Name).field("path"), Missing, "the output %s of %s has no path", quote(port.Name), n.label())
		}
	}
}

// fed reports whether an edge carries files into the port.
func (g *Graph) fed(n *Node, port string) bool {
	for _, e := range g.incoming[n.ID] {
		if e.Carries() && e.TargetHandle == port {
			return true
		}
	}
	return false
}

// Warnings lists what is probably a mistake but does not keep a definition from
// running: required inputs that nothing uses, and variables that a command reads
// but that nothing sets.
func (g *Graph) Warnings() []Problem {
	var p problems
	used := g.usedInputs()
	for _, in := range g.Inputs {
		if in.Required && !used[in.Name] {
			p.addFix(setFix("inputs."+in.Name, nil, "Remove the input"),
				(*where)(nil).field("inputs").field(in.Name), UnusedInput, "no step uses the input %s", quote(in.Name))
		}
	}
	for _, n := range g.Nodes {
		if n.Type == Task {
			g.unset(n, &p)
		}
	}
	warnings := p.all()
	for i := range warnings {
		warnings[i].Warning = true
	}
	return warnings
}

// usedInputs are the inputs that ports and expressions name.
func (g *Graph) usedInputs() map[string]bool {
	used, read := map[string]bool{}, map[string]bool{"": true}
	for _, n := range g.Nodes {
		for _, port := range n.Inputs {
			used[port.From] = true
		}
		sources := []string{n.When}
		if n.Scatter != nil {
			sources = append(sources, n.Scatter.Over)
		}
		for _, src := range sources {
			if !read[src] {
				read[src] = true
				g.inputsIn(src, used)
			}
		}
	}
	return used
}

// inputsIn adds the inputs that an expression names. It goes by the types of the
// expression; in one that is not valid, every word may be the name of an input.
func (g *Graph) inputsIn(src string, used map[string]bool) {
	x := g.expressions[src]
	if x == nil || x.ast == nil {
		for _, word := range strings.FieldsFunc(src, func(r rune) bool { return r >= utf8.RuneSelf || !nameByte(byte(r)) }) {
			used[word] = true
		}
		return
	}
	ast := x.ast.NativeRep()
	celast.PreOrderVisit(ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.SelectKind {
			return
		}
		// Inputs that went through dyn() have no type left to go by.
		if t := ast.TypeMap()[e.AsSelect().Operand().ID()]; t == nil || t.Kind() == types.DynKind || t.TypeName() == inputsType {
			used[e.AsSelect().FieldName()] = true
		}
	}))
}

var (
	readVariable = regexp.MustCompile(`\b(INPUT|PARAM)_([A-Za-z_][A-Za-z0-9_]*)\b|\$\{?ITEM\b`)
	setVariable  = `(?m)(?:^|[\s;&|(])(?:export\s+)?%s=`
)

// unset notes the variables that a command reads and nothing sets. A variable
// that the command or the step's `env` sets is the author's own.
func (g *Graph) unset(n *Node, p *problems) {
	here := n.at().field("command")
	noted := map[string]bool{}
	for _, found := range readVariable.FindAllStringSubmatch(n.Command, 100) {
		variable, kind, name := strings.TrimLeft(found[0], "${"), found[1], found[2]
		if _, own := n.Env[variable]; own || noted[variable] || assigns(n.Command, variable) {
			continue
		}
		noted[variable] = true
		switch {
		case kind == "" && n.Scatter == nil:
			p.add(here, UnknownVariable, "the command reads $ITEM, but %s does not run once per item", n.label())
		case kind == "INPUT" && !g.hasPort(n, name):
			p.addFix(setFix("nodes."+n.ID+".inputs."+name, map[string]any{}, "Add the input %s to the step", quote(name)),
				here, UnknownVariable, "the command reads $%s, but %s has no input called %s", variable, n.label(), quote(name))
		case kind == "PARAM":
			if _, ok := g.Parameter(name); !ok {
				p.addFix(newParameter(name), here, UnknownVariable, "the command reads $%s, but there is no parameter called %s", variable, quote(name))
			}
		}
	}
}

func assigns(command, variable string) bool {
	assigned, err := regexp.MatchString(strings.Replace(setVariable, "%s", variable, 1), command)
	return err == nil && assigned
}

// hasPort reports whether a step has an input of this name, declared or by an
// edge. INPUT_<port>_LIST belongs to the port.
func (g *Graph) hasPort(n *Node, name string) bool {
	for _, port := range []string{name, strings.TrimSuffix(name, "_LIST")} {
		if _, declared := n.Input(port); declared || g.fed(n, port) {
			return true
		}
	}
	return false
}

// newInput is the fix for an input that is named but not declared.
func newInput(name string) *fault.Fix {
	return setFix("inputs."+name, map[string]any{"type": "files"}, "Create the input %s", quote(name))
}

// newParameter is the fix for a parameter that is named but not declared.
func newParameter(name string) *fault.Fix {
	return setFix("parameters."+name, map[string]any{"type": "string"}, "Create the parameter %s", quote(name))
}
