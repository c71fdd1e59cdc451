package crate

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// What the crate promises to be.
const (
	roCrate         = "https://w3id.org/ro/crate/1.1"
	workflowCrate   = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
	processRun      = "https://w3id.org/ro/wfrun/process/0.5"
	workflowRun     = "https://w3id.org/ro/wfrun/workflow/0.5"
	provenanceRun   = "https://w3id.org/ro/wfrun/provenance/0.5"
	runTerms        = "https://w3id.org/ro/terms/workflow-run/context"
	formalParameter = "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"
)

const (
	runID      = "#run"
	organizeID = "#organize"
	engineID   = "#engine"
	languageID = "#language"
	agentID    = "#agent"
)

// entity is one thing of the crate's graph.
type entity map[string]any

// ref points at an entity.
type ref struct {
	ID string `json:"@id"`
}

// description gathers the entities of a crate.
type description struct {
	run     runs.Run
	graph   *graph.Graph
	nodes   map[string]runs.Node
	inputs  []input
	outputs []runs.Listed
	at      time.Time

	fileIDs []string         // of the outputs
	taken   map[string][]ref // files, by the name of the workflow's input
	made    map[port][]ref   // files, by where they came from
	result  []ref            // files
	parts   []ref            // of the root
	list    []entity
}

type port struct{ node, name string }

func newDescription(r runs.Run, g *graph.Graph, nodes []runs.Node, inputs []input, outputs []runs.Listed, names []string, at time.Time) *description {
	d := &description{run: r, graph: g, nodes: map[string]runs.Node{}, inputs: inputs, outputs: outputs, at: at, taken: map[string][]ref{}, made: map[port][]ref{}}
	for _, n := range nodes {
		d.nodes[n.ID] = n
	}
	for _, name := range names {
		d.fileIDs = append(d.fileIDs, (&url.URL{Path: name}).EscapedPath())
	}
	return d
}

// document is the crate's metadata.
func (d *description) document() entity {
	d.describeInputs()
	values := d.describeParameters()
	d.describeOutputs()
	d.describeWorkflow()
	d.describeRun(values)
	root := entity{
		"@id": "./", "@type": "Dataset", "name": d.title(), "datePublished": stamp(d.at),
		"description": fmt.Sprintf("Run %d of the workflow %s, which %s.", d.run.Number, d.run.WorkflowName, ended(d.run.Status)),
		"conformsTo":  []ref{{processRun}, {workflowRun}, {provenanceRun}, {workflowCrate}},
		"hasPart":     append([]ref{{workflowFile}}, d.parts...), "mainEntity": ref{workflowFile}, "mentions": []ref{{runID}},
	}
	profiles := []entity{
		profile(processRun, "Process Run Crate", "0.5"), profile(workflowRun, "Workflow Run Crate", "0.5"),
		profile(provenanceRun, "Provenance Run Crate", "0.5"), profile(workflowCrate, "Workflow RO-Crate", "1.0"),
	}
	metadata := entity{"@id": metadataFile, "@type": "CreativeWork", "about": ref{"./"}, "conformsTo": []ref{{roCrate}, {workflowCrate}}}
	return entity{"@context": []string{roCrate + "/context", runTerms}, "@graph": slices.Concat([]entity{metadata, root}, profiles, d.list)}
}

func profile(id, name, version string) entity {
	return entity{"@id": id, "@type": "CreativeWork", "name": name, "version": version}
}

func (d *description) title() string {
	if d.run.Name != "" {
		return d.run.Name
	}
	return fmt.Sprintf("%s, run %d", d.run.WorkflowName, d.run.Number)
}

func (d *description) add(e entity) { d.list = append(d.list, e) }

// describeInputs names the files that the run was given. They are not in the crate:
// it says by address or hash what they were.
func (d *description) describeInputs() {
	seen := map[string]string{} // the key of what has an id
	for _, in := range d.inputs {
		for _, f := range in.files {
			id := inputID(f)
			for n := 2; seen[id] != "" && seen[id] != f.Key && addresses.Is(f.Key); n++ {
				id = fmt.Sprintf("%s#%d", inputID(f), n) // they differ in what is left out
			}
			d.taken[in.name] = append(d.taken[in.name], ref{id})
			if seen[id] != "" {
				continue
			}
			seen[id] = f.Key
			e := entity{"@id": id, "@type": kindOf(f.Folder), "name": path.Base(f.Key), "exampleOfWork": ref{"#input/" + in.name}}
			if f.Name != "" {
				e["name"] = f.Name
			}
			if f.SHA256 != "" {
				e["sha256"] = f.SHA256
			}
			if !f.Gone && f.Size >= 0 { // not every server tells how large a file is
				e["contentSize"] = strconv.FormatInt(f.Size, 10)
			}
			d.add(e)
			d.parts = append(d.parts, ref{id})
		}
	}
}

// inputID is the address of a file, without what may be a password in it, or its hash.
func inputID(f runs.GivenFile) string {
	if u, err := url.Parse(f.Key); err == nil && u.IsAbs() && u.Host != "" {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	if f.SHA256 != "" {
		return "urn:sha256:" + f.SHA256
	}
	return "urn:millrace:" + (&url.URL{Path: f.Key}).EscapedPath()
}

// describeParameters names the values that the run was given.
func (d *description) describeParameters() (values []ref) {
	var given map[string]json.RawMessage
	_ = json.Unmarshal(d.run.Parameters, &given) // stored by us
	for _, name := range slices.Sorted(maps.Keys(given)) {
		id := "#value/" + name
		d.add(entity{"@id": id, "@type": "PropertyValue", "name": name, "value": value(given[name]), "exampleOfWork": ref{"#parameter/" + name}})
		values = append(values, ref{id})
	}
	return values
}

// value is a parameter's as text, as what it may be is no more than that in a crate.
func value(v json.RawMessage) string {
	var s *string
	if json.Unmarshal(v, &s) == nil && s != nil {
		return *s
	}
	return string(v)
}

func (d *description) describeOutputs() {
	for i, o := range d.outputs {
		from := port{o.Node, o.Port}
		d.add(entity{
			"@id": d.fileIDs[i], "@type": kindOf(o.Folder != nil), "name": o.Name, "contentSize": strconv.FormatInt(o.Size, 10),
			"encodingFormat": o.ContentType, "sha256": o.SHA256, "exampleOfWork": ref{d.outputID(from)},
		})
		d.made[from] = append(d.made[from], ref{d.fileIDs[i]})
		d.result = append(d.result, ref{d.fileIDs[i]})
		d.parts = append(d.parts, ref{d.fileIDs[i]})
	}
}

func kindOf(folder bool) string {
	if folder {
		return "Dataset"
	}
	return "File"
}

// outputID is what the workflow calls what comes out of a port.
func (d *description) outputID(from port) string {
	for _, o := range d.graph.Outputs {
		if o.Node == from.node && o.Port == from.name {
			return "#output/" + o.Name
		}
	}
	return "#output/" + from.node + "." + from.name
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// ended says in a sentence how far a run has come.
func ended(s lifecycle.Status) string {
	switch s {
	case lifecycle.Queued:
		return "has not begun"
	case lifecycle.Running:
		return "is not over"
	default:
		return "was " + string(s)
	}
}
