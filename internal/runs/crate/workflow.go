package crate

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// describeWorkflow says what there was to do: the definition, its steps, and what
// goes in and out.
func (d *description) describeWorkflow() {
	var steps, tools []ref
	for i, n := range d.graph.Order() {
		steps, tools = append(steps, ref{"#step/" + n.ID}), append(tools, ref{"#tool/" + n.ID})
		d.add(entity{"@id": "#step/" + n.ID, "@type": "HowToStep", "position": strconv.Itoa(i), "name": stepName(n), "workExample": ref{"#tool/" + n.ID}})
		d.add(entity{"@id": "#tool/" + n.ID, "@type": "SoftwareApplication", "name": stepName(n), "description": "The command of the step " + n.ID + " in " + workflowFile + "."})
	}
	d.add(entity{
		"@id": workflowFile, "@type": []string{"File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"}, "name": d.run.WorkflowName,
		"version": strconv.Itoa(d.run.Revision), "encodingFormat": "application/json", "programmingLanguage": ref{languageID},
		"input": unique(d.formalInputs()), "output": unique(d.formalOutputs()), "step": unique(steps), "hasPart": unique(tools),
	})
	d.add(entity{"@id": languageID, "@type": "ComputerLanguage", "name": "Millrace definition"})
}

func stepName(n *graph.Node) string {
	if n.Name != "" {
		return n.Name
	}
	return n.ID
}

func (d *description) formalInputs() (list []ref) {
	for _, in := range d.graph.Inputs {
		kind := kindOf(in.Directory)
		if in.Many {
			kind = "Collection"
		}
		list = append(list, d.formal("#input/"+in.Name, in.Name, kind, in.Required))
	}
	var given map[string]json.RawMessage
	_ = json.Unmarshal(d.run.Parameters, &given) // stored by us
	names := slices.Collect(maps.Keys(given))
	required := map[string]bool{}
	for _, p := range d.graph.Parameters {
		names, required[p.Name] = append(names, p.Name), p.Required
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		list = append(list, d.formal("#parameter/"+name, name, valueKind(given[name]), required[name]))
	}
	return list
}

// valueKind is the type of a value in the words of schema.org.
func valueKind(v json.RawMessage) string {
	var b bool
	var whole int64
	var number float64
	switch {
	case v == nil, string(v) == "null":
		return "Text"
	case json.Unmarshal(v, &b) == nil:
		return "Boolean"
	case json.Unmarshal(v, &whole) == nil:
		return "Integer"
	case json.Unmarshal(v, &number) == nil:
		return "Float"
	default:
		return "Text"
	}
}

// formalOutputs are those that the definition names, or of which there are files.
func (d *description) formalOutputs() (list []ref) {
	seen := map[string]bool{}
	add := func(from port, name string) {
		if id := d.outputID(from); !seen[id] {
			seen[id] = true
			list = append(list, d.formal(id, name, kindOf(d.isFolder(from)), false))
		}
	}
	for _, o := range d.graph.Outputs {
		add(port{o.Node, o.Port}, o.Name)
	}
	for _, o := range d.outputs {
		add(port{o.Node, o.Port}, o.Node+"."+o.Port)
	}
	return list
}

// isFolder reports whether what comes out of a port is a folder.
func (d *description) isFolder(from port) bool {
	n, there := d.graph.Node(from.node)
	return there && slices.ContainsFunc(n.Outputs, func(o graph.OutPort) bool { return o.Name == from.name && o.Directory })
}

func (d *description) formal(id, name, kind string, required bool) ref {
	d.add(entity{"@id": id, "@type": "FormalParameter", "conformsTo": ref{formalParameter}, "name": name, "additionalType": kind, "valueRequired": strconv.FormatBool(required)})
	return ref{id}
}

