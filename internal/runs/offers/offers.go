// Package offers is what workers have for runs: which executor a run gets, what
// is free there, and why a run waits. It is pure.
package offers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/domain/quotas"
)

// Worker is what one has for runs.
type Worker struct {
	Owner   string
	Host    string
	Size    credits.Size
	Problem string // why it starts nothing
	DiskLow bool
	Version string // of its program

	Executor     string // its name; empty where nobody has named one
	Kind         string // local or slurm
	Scope        string // workers with the same one offer the same machines
	Place        int    // lower ones are preferred
	PricePercent int    // of the catalog's rates; 0: 100
	NoImages     bool

	NoEnvironments bool
	Launches       string // the engines whose pipelines its tasks can launch, divided by spaces

	Draining bool // it takes no more runs, until it is told to or another comes in its place
}

// RememberedFor is how long a worker that is gone is expected to come back: runs that
// only it can serve are accepted, and wait for it.
const RememberedFor = 7 * 24 * time.Hour

// Wanted is what a run asks of an executor.
type Wanted struct {
	Executor string   // by name; empty: whichever serves it
	Allowed  []string // the executors that its team may use; nil: all
	Size     credits.Size
	Images   bool // some of its nodes have one

	Environments bool
	Launches     pipeline.Engine // whose pipeline it is; empty: none
}

// WantedBy is what a run of a graph asks.
func WantedBy(g *graph.Graph, size credits.Size, executor string) Wanted {
	w := Wanted{Executor: executor, Size: size, Launches: pipeline.Of(g)}
	for _, n := range g.Order() {
		w.Images = w.Images || n.Image != ""
		w.Environments = w.Environments || n.Environment != nil
	}
	return w
}

// Chosen is the executor of a run, and what it costs in percent of the
// catalog's rates.
type Chosen struct {
	Executor     string
	PricePercent int
}

// The codes of refusals while no executor has the software.
const (
	NoEnvironments = "no_environments"
	NoEngine       = "no_pipeline_engine"
)

// NotAllowed is the code of a refusal of an executor that the team may not use.
const NotAllowed = "executor_not_allowed"

// Choose finds the executor of a run among what workers offer, in order of
// preference: the one that it names, or the first that has the whole size and
// has its software, or else the first that can serve it at all. CPU and memory
// above a machine are no obstacle: such a run runs alone. One that takes no more
// runs is chosen when no other serves it: the run waits.
//
// Where none serves it that works, it is one of those that are away, for which the run
// waits: that there is no worker at the moment is not the run's fault. Only what
// none of them can serve is refused.
func Choose(offers, away []Worker, w Wanted) (Chosen, error) {
	if w.Executor != "" && !quotas.Allows(w.Allowed, w.Executor) {
		return Chosen{}, fault.Forbidden("your team may not use the executor %q: choose one of %s, or ask an operator of the installation to allow it", w.Executor[:min(len(w.Executor), 40)], strings.Join(w.Allowed, ", ")).WithCode(NotAllowed)
	}
	some := len(offers) > 0
	offers, away = AllowedOf(offers, w.Allowed), AllowedOf(away, w.Allowed)
	if some && len(offers) == 0 && len(away) == 0 {
		return Chosen{}, fault.Conflict("none of the executors that your team may use (%s) is here now: ask an operator of the installation", strings.Join(w.Allowed, ", ")).WithCode("no_capacity")
	}
	if w.Executor != "" {
		other := func(o Worker) bool { return o.Executor != w.Executor }
		names := offers
		offers, away = slices.DeleteFunc(slices.Clone(offers), other), slices.DeleteFunc(slices.Clone(away), other)
		if len(offers) == 0 && len(away) == 0 {
			return Chosen{}, unknownExecutor(names, w.Executor)
		}
	}
	offers = slices.DeleteFunc(slices.Clone(offers), func(o Worker) bool { return o.Problem != "" })
	if len(offers) == 0 && len(away) == 0 { // nobody knows what there will be
		return Chosen{PricePercent: 100}, nil
	}
	best, refused := bestOf(offers, w)
	if best == nil {
		var missing lack
		best, missing = bestOf(away, w)
		refused = min(refused, missing)
	}
	if best != nil {
		return Chosen{best.Executor, best.pricePercent()}, nil
	}
	switch refused {
	case lacksEnvironments:
		return Chosen{}, fault.Conflict("no executor that serves this run builds environments of packages now: give its steps an `image` in place of `environment`, or have the operator run one that does, with uv on the server and without `--environments off`").WithCode(NoEnvironments)
	case lacksEngine:
		return Chosen{}, fault.Conflict("no executor that serves this run has %s: have the operator install it (%s)", w.Launches.Title(), pipeline.Install(w.Launches)).WithCode(NoEngine)
	}
	return Chosen{}, fault.Conflict("there is no GPU on this server: choose a size without one").WithCode("no_capacity")
}

// AllowedOf are those of workers whose executor is among the names; nil are all.
func AllowedOf(list []Worker, names []string) []Worker {
	if names == nil {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(o Worker) bool { return !quotas.Allows(names, o.Executor) })
}

// lack is what a worker has not that a run needs. Of several workers, the one that lacks
// the least says why the run is refused.
type lack int

const (
	lacksEnvironments lack = iota
	lacksEngine
	lacksGPU
)

