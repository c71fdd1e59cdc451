package crate

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/license"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// What the crate promises to be.
const (
	roCrate          = "https://w3id.org/ro/crate/1.1"
	workflowCrate    = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
	processRun       = "https://w3id.org/ro/wfrun/process/0.5"
	workflowRun      = "https://w3id.org/ro/wfrun/workflow/0.5"
	provenanceRun    = "https://w3id.org/ro/wfrun/provenance/0.5"
	runTerms         = "https://w3id.org/ro/terms/workflow-run/context"
	formalParameter  = "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"
	computedWorkflow = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
)

// home is where Millrace is developed.
const home = "https://github.com/millrace/millrace"

const (
	rootID      = "./"
	runID       = "#run"
	organizeID  = "#organize"
	languageID  = "#language"
	noLicenseID = "#no-license"
)

// entity is one thing of the crate's graph.
type entity map[string]any

// ref points at an entity.
type ref struct {
	ID string `json:"@id"`
}

// description gathers the entities of a crate.
type description struct {
	contents

	graph    *graph.Graph
	steps    map[string]runs.Node
	launched []runs.Node // processes of a pipeline that a step launched

	paths    map[string]string  // of outputs in the crate, by their keys
	taken    map[string][]ref   // files or their collection, by the name of the workflow's input
	made     map[port][]ref     // the same, by where they came from
	madeBy   map[itemPort][]ref // files, by the item that made them
	byKey    map[string]ref     // files, by the keys that items have
	result   []ref              // of the run
	actions  []ref              // of steps
	ran      map[string]bool    // ids of tools that did something
	images   map[string]bool    // names of those that are described
	parts    []ref              // of the root
	mentions []ref              // of the root
	list     []entity
}

type port struct{ node, name string }

type itemPort struct {
	port
	item int
}

func newDescription(c contents, g *graph.Graph, paths []string) *description {
	d := &description{
		contents: c, graph: g, steps: map[string]runs.Node{}, paths: map[string]string{}, taken: map[string][]ref{}, made: map[port][]ref{},
		madeBy: map[itemPort][]ref{}, byKey: map[string]ref{}, ran: map[string]bool{}, images: map[string]bool{},
	}
	for _, n := range c.nodes {
		d.steps[n.ID] = n
		if n.LaunchedBy != "" {
			d.launched = append(d.launched, n)
		}
	}
	for i, o := range c.outputs {
		d.paths[o.Key] = (&url.URL{Path: paths[i]}).EscapedPath()
	}
	return d
}

// document is the crate's metadata.
func (d *description) document() entity {
	d.describeInputs()
	values := d.describeParameters()
	d.describeOutputs()
	d.describeRun(values)
	d.describeWorkflow()
	d.describeTeam()
	root := entity{
		"@id": rootID, "@type": "Dataset", "name": d.title(), "datePublished": stamp(d.at),
		"description": d.about(),
		"license":     d.describeLicense(), "author": d.author(), "publisher": ref{d.teamID()}, "conformsTo": d.describeProfiles(),
		"hasPart": append([]ref{{workflowFile}, {readmeFile}}, d.parts...), "mainEntity": ref{workflowFile},
	}
	root.point("mentions", slices.Concat([]ref{{runID}}, d.actions, d.mentions))
	d.add(entity{"@id": readmeFile, "@type": "File", "name": "What this is", "about": ref{rootID}, "encodingFormat": "text/markdown"})
	metadata := entity{"@id": metadataFile, "@type": "CreativeWork", "about": ref{rootID}, "conformsTo": []ref{{roCrate}, {workflowCrate}}}
	return entity{"@context": []string{roCrate + "/context", runTerms}, "@graph": slices.Concat([]entity{metadata, root}, d.list)}
}

// describeProfiles names what the crate conforms to. Where no step has begun, there is
// no provenance of steps.
func (d *description) describeProfiles() []ref {
	list := []entity{profile(processRun, "Process Run Crate", "0.5"), profile(workflowRun, "Workflow Run Crate", "0.5"), profile(workflowCrate, "Workflow RO-Crate", "1.0")}
	if len(d.actions) > 0 {
		list = append(list, profile(provenanceRun, "Provenance Run Crate", "0.5"))
	}
	var refs []ref
	for _, e := range list {
		refs = append(refs, d.add(e))
	}
	return refs
}

func profile(id, name, version string) entity {
	return entity{"@id": id, "@type": "CreativeWork", "name": name, "version": version}
}