// describeRun says what was done: by whom, when, with what result, step by step.
func (d *description) describeRun(values []ref) {
	var given []ref
	for _, in := range d.inputs {
		given = append(given, d.taken[in.name]...)
	}
	agent := entity{"@id": agentID, "@type": "Person", "name": d.run.Starter.Name}
	if t := d.run.Starter.Type; t != "user" && t != "guest" {
		agent["@type"] = "SoftwareApplication"
	}
	d.add(agent)
	d.add(entity{"@id": engineID, "@type": "SoftwareApplication", "name": "Millrace"})
	run := entity{
		"@id": runID, "@type": "CreateAction", "name": d.title(), "identifier": string(d.run.ID), "instrument": ref{workflowFile}, "agent": ref{agentID},
		"object": unique(append(given, values...)), "result": unique(d.result), "actionStatus": status(d.run.Status),
	}
	times(run, d.run.StartedAt, d.run.FinishedAt)
	if d.run.ErrorMessage != "" {
		run["error"] = d.run.ErrorMessage
	}
	d.add(run)
	organize := entity{"@id": organizeID, "@type": "OrganizeAction", "name": "Run of the workflow by Millrace", "instrument": ref{engineID}, "agent": ref{agentID}, "object": unique(d.describeSteps()), "result": ref{runID}}
	times(organize, d.run.StartedAt, d.run.FinishedAt)
	d.add(organize)
}

// describeSteps says of each step that has begun what it did.
func (d *description) describeSteps() (controls []ref) {
	for _, n := range d.graph.Order() {
		state, known := d.nodes[n.ID]
		if !known || state.StartedAt.IsZero() {
			continue
		}
		action := entity{"@id": "#action/" + n.ID, "@type": "CreateAction", "name": stepName(n), "instrument": ref{"#tool/" + n.ID}, "object": d.read(n), "result": d.wrote(n), "actionStatus": nodeStatus(state.State)}
		times(action, state.StartedAt, state.FinishedAt)
		if n.Image != "" {
			action["containerImage"] = ref{"#image/" + n.ID}
			d.add(entity{"@id": "#image/" + n.ID, "@type": "ContainerImage", "additionalType": ref{"https://w3id.org/ro/terms/workflow-run#DockerImage"}, "name": n.Image})
		}
		d.add(action)
		d.add(entity{"@id": "#control/" + n.ID, "@type": "ControlAction", "name": "Step " + stepName(n), "instrument": ref{"#step/" + n.ID}, "object": ref{"#action/" + n.ID}})
		controls = append(controls, ref{"#control/" + n.ID})
	}
	return controls
}

// read are the files that a step was given, as far as the crate knows them.
func (d *description) read(n *graph.Node) (list []ref) {
	for _, in := range n.Inputs {
		list = append(list, d.taken[in.From]...)
	}
	for _, e := range d.graph.Incoming(n.ID) {
		if e.Carries() {
			list = append(list, d.made[port{e.Source, e.SourceHandle}]...)
		}
	}
	return unique(list)
}

func (d *description) wrote(n *graph.Node) (list []ref) {
	for _, out := range n.Outputs {
		list = append(list, d.made[port{n.ID, out.Name}]...)
	}
	return unique(list)
}

// unique drops repetitions; it is never nil, which JSON would call null.
func unique(list []ref) []ref {
	seen, kept := map[ref]bool{}, []ref{}
	for _, r := range list {
		if !seen[r] {
			seen[r] = true
			kept = append(kept, r)
		}
	}
	return kept
}

func times(e entity, started, finished time.Time) {
	if !started.IsZero() {
		e["startTime"] = stamp(started)
	}
	if !finished.IsZero() {
		e["endTime"] = stamp(finished)
	}
}

func status(s lifecycle.Status) ref {
	switch {
	case s == lifecycle.Completed:
		return ref{"http://schema.org/CompletedActionStatus"}
	case s.Terminal():
		return ref{"http://schema.org/FailedActionStatus"}
	default:
		return ref{"http://schema.org/ActiveActionStatus"}
	}
}

func nodeStatus(s lifecycle.NodeState) ref {
	switch s {
	case lifecycle.NodeSucceeded:
		return status(lifecycle.Completed)
	case lifecycle.NodeFailed, lifecycle.NodeCancelled:
		return status(lifecycle.Failed)
	default:
		return status(lifecycle.Running)
	}
}
