package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/graph/guarded"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/runs/offers"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// Source is the workflow that a run is made of.
type Source struct {
	Name       string
	Revision   int
	Definition []byte
}

// SubmitStore is what starting a run asks of the database.
type SubmitStore interface {
	RunSource(ctx context.Context, team ids.Team, id ids.Workflow) (Source, error)
	// ConfirmedSource is what a member last confirmed of it.
	ConfirmedSource(ctx context.Context, team ids.Team, id ids.Workflow) (Source, error)
	PlanOf(ctx context.Context, team ids.Team) (credits.Plan, error)
	// ExecutorsOf are the executors that the team may use; nil are all.
	ExecutorsOf(ctx context.Context, team ids.Team) ([]string, error)
	// MissingFiles are those of the keys that are not the team's files.
	MissingFiles(ctx context.Context, team ids.Team, keys []string) ([]string, error)
	// FoldersAmong are those of the keys that are folders.
	FoldersAmong(ctx context.Context, team ids.Team, keys []string) (map[string]bool, error)
	// MissingSecrets are those of the names that the team has no secret for.
	MissingSecrets(ctx context.Context, team ids.Team, names []string) ([]string, error)
	// FilesNotUsed are those of the keys that no earlier run of the workflow
	// was given.
	FilesNotUsed(ctx context.Context, team ids.Team, id ids.Workflow, keys []string) ([]string, error)
}

// Engine executes runs.
type Engine interface {
	// Choose finds the executor of a run. What can never be served is
	// fault.KindConflict, a name that nobody has fault.KindInvalid.
	Choose(ctx context.Context, w Wanted) (Chosen, error)
	// Offers are what workers have for runs, in order of preference.
	Offers(ctx context.Context) ([]Worker, error)
	Wake()
	Cancel(id ids.Run)
}

// New is what somebody wants to run.
type New struct {
	Workflow   ids.Workflow
	Custom     *credits.Custom
	Profile    string
	Parameters []byte // a JSON object; nil is an empty one
	Inputs     map[string]json.RawMessage
	Label      Label
	MaxCredits credits.Amount   // that it may cost; 0: no limit of its own, less: not an amount
	OutputTo   *outputto.Target // where its outputs are copied, too; nil: nowhere
	Executor   string           // by name; empty: the first that serves it

	// ResultLink is the link that a guest gets to the results of the run; nil: there is none.
	ResultLink *access.ResultLink

	// Current retries with the workflow as it is now, not as it was.
	Current bool
	// Only retries these nodes, with what the run before made for them.
	Only []string

	guarded bool // by a guest whose runs get no secrets
	literal bool // the addresses are those of a run: none is a pattern

	// Once records the answer with the effect; nil without an idempotency key.
	Once func(Run) (*access.IdempotencyRecord, error)
}

// Submit accepts a run, or says everything that is wrong with it. What it
// accepts is executed, whatever happens to this process.
func (s *Service) Submit(ctx context.Context, caller access.Caller, in New) (Run, error) {
	if err := caller.Must(access.StartRuns); err != nil {
		return Run{}, err
	}
	if g := caller.Guest; g != nil && g.Workflow != in.Workflow {
		return Run{}, fault.Forbidden("your link is for another workflow")
	}
	if caller.Guest != nil && !in.Label.empty() {
		return Run{}, fault.Forbidden("only members of the team can give a run a name, a note or tags")
	}
	if caller.Guest != nil && in.Executor != "" {
		return Run{}, fault.Forbidden("only members of the team can choose where a run is executed")
	}
	src, err := s.submit.RunSource(ctx, caller.Team, in.Workflow)
	if err != nil {
		return Run{}, err
	}
	r := Run{
		ID: ids.NewRun(), Team: caller.Team, Workflow: in.Workflow, WorkflowName: src.Name, Revision: src.Revision, Definition: src.Definition,
		Starter: starter(caller), Status: lifecycle.Queued, CreatedAt: s.now(), MaxCredits: in.MaxCredits,
	}
	if caller.Guest != nil {
		r.Invite, r.ResultLink, in.guarded = caller.Guest.Invite, in.ResultLink, !caller.Guest.Secrets
	}
	return r, s.accept(ctx, &r, in)
}

// accept checks what the run was given and stores it.
func (s *Service) accept(ctx context.Context, r *Run, in New) error {
	if err := s.full(ctx); err != nil {
		return err
	}
	release, err := s.memory.Reserve(len(r.Definition) + len(in.Parameters))
	if err != nil {
		return err
	}
	defer release()
	g, err := runnable(r.Definition)
	if err != nil {
		return err
	}
	inputs, err := checkGiven(g, r, in)
	if err != nil {
		return err
	}
	if err := s.checkSecrets(ctx, r, g, in.guarded); err != nil {
		return err
	}
	if err := s.checkInputs(ctx, r, inputs); err != nil {
		return err
	}
	if r.OutputTo, err = in.OutputTo.Check(ctx, r.asker(), s.targets); err != nil {
		return err
	}
	if err := s.checkSize(ctx, r, g); err != nil {
		return err
	}
	var record *access.IdempotencyRecord
	if in.Once != nil {
		if record, err = in.Once(*r); err != nil {
			return err
		}
	}
	if err := s.store.SubmitRun(ctx, *r, credits.HoldSeconds*r.Price, record); err != nil {
		return err
	}
	s.engine.Wake()
	return nil
}