// describeLicense names the license of the workflow, or says that there is none.
func (d *description) describeLicense() ref {
	id, at := d.origin.License, d.licenseRef().ID
	if id == "" {
		return d.add(entity{
			"@id": at, "@type": "CreativeWork", "name": "No license stated",
			"description": "The authors have not said under which license others may use this. Ask them before you do.",
		})
	}
	return d.add(entity{"@id": at, "@type": "CreativeWork", "name": id, "identifier": id, "url": at})
}

// licenseRef points at what describeLicense describes.
func (d *description) licenseRef() ref {
	if d.origin.License == "" {
		return ref{noLicenseID}
	}
	return ref{license.URL(d.origin.License)}
}

// readme says to people what is in the crate.
func (d *description) readme() []byte {
	return []byte("# " + d.title() + "\n\n" + d.about() + " " + d.startedBy() + "\n\n" +
		"This is a [Workflow Run RO-Crate](https://www.researchobject.org/workflow-run-crate/). The outputs of the run are in folders that are named after\n" +
		"their steps. `" + workflowFile + "` is the definition of the workflow. `" + metadataFile + "` says what was executed, when, on what and with what\n" +
		"result. The inputs are named there and are not part of the crate.\n")
}

// about says in a sentence what was run.
func (d *description) about() string {
	return fmt.Sprintf("Run %d of the workflow %s, which %s.", d.run.Number, d.run.WorkflowName, ended(d.run.Status))
}

// describeTeam names the team, and who started the run or in whose name it was started.
func (d *description) describeTeam() {
	d.add(entity{"@id": d.teamID(), "@type": "Organization", "name": publicName(d.origin.Team, "a team"), "url": d.base + "/"})
	agent := entity{"@id": d.agentID(), "@type": "Person", "name": publicName(d.run.Starter.Name, "a guest")}
	if d.run.Starter.Type != "guest" {
		agent["name"], agent["affiliation"] = publicName(d.run.Starter.Name, "a member of the team"), ref{d.teamID()}
	}
	d.add(agent)
}

// publicName is a name, or other words for one that has an email address in it: that is what
// an account without a name is called, and the first team of that account.
func publicName(name, instead string) string {
	if strings.Contains(name, "@") {
		return instead
	}
	return name
}

func (d *description) teamID() string { return "urn:millrace:" + string(d.run.Team) }

func (d *description) agentID() string {
	return "urn:millrace:" + cmp.Or(string(d.run.For), d.run.Starter.ID, "somebody")
}

// author is who answers for the crate: the team where a guest started the run.
func (d *description) author() ref {
	if d.run.Starter.Type == "guest" {
		return ref{d.teamID()}
	}
	return ref{d.agentID()}
}

func (d *description) title() string {
	if d.run.Name != "" {
		return d.run.Name
	}
	return fmt.Sprintf("%s, run %d", d.run.WorkflowName, d.run.Number)
}

// point has a field point at entities, of which it may be one or none.
func (e entity) point(field string, at []ref) {
	switch at = unique(at); len(at) {
	case 0:
	case 1:
		e[field] = at[0]
	default:
		e[field] = at
	}
}

// add puts an entity into the graph.
func (d *description) add(e entity) ref {
	d.list = append(d.list, e)
	id, _ := e["@id"].(string)
	return ref{id}
}

func (d *description) runURL() string { return d.base + "/runs/" + string(d.run.ID) }

func (d *description) workflowURL() string { return d.base + "/workflows/" + string(d.run.Workflow) }

// collection describes several files that belong together, and that the root mentions.
func (d *description) collection(id, name string, files []ref, also entity) []ref {
	if len(files) == 0 {
		return nil
	}
	e := entity{"@id": id, "@type": "Collection", "name": name, "mainEntity": files[0]}
	e.point("hasPart", files)
	for field, v := range also {
		e[field] = v
	}
	at := d.add(e)
	d.mentions = append(d.mentions, at)
	return []ref{at}
}

// unique drops repetitions.
func unique(list []ref) (kept []ref) {
	seen := map[ref]bool{}
	for _, r := range list {
		if !seen[r] {
			seen[r] = true
			kept = append(kept, r)
		}
	}
	return kept
}

// stamp is a time as the profiles want it, with an offset in place of Z.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05-07:00") }

// ended says in a sentence how far a run has come.
func ended(s lifecycle.Status) string {
	switch s {
	case lifecycle.Queued:
		return "has not begun"
	case lifecycle.Running:
		return "is not over"
	case lifecycle.Completed, lifecycle.Failed:
		return string(s)
	default:
		return "was " + string(s)
	}
}
