// Package pipeline says how a pipeline that Nextflow or Snakemake carries out is
// launched: as one step, whose command calls the engine by a variable. It is pure.
package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/graph"
)

// Engine carries out a pipeline inside a step of ours.
type Engine string

// The engines.
const (
	Nextflow  Engine = "nextflow"
	Snakemake Engine = "snakemake"
)

// Engines are all of them.
var Engines = []Engine{Nextflow, Snakemake}

// Title is what people call an engine.
func (e Engine) Title() string {
	switch e {
	case Nextflow:
		return "Nextflow"
	case Snakemake:
		return "Snakemake"
	}
	return string(e) // of a reported run, which may have another engine
}

// Variable names the variable by which a command calls the engine. A command that
// mentions it runs where the engine is installed.
func (e Engine) Variable() string { return strings.ToUpper(string(e)) + "_PROGRAM" }

// Install says how an operator gets an engine.
func Install(e Engine) string {
	if e == Nextflow {
		return "put the nextflow program into /usr/local/bin with Java 17 or later beside it, or into the folder bin of one that --nextflow names"
	}
	return "python3 -m venv /opt/snakemake && /opt/snakemake/bin/pip install 'snakemake>=9', and start the server with --snakemake /opt/snakemake"
}

// What a command finds that mentions it.
const (
	ParametersVariable = "PARAMS_FILE" // a JSON file with the values of all parameters
	EventsVariable     = "EVENTS_FILE" // a file that it may report its own steps in
)

// Head is the id of the step that a pipeline is launched by.
const Head = "pipeline"

// Mentions reports whether a node's command or one of its variables does. What the
// node sets itself is its own: nothing is brought for it.
func Mentions(n *graph.Node, variable string) bool {
	if _, own := n.Env[variable]; own {
		return false
	}
	return strings.Contains(n.Command, variable) ||
		slices.ContainsFunc(slices.Collect(maps.Values(n.Env)), func(v string) bool { return strings.Contains(v, variable) })
}

// LaunchedBy is the engine that a node calls; empty: none.
func LaunchedBy(n *graph.Node) Engine {
	for _, e := range Engines {
		if Mentions(n, e.Variable()) {
			return e
		}
	}
	return ""
}

// Of is the engine whose pipeline a workflow launches; empty: none.
func Of(g *graph.Graph) Engine {
	for _, n := range g.Nodes {
		if e := LaunchedBy(n); e != "" {
			return e
		}
	}
	return ""
}