// bestOf is the worker that suits a run best, or what they all lack.
func bestOf(list []Worker, w Wanted) (best *Worker, least lack) {
	least = lacksGPU
	for i := range list {
		o := &list[i]
		switch {
		case w.Size.GPU > o.Size.GPU && !o.sizeUnknown():
		case !o.launches(w.Launches):
			least = min(least, lacksEngine)
		case w.Environments && o.NoEnvironments:
			least = lacksEnvironments
		case best == nil || o.rank(w) < best.rank(w):
			best = o
		}
	}
	return best, least
}

// sizeUnknown reports whether a worker could not say yet what it has, since its executor
// has not answered since it started.
func (w Worker) sizeUnknown() bool { return w.Problem != "" && w.Size == credits.Size{} }

// Away are the workers that a run can wait for: those that are there and have a problem,
// and those that were there lately. A worker that is there says more than what is
// remembered of its host.
func Away(present, remembered []Worker) (list []Worker) {
	known := map[string]bool{}
	for _, o := range present {
		known[o.Host] = known[o.Host] || !o.sizeUnknown()
	}
	remembered = slices.DeleteFunc(slices.Clone(remembered), func(o Worker) bool { return known[o.Host] })
	for _, o := range present {
		same := func(r Worker) bool { return r.Executor == o.Executor }
		if o.Problem != "" && !(o.sizeUnknown() && slices.ContainsFunc(remembered, same)) {
			list = append(list, o)
		}
	}
	return append(list, remembered...)
}

// Served says what was chosen for an estimate: what it costs in percent of the
// rates, or why nobody serves it.
func Served(c Chosen, err error) (percent int, reason string, ok bool) {
	if err == nil {
		return c.PricePercent, "", true
	}
	if e, foreseen := errors.AsType[*fault.Error](err); foreseen {
		return 100, e.Message, false
	}
	return 100, "nobody can say at the moment where it could run", false
}

// draining is why such a worker starts nothing.
const draining = "the worker is being drained by the operator"

// rank is how well a worker suits a run that it can serve; 0 is best.
func (w Worker) rank(want Wanted) int {
	switch {
	case want.Images && w.NoImages:
		return 3
	case w.Draining:
		return 2
	case want.Size.VCPU > w.Size.VCPU || want.Size.RAMGB > w.Size.RAMGB:
		return 1
	}
	return 0
}

// launches reports whether a worker's tasks can launch pipelines of an engine; those
// of none always.
func (w Worker) launches(e pipeline.Engine) bool {
	return e == "" || slices.Contains(strings.Fields(w.Launches), string(e))
}

func (w Worker) pricePercent() int {
	if w.PricePercent == 0 {
		return 100
	}
	return w.PricePercent
}

func unknownExecutor(offers []Worker, name string) error {
	var names []string
	for _, o := range offers {
		if o.Executor != "" && !slices.Contains(names, o.Executor) {
			names = append(names, o.Executor)
		}
	}
	message := fmt.Sprintf("there is no executor %q now", name[:min(len(name), 40)])
	if len(names) > 0 {
		message += ": choose one of " + strings.Join(names, ", ")
	}
	return fault.Problems([]fault.Detail{{Path: "executor", Message: message}}, "executor: %s", message)
}

// Load is what runs take of an executor.
type Load struct {
	Used    credits.Size    // by runs that are at work
	Queued  int             // runs
	Waits   []time.Duration // of the latest runs, until the first command began
	Typical time.Duration   // the median of those
}

// Executor is one that a run can be started on.
type Executor struct {
	Name         string
	Kind         string
	Total        credits.Size
	PricePercent int
	Images       bool
	Problem      string // why nothing starts there now
	Load
}

// Free is what nobody uses at the moment.
func (e Executor) Free() credits.Size {
	return credits.Size{VCPU: max(0, e.Total.VCPU-e.Used.VCPU), RAMGB: max(0, e.Total.RAMGB-e.Used.RAMGB), GPU: max(0, e.Total.GPU-e.Used.GPU)}
}

// Gather puts the workers of each executor together. Several servers that share a
// cluster offer the same machines.
func Gather(offers []Worker) (list []Executor) {
	at, seen := map[string]int{}, map[[2]string]bool{}
	for _, o := range offers {
		if o.Draining && o.Problem == "" {
			o.Problem = draining
		}
		i, known := at[o.Executor]
		if !known {
			i = len(list)
			at[o.Executor] = i
			list = append(list, Executor{Name: o.Executor, Kind: o.Kind, PricePercent: o.pricePercent(), Problem: o.Problem})
		}
		list[i].Images = list[i].Images || !o.NoImages // a run that has some goes to such a worker
		place := [2]string{o.Executor, o.Scope}
		if o.Problem == "" && !seen[place] {
			seen[place] = true
			list[i].Total, list[i].Problem = list[i].Total.Plus(o.Size), ""
		}
	}
	return list
}

// SetLoads adds what runs take of each.
func SetLoads(list []Executor, loads map[string]Load) {
	for i := range list {
		list[i].Load = loads[list[i].Name]
		if waits := list[i].Waits; len(waits) > 0 {
			slices.Sort(waits)
			list[i].Typical = waits[len(waits)/2]
		}
	}
}
