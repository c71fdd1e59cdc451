package crate

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/runs"
)

// describeWorkflow says what there was to do: the definition, its steps, and what
// goes in and out.
func (d *description) describeWorkflow() {
	var steps, tools []ref
	for i, n := range d.graph.Order() {
		tool := d.toolID(n.ID)
		steps = append(steps, d.describeStep(n.ID, stepName(n), i))
		if d.ran[tool] { // what did nothing is no part of what was executed
			tools = append(tools, ref{tool})
		}
		if processes := d.launchedBy(n.ID); slices.ContainsFunc(processes, func(p runs.Node) bool { return d.ran[d.toolID(p.ID)] }) {
			d.describePipeline(n, processes)
			continue
		}
		d.add(entity{
			"@id": tool, "@type": "SoftwareApplication", "name": stepName(n), "url": tool, "softwareVersion": cmp.Or(imageOf(n.Image).version(), d.codeVersion()),
			"description": "What the step " + n.ID + " in " + workflowFile + " executes.",
		})
	}
	w := entity{
		"@id": workflowFile, "@type": []string{"File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"}, "name": d.run.WorkflowName, "url": d.workflowURL(),
		"conformsTo": ref{computedWorkflow}, "license": d.licenseRef(), "version": strconv.Itoa(d.run.Revision), "encodingFormat": "application/json", "programmingLanguage": ref{languageID},
	}
	w.point("input", d.formalInputs())
	w.point("output", d.formalOutputs())
	w.point("step", steps)
	w.point("hasPart", tools)
	d.add(w)
	d.add(entity{"@id": languageID, "@type": "ComputerLanguage", "name": "Millrace definition", "url": home})
}

// describeStep says of a step, or of a process of a pipeline, where it is in the order.
func (d *description) describeStep(id, name string, position int) ref {
	return d.add(entity{"@id": "#step/" + id, "@type": "HowToStep", "position": strconv.Itoa(position), "name": name, "workExample": ref{d.toolID(id)}})
}

func stepName(n *graph.Node) string { return cmp.Or(n.Name, n.ID) }

// describePipeline says of a step that launches a pipeline what its processes are.
func (d *description) describePipeline(n *graph.Node, processes []runs.Node) {
	var steps, tools []ref
	for i, p := range processes {
		steps = append(steps, d.describeStep(p.ID, p.Name, i))
		tool := d.toolID(p.ID)
		version := d.codeVersion()
		if step := d.tasks[p.ID]; step != nil && len(step.items) > 0 {
			version = cmp.Or(imageOf(step.items[0].Container).version(), version)
		}
		d.add(entity{"@id": tool, "@type": "SoftwareApplication", "name": p.Name, "url": tool, "softwareVersion": version, "description": "What the process " + p.Name + " of the pipeline executes."})
		if d.ran[tool] {
			tools = append(tools, ref{tool})
		}
	}
	engine := pipeline.Engine(d.run.Engine)
	tool := d.toolID(n.ID)
	e := entity{
		"@id": tool, "@type": []string{"SoftwareSourceCode", "ComputationalWorkflow", "HowTo"}, "name": stepName(n), "url": tool, "version": d.codeVersion(),
		"programmingLanguage": ref{languageID + "/" + d.run.Engine}, "description": "The pipeline that the step " + n.ID + " launches with " + engine.Title() + ".",
	}
	e.point("step", steps)
	e.point("hasPart", tools)
	d.add(e)
	d.add(entity{"@id": languageID + "/" + d.run.Engine, "@type": "ComputerLanguage", "name": engine.Title()})
}

// launchedBy are the processes of the pipeline that a step launched.
func (d *description) launchedBy(step string) (list []runs.Node) {
	for _, n := range d.launched {
		if n.LaunchedBy == step {
			list = append(list, n)
		}
	}
	return list
}

// toolID is the address of the page that shows what a step executes.
func (d *description) toolID(step string) string {
	page := d.workflowURL()
	if _, known := d.graph.Node(step); !known || d.run.Kind == runs.Reported {
		page = d.runURL()
	}
	return page + "?node=" + url.QueryEscape(step)
}

// codeVersion is the version of the code of the steps: the commit, or the revision of the
// definition that has their commands.
func (d *description) codeVersion() string { return cmp.Or(d.run.Commit, strconv.Itoa(d.run.Revision)) }

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
		kind := kindOf(d.isFolder(from))
		if d.several(from) {
			kind = "Collection"
		}
		if id := d.outputID(from); !seen[id] {
			seen[id] = true
			list = append(list, d.formal(id, name, kind, false))
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
	return d.add(entity{"@id": id, "@type": "FormalParameter", "conformsTo": ref{formalParameter}, "name": name, "additionalType": kind, "valueRequired": strconv.FormatBool(required)})
}

// image is a container image, as a reference names it.
type image struct{ reference, registry, name, tag, digest string }

// imageOf reads a reference. What names a file or an address is an image of Apptainer,
// which has no registry.
func imageOf(reference string) image {
	i := image{reference: reference}
	rest := strings.TrimPrefix(reference, "docker://")
	if strings.HasPrefix(rest, "/") || strings.Contains(rest, "://") || strings.HasSuffix(rest, ".sif") || strings.HasSuffix(rest, ".img") {
		i.name = rest
		return i
	}
	rest, i.digest, _ = strings.Cut(rest, "@")
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		rest, i.tag = rest[:colon], rest[colon+1:]
	}
	i.registry, i.name = "docker.io", rest
	if host, path, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		i.registry, i.name = host, path
	}
	return i
}

// version tells an image from others of its name.
func (i image) version() string { return cmp.Or(i.tag, i.digest) }

// describeImage is the entity of an image; ok is false where there is none.
func (d *description) describeImage(reference string) (at ref, ok bool) {
	if reference == "" {
		return ref{}, false
	}
	at = ref{"#image/" + url.PathEscape(reference)}
	if d.images[reference] {
		return at, true
	}
	d.images[reference] = true
	i := imageOf(reference)
	e := entity{"@id": at.ID, "@type": "ContainerImage", "name": i.name, "additionalType": ref{"https://w3id.org/ro/terms/workflow-run#SIFImage"}}
	if i.registry != "" {
		e["additionalType"], e["registry"] = ref{"https://w3id.org/ro/terms/workflow-run#DockerImage"}, i.registry
	}
	if i.tag != "" {
		e["tag"] = i.tag
	}
	if sum, found := strings.CutPrefix(i.digest, "sha256:"); found {
		e["sha256"] = sum
	}
	return d.add(e), true
}
