package crate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// The states of an action. One that goes on has none.
const (
	completed = "http://schema.org/CompletedActionStatus"
	failed    = "http://schema.org/FailedActionStatus"
)

// describeRun says what was done: by whom, when, with what result, step by step.
func (d *description) describeRun(values []ref) {
	var given []ref
	for _, in := range d.inputs {
		given = append(given, d.taken[in.name]...)
	}
	e := entity{
		"@id": runID, "@type": "CreateAction", "name": d.title(), "identifier": string(d.run.ID), "url": d.runURL(), "instrument": ref{workflowFile}, "agent": ref{d.agentID()},
		"description": d.startedBy(),
	}
	e.point("object", append(given, values...))
	e.point("result", d.result)
	during(e, d.run.StartedAt, d.run.FinishedAt)
	why, _, _ := strings.Cut(d.run.ErrorMessage, "\n") // what tasks printed is not for everybody
	setStatus(e, statusOf(d.run.Status), why)
	d.add(e)
	var controls []ref
	for _, n := range d.graph.Order() {
		controls = append(controls, d.describeStepActions(n)...)
	}
	if len(controls) == 0 {
		return
	}
	engine := entity{"@id": home, "@type": "SoftwareApplication", "name": "Millrace", "url": home, "softwareVersion": d.version}
	if d.run.Kind == runs.Reported {
		engine = d.otherEngine()
	}
	d.describeOrganizing(organizeID, engine, runID, controls, func(e entity) { during(e, d.run.StartedAt, d.run.FinishedAt) })
}

// describeOrganizing says which engine carried out the steps of an action.
func (d *description) describeOrganizing(id string, engine entity, result string, controls []ref, more func(entity)) {
	e := entity{"@id": id, "@type": "OrganizeAction", "name": fmt.Sprintf("Execution by %v", engine["name"]), "instrument": d.add(engine), "agent": ref{d.agentID()}, "result": ref{result}}
	e.point("object", controls)
	more(e)
	d.add(e)
}

// otherEngine is the one that carried out a pipeline.
func (d *description) otherEngine() entity {
	engine := pipeline.Engine(d.run.Engine)
	e := entity{"@id": d.runURL() + "#engine", "@type": "SoftwareApplication", "name": engine.Title()}
	if url := engineURLs[engine]; url != "" {
		e["@id"], e["url"] = url, url
	}
	if d.origin.EngineVersion != "" {
		e["softwareVersion"] = d.origin.EngineVersion
	}
	return e
}

var engineURLs = map[pipeline.Engine]string{pipeline.Nextflow: "https://www.nextflow.io", pipeline.Snakemake: "https://snakemake.github.io"}

// startedBy says in a sentence how the run came about.
func (d *description) startedBy() string {
	name := publicName(d.run.Starter.Name, "a member of the team")
	switch d.run.Starter.Type {
	case runs.BySchedule:
		return "Started by a schedule of " + name + "."
	case runs.ByTrigger:
		return "Started by a trigger of " + name + "."
	case "guest":
		return "Started by " + publicName(d.run.Starter.Name+", a guest", "a guest") + "."
	default:
		return "Started by " + name + "."
	}
}

// describeStepActions says of a step that has begun what it did, and of the pipeline
// that it launched.
func (d *description) describeStepActions(n *graph.Node) (controls []ref) {
	step, own := d.steps[n.ID], n
	if d.run.Kind == runs.Reported {
		own = nil // what is known of it is in its tasks
	}
	actions := d.describeTasks(step, own)
	if len(actions) == 0 {
		return nil
	}
	var inner []ref
	for _, p := range d.launchedBy(n.ID) {
		if list := d.describeTasks(p, nil); len(list) > 0 {
			inner = append(inner, d.describeControl(p.ID, p.Name, list))
		}
	}
	if len(inner) > 0 {
		d.describeOrganizing(organizeID+"/"+n.ID, d.otherEngine(), actions[0].ID, inner, func(e entity) { during(e, step.StartedAt, step.FinishedAt) })
	}
	return []ref{d.describeControl(n.ID, stepName(n), actions)}
}

func (d *description) describeControl(id, name string, actions []ref) ref {
	e := entity{"@id": "#control/" + id, "@type": "ControlAction", "name": "Execution of " + name, "instrument": ref{"#step/" + id}}
	e.point("object", actions)
	return d.add(e)
}

// describeTasks says what was done for each item of a step, or for all of them where
// they are too many. n is nil for a step of another engine.
func (d *description) describeTasks(step runs.Node, n *graph.Node) (list []ref) {
	ofStep := d.tasks[step.ID]
	if ofStep == nil || ofStep.many || len(ofStep.items) == 0 {
		if step.StartedAt.IsZero() {
			return nil
		}
		return []ref{d.describeAction(d.actionOf(step, n))}
	}
	for _, t := range ofStep.items {
		if a := d.itemAction(step, n, t); !a.begin.IsZero() {
			list = append(list, d.describeAction(a))
		}
	}
	return list
}