// checkSize prices the run, and refuses a size that the executor cannot serve
// or the plan does not allow.
func (s *Service) checkSize(ctx context.Context, r *Run, g *graph.Graph) error {
	wanted := offers.WantedBy(g, r.Size, r.Executor)
	var err error
	if wanted.Allowed, err = s.submit.ExecutorsOf(ctx, r.Team); err != nil {
		return err
	}
	chosen, err := s.engine.Choose(ctx, wanted)
	if err != nil {
		return err
	}
	r.Executor, r.Price = chosen.Executor, s.catalog.Rates.Percent(chosen.PricePercent).PerSecond(r.Size)
	plan, err := s.submit.PlanOf(ctx, r.Team)
	if err != nil {
		return err
	}
	if first := credits.HoldSeconds * r.Price; r.MaxCredits > 0 && r.MaxCredits < first {
		d := fault.Detail{Path: "maxCredits", Message: fmt.Sprintf("must be at least %s, which the first minute of this size costs", first)}
		return fault.Problems([]fault.Detail{d}, "%s %s", d.Path, d.Message)
	}
	terms := s.catalog.TermsOf(plan)
	if reason, ok := terms.Allows(r.Size); !ok {
		return fault.Payment("%s", reason).WithCode("plan_limit")
	}
	return nil
}

// OffersGPU reports whether a run on one of some executors can have a GPU here; nil are all.
func (s *Service) OffersGPU(ctx context.Context, executors []string) bool {
	size, _ := credits.Resolve(nil, credits.GPUProfile)
	_, err := s.engine.Choose(ctx, Wanted{Size: size, Allowed: executors})
	return err == nil
}

// runnable is a definition that can run.
func runnable(definition []byte) (*graph.Graph, error) {
	g, wrong := graph.Parse(definition)
	if len(wrong) == 0 {
		wrong = g.Incomplete()
	}
	if len(wrong) > 0 {
		return nil, fault.Problems(wrong, "the workflow cannot run yet: %s", wrong[0].Sentence()).WithCode("incomplete_workflow")
	}
	return g, nil
}

// checkGiven finds everything that is wrong with the size, the parameters, the
// inputs and the label, and returns the inputs.
func checkGiven(g *graph.Graph, r *Run, in New) (givenInputs, error) {
	var sizeWrong, labelWrong []fault.Detail
	r.Size, sizeWrong = credits.Resolve(in.Custom, in.Profile)
	r.Executor = in.Executor
	values, valuesWrong := g.CheckParameters(in.Parameters)
	r.Label, labelWrong = in.Label.checked()
	inputs, inputsWrong := readInputs(g, in.Inputs, in.literal)
	wrong := slices.Concat(sizeWrong, valuesWrong, labelWrong, inputsWrong)
	if in.OutputTo != nil {
		wrong = append(wrong, in.OutputTo.Problems()...)
	}
	if in.MaxCredits < 0 {
		wrong = append(wrong, fault.Detail{Path: "maxCredits", Message: "must be more than 0, with at most 6 decimals"})
	}
	if len(sizeWrong) == 0 {
		wrong = append(wrong, tooLarge(g, r.Size)...)
	}
	if len(wrong) > 0 {
		return givenInputs{}, fault.Problems(wrong, "%s", wrong[0].Sentence())
	}
	r.Parameters, r.TotalNodes, r.Needs = values.JSON(), len(g.Order()), admission.NeedsOf(g)
	return inputs, nil
}

// checkSecrets refuses a run whose commands would not get the secrets they
// name.
func (s *Service) checkSecrets(ctx context.Context, r *Run, g *graph.Graph, untrusted bool) error {
	var names []string
	for _, n := range g.Order() {
		names = append(names, n.Secrets...)
	}
	if untrusted && g.Source != nil && g.Source.Connection != "" {
		return fault.Forbidden("this workflow's code comes by a connection of the team, and your link does not allow that: ask whoever sent it").WithCode("secrets_not_allowed")
	}
	if len(names) == 0 {
		return nil
	}
	if untrusted {
		return fault.Forbidden("this workflow uses the team's secrets, and your link does not allow that: ask whoever sent it").WithCode("secrets_not_allowed")
	}
	missing, err := s.submit.MissingSecrets(ctx, r.Team, names)
	if err != nil || len(missing) == 0 {
		return err
	}
	wrong := guarded.UnknownSecrets(r.Definition, func(name string) bool { return !slices.Contains(missing, name) })
	return fault.Problems(wrong, "the workflow cannot run yet: %s", wrong[0].Sentence()).WithCode("incomplete_workflow")
}

// tooLarge finds nodes that ask for more than the run has.
func tooLarge(g *graph.Graph, size credits.Size) (wrong []fault.Detail) {
	for _, n := range g.Order() {
		if r := n.Resources; r.VCPU > float64(size.VCPU) || r.RAMGB > float64(size.RAMGB) || r.GPU > size.GPU {
			wrong = append(wrong, fault.Detail{
				Path:    fmt.Sprintf("nodes[%d].resources", n.Index),
				Message: fmt.Sprintf("%s asks for more than the run's %d vCPU, %d GB and %d GPU", n.Title(), size.VCPU, size.RAMGB, size.GPU),
				Code:    graph.OutOfRange, Node: n.ID, Field: "resources",
			})
		}
	}
	return wrong
}
