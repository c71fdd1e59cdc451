package admission

import (
	"slices"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/pipeline"
)

// Need is something that must be on a worker before a run takes capacity there.
type Need struct {
	Kind Kind   `json:"kind"`
	Ref  string `json:"ref"`
}

// Kind is what sort of thing a run needs.
type Kind string

// The kinds.
const (
	Image       Kind = "image"
	Environment Kind = "environment" // its Ref is what was asked for
	Inputs      Kind = "inputs"      // from elsewhere; its Ref is the team
	Engine      Kind = "engine"      // of pipelines, its Ref: nobody fetches it, a worker has it or not
)

// maxRef is how long a reference may be: it is read with every queued run. What
// has a longer one is prepared when the run has started.
const maxRef = 16 << 10

// How many queued runs a worker prepares, or has prepared: in all, and of one team. What
// is fetched at the same time is bounded where it is fetched, for each team. In all there
// are more than ten teams of one account can take up.
const (
	maxPrepared     = 64
	maxPreparedTeam = 4
)

// NeedsOf is what the nodes need that can start first, and the engines that any
// of them launches. What others need is fetched while the run goes.
func NeedsOf(g *graph.Graph) (needs []Need) {
	for _, n := range g.Order() {
		need, ok := needOf(n)
		if ok && len(g.Incoming(n.ID)) == 0 && !slices.Contains(needs, need) {
			needs = append(needs, need)
		}
	}
	for _, n := range g.Order() {
		need := Need{Kind: Engine, Ref: string(pipeline.LaunchedBy(n))}
		if need.Ref != "" && !slices.Contains(needs, need) {
			needs = append(needs, need)
		}
	}
	return needs
}

// Fetched are the needs that a worker fetches.
func Fetched(needs []Need) []Need {
	return slices.DeleteFunc(slices.Clone(needs), func(n Need) bool { return n.Kind == Engine })
}

func needOf(n *graph.Node) (need Need, ok bool) {
	switch {
	case n.Image != "":
		return Need{Kind: Image, Ref: n.Image}, true
	case n.Environment != nil:
		need = Need{Kind: Environment, Ref: n.Environment.Canonical()}
		return need, len(need.Ref) <= maxRef
	}
	return need, false
}

// ready reports whether nothing is missing for a run to start on this worker.
func (c Claim) ready(run Candidate) bool {
	return !c.Prepares || len(run.Needs) == 0 || c.Preparing[run.ID]
}

// ToPrepare are the runs for which a worker is to fetch what they need next, in
// the order in which teams take turns. It does not matter whether there is room
// for them: they take none before they are ready.
func ToPrepare(c Claim, lines []TeamQueue) (list []Candidate) {
	if !c.Prepares {
		return nil
	}
	most := maxPrepared - len(c.Preparing)
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, byUsage)
	for place := range maxPreparedTeam {
		for _, l := range lines {
			run, found := c.nextToPrepare(l, place)
			if run.Team = l.Team; found && len(list) < most {
				list = append(list, run)
			}
		}
	}
	return list
}

// nextToPrepare is one of the first runs of a line that need something, if nobody
// prepares it.
func (c Claim) nextToPrepare(l TeamQueue, place int) (run Candidate, found bool) {
	for _, run := range l.Waiting {
		if len(run.Needs) == 0 || run.Size.GPU > c.Total.GPU {
			continue
		}
		if place > 0 {
			place--
			continue
		}
		_, here := c.Preparing[run.ID]
		return run, !here && (run.PreparedBy == "" || run.PreparedBy == c.Owner)
	}
	return run, false
}