// action is what was done for a step or for one of its items.
type action struct {
	id, name, about string
	step            string
	begin, end      time.Time
	status          string
	why             string // it failed
	image           string
	object, result  []ref
}

// actionOf is what was done for a whole step.
func (d *description) actionOf(step runs.Node, n *graph.Node) action {
	a := action{id: step.ID, name: step.Name, about: "The step " + step.ID + ".", step: step.ID, begin: step.StartedAt, end: step.FinishedAt, status: statusOfNode(step.State)}
	if n != nil {
		a.name, a.image, a.object, a.result = stepName(n), n.Image, d.read(n), d.wrote(n, nil)
	}
	if step.ExitCode != nil {
		a.why = fmt.Sprintf("The command exited with status %d.", *step.ExitCode)
	}
	return a
}

// itemAction is what was done for one item, or for the step where it has no items.
func (d *description) itemAction(step runs.Node, n *graph.Node, t runs.TraceTask) action {
	a := d.actionOf(step, n)
	a.begin, a.end, a.status, a.why, a.image = cmp.Or(t.Start, t.Submit), t.Complete, statusOfTask(t.Status), "", cmp.Or(t.Container, a.image)
	if t.Exit != nil {
		a.why = fmt.Sprintf("The command exited with status %d.", *t.Exit)
	}
	if n != nil && n.Scatter == nil {
		return a
	}
	number := strconv.Itoa(t.Shard)
	a.id += "/" + number
	a.name += ", " + cmp.Or(t.Tag, number)
	a.about = "Item " + number + " of the step " + step.ID + "."
	if n != nil {
		a.object, a.result = append(a.object, d.itemOf(step.ID, t)...), d.wrote(n, &t.Shard)
	}
	return a
}

// itemOf is the item of a task: a file that is known, or a value.
func (d *description) itemOf(step string, t runs.TraceTask) []ref {
	if t.Item == "" {
		return nil
	}
	var text string
	if json.Unmarshal([]byte(t.Item), &text) == nil {
		if file, known := d.byKey[text]; known {
			return []ref{file}
		}
	}
	return []ref{d.add(entity{"@id": "#item/" + step + "/" + strconv.Itoa(t.Shard), "@type": "PropertyValue", "name": "ITEM", "value": value(addresses.ShownIn(json.RawMessage(t.Item)))})}
}

func (d *description) describeAction(a action) ref {
	tool := d.toolID(a.step)
	e := entity{
		"@id": "#action/" + a.id, "@type": "CreateAction", "name": a.name, "description": a.about, "instrument": ref{tool}, "agent": ref{d.agentID()},
	}
	e.point("object", a.object)
	e.point("result", a.result)
	if a.end.IsZero() {
		a.end = d.run.FinishedAt // it ended with its run at the latest
	}
	if a.end.Before(a.begin) && !a.end.IsZero() {
		a.end = a.begin // by the clock of another machine
	}
	during(e, a.begin, a.end)
	setStatus(e, a.status, a.why)
	if image, ok := d.describeImage(a.image); ok {
		e["containerImage"] = image
	}
	at := d.add(e)
	d.ran[tool] = true
	d.actions = append(d.actions, at)
	return at
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
	return list
}

// wrote are the files that a step made, or those of one of its items.
func (d *description) wrote(n *graph.Node, item *int) (list []ref) {
	for _, out := range n.Outputs {
		at := port{n.ID, out.Name}
		if item == nil {
			list = append(list, d.made[at]...)
			continue
		}
		list = append(list, d.madeBy[itemPort{at, *item}]...)
	}
	return list
}

func during(e entity, begin, end time.Time) {
	if !begin.IsZero() {
		e["startTime"] = stamp(begin)
	}
	if !end.IsZero() {
		e["endTime"] = stamp(end)
	}
}

// setStatus notes how an action ended, and of one that failed why.
func setStatus(e entity, status, why string) {
	if status == "" {
		return
	}
	e["actionStatus"] = status
	if status == failed && why != "" {
		e["error"] = why
	}
}

func statusOf(s lifecycle.Status) string {
	switch {
	case s == lifecycle.Completed:
		return completed
	case s.Terminal():
		return failed
	default:
		return ""
	}
}

func statusOfNode(s lifecycle.NodeState) string {
	switch {
	case s == lifecycle.NodeSucceeded:
		return completed
	case s.Terminal():
		return failed
	default:
		return ""
	}
}

func statusOfTask(s runs.TraceStatus) string {
	switch s {
	case runs.TraceCompleted, runs.TraceCached:
		return completed
	case runs.TraceFailed, runs.TraceAborted:
		return failed
	default:
		return ""
	}
}
