// Package runs is what a team may ask about its runs: start one, list them,
// follow what happens, cancel one. Executing them is the engine's
// business.
package runs

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/quotas"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// Starter is who started a run.
type Starter struct {
	Type string // user, guest, schedule or trigger
	ID   string
	Name string
}

func starter(c access.Caller) Starter {
	s := Starter{Type: "user", ID: c.Subject(), Name: c.Name}
	if c.Guest != nil {
		s.Type = "guest"
	}
	return s
}

// Run is one execution of a definition, as it was when it was started.
type Run struct {
	ID              ids.Run
	Number          int64 // among those of its workflow, from 1
	Team            ids.Team
	Workflow        ids.Workflow
	WorkflowName    string
	Revision        int
	Definition      []byte
	Parameters      []byte
	Inputs          []byte
	Addresses       []addresses.Object // among its inputs; read when it is submitted
	Needs           []admission.Need   // before it takes capacity; read when it is submitted
	OutputTo        *outputto.Copy     // where its outputs are copied; read with its details
	Size            credits.Size
	Price           credits.Amount // a second
	MaxCredits      credits.Amount // that it may cost; 0: no limit of its own
	Executor        string         // by name; empty: any
	Starter         Starter
	For             ids.User   // in whose name a schedule or trigger started it
	Invite          ids.Invite // the link that a guest came by
	Traceparent     string     // the span of the request that it came of; empty without tracing
	RetryOf         ids.Run
	Commit          string    // of the code that its commands use; empty: none, or not known yet
	Sweep           ids.Sweep // that it was started with
	Status          lifecycle.Status
	ErrorCode       lifecycle.ErrorCode
	ErrorMessage    string
	CancelRequested time.Time
	TotalNodes      int
	DoneNodes       int
	Progress        int // percent
	Seq             int64
	LogSize         int64 // bytes; read where a worker writes
	Fence           int64
	Losses          int
	Crashes         int // losses of which it may have been the cause, since its server worked on it
	CreditsUsed     credits.Amount
	CreatedAt       time.Time
	StartedAt       time.Time
	FinishedAt      time.Time

	Label // what somebody called it

	Kind    Kind      // empty: it runs here
	Engine  string    // that carries out a reported one, or a pipeline that one of its steps launches
	HeardAt time.Time // when anything was last reported of it

	Firing  *Firing     // of a schedule, when it is submitted
	Trigger ids.Trigger // the same

	ResultLink *access.ResultLink // that its guest gets; read when it is submitted

	Waiting *Waiting // why a queued one waits, where somebody asked

	Billed      time.Duration // before BilledSince
	BilledSince time.Time     // when its time began to count again; zero while it does not

	Plan     credits.Plan // of its team, and
	TeamName string       // when a worker took it, as the next
	Slurm    quotas.Slurm // how its jobs are accounted for
	HeldVCPU int64        // vCPU-seconds that were held for it when a worker took it
	LastHeld time.Time    // of one that was taken over: when its last worker was last known to hold it
}

// Kind is how a run comes about.
type Kind string

// Reported is the kind of runs that other engines carry out.
const Reported Kind = "reported"

// Took is the time that the run is billed for: from its first command on, less
// what the platform made it wait.
func (r Run) Took(now time.Time) time.Duration {
	if r.BilledSince.IsZero() {
		return r.Billed
	}
	return r.Billed + max(time.Millisecond, now.Sub(r.BilledSince)) // a command that has started took some time
}

// Costs is what the run has come to: every started second counts.
func (r Run) Costs(now time.Time) credits.Amount {
	cost := r.Price * credits.Amount(credits.StartedSeconds(r.Took(now)))
	if r.MaxCredits > 0 { // the seconds that it takes to stop are ours
		return min(cost, r.MaxCredits)
	}
	return cost
}

// Event is one thing that happened to a run.
type Event struct {
	Seq      int64
	Type     lifecycle.EventType
	At       time.Time
	Node     string
	NodeName string
	Shard    *int
	Attempt  *int
	Message  string
	Data     []byte // a JSON object; nil is an empty one
}

// Filter narrows a list.
type Filter struct {
	Status   lifecycle.Status
	Workflow ids.Workflow
	Since    time.Time // or later
	Until    time.Time // before; zero: without end
	Tag      string
	Starter  string // id of a person or a guest
	Text     string // in what people know a run by

	FavoriteOf ids.User // marked by them; empty: whether or not
}

// Store is what this room asks of the database.
type Store interface {
	// SubmitRun accepts a run: the row, its hold, its first event, its guest's
	// link to the results and the answer to repeat are one transaction.
	SubmitRun(ctx context.Context, r Run, hold credits.Amount, record *access.IdempotencyRecord) error
	Run(ctx context.Context, team ids.Team, id ids.Run) (Run, error)
	// Runs lists lean rows before the cursor, newest first.
	Runs(ctx context.Context, team ids.Team, f Filter, before ids.Run, limit int) ([]Run, error)
	Events(ctx context.Context, team ids.Team, id ids.Run, after int64, limit int) ([]Event, error)
	// LabelRun changes what a run is called.
	LabelRun(ctx context.Context, team ids.Team, id ids.Run, e LabelEdit) error
	// CancelRun ends a queued run at once and asks for the end of a running
	// one; a terminal one stays.
	CancelRun(ctx context.Context, team ids.Team, id ids.Run, by Starter, now time.Time) (lifecycle.Status, error)
}

// DetailStore reads what a run has come to.
type DetailStore interface {
	// LeanRun is a run without what it was given.
	LeanRun(ctx context.Context, team ids.Team, id ids.Run) (Run, error)
	NodesOf(ctx context.Context, id ids.Run) ([]Node, error)
	OutputsOf(ctx context.Context, id ids.Run) ([]Output, error)
	// FilesAmong are those of the keys that are files of the team, by key.
	FilesAmong(ctx context.Context, team ids.Team, keys []string) (map[string]GivenFile, error)
	// NodesWithoutOutputs are the nodes some of whose outputs were deleted.
	NodesWithoutOutputs(ctx context.Context, id ids.Run) (map[string]bool, error)
	// KeptShards counts, by node, the shards that succeeded and whose outputs
	// are all there, so that a retry reuses them.
	KeptShards(ctx context.Context, id ids.Run) (map[string]int, error)
	// ReusedShards counts, by node, the shards whose results are those of another run.
	ReusedShards(ctx context.Context, id ids.Run) (map[string]int, error)
	QueueState(ctx context.Context, team ids.Team, waiting []ids.Run, now time.Time) (QueueState, error)
	ExecutorLoads(ctx context.Context, names []string) (map[string]Load, error)
}

// Service answers a team's questions about its runs.
type Service struct {
	store    Store
	details  DetailStore
	shards   ShardStore
	reported ReportedTasks
	logs     LogStore
	submit   SubmitStore
	sweeps   SweepStore
	known    AddressStore
	remote   RemoteFiles
	targets  outputto.Targets
	kept     KeptStore
	recipes  Reproducer
	objects  Objects
	verifier *Verifier
	engine   Engine
	catalog  credits.Catalog
	memory   *bounds.Memory
	reports  []byte
	now      func() time.Time
	full     func(context.Context) error // whether there is no room for more
}

// Options are what the room is made of.
type Options struct {
	Store    Store
	Details  DetailStore
	Shards   ShardStore
	Reported ReportedTasks
	Logs     LogStore
	Submit   SubmitStore
	Sweeps   SweepStore
	Known    AddressStore
	Remote   RemoteFiles      // nil: inputs are files of the team alone
	Targets  outputto.Targets // nil: outputs stay here
	Kept     KeptStore
	Recipes  Reproducer
	Objects  Objects
	Verifier *Verifier // of the same objects
	Engine   Engine
	Catalog  credits.Catalog
	Memory   *bounds.Memory // of the server; nil: without end
	Reports  []byte         // signs the addresses of reports
	Now      func() time.Time
}

// NewService makes the room.
func NewService(o Options) *Service {
	return &Service{
		store: o.Store, details: o.Details, shards: o.Shards, reported: o.Reported, logs: o.Logs, submit: o.Submit, sweeps: o.Sweeps, known: o.Known, remote: o.Remote, targets: o.Targets, kept: o.Kept, recipes: o.Recipes, objects: o.Objects, verifier: o.Verifier, engine: o.Engine, catalog: o.Catalog, memory: o.Memory, reports: o.Reports, now: o.Now,
		full: func(context.Context) error { return nil },
	}
}

// RefuseWhile has no runs accepted while a check returns an error, such as that of a full
// disk. Those that schedules start are tried again.
func (s *Service) RefuseWhile(full func(context.Context) error) { s.full = full }

// Runs lists the team's runs, newest first.
func (s *Service) Runs(ctx context.Context, caller access.Caller, f Filter, before ids.Run, limit int) (list []Run, more bool, err error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, false, err
	}
	list, err = s.store.Runs(ctx, caller.Team, f, before, limit+1)
	if more = len(list) > limit; more {
		list = list[:limit]
	}
	if err != nil {
		return list, more, err
	}
	rows := make([]*Run, len(list))
	for i := range list {
		rows[i] = &list[i]
	}
	return list, more, s.explainWaiting(ctx, caller.Team, rows...)
}

// Events are what happened to a run after a number, in order.
func (s *Service) Events(ctx context.Context, caller access.Caller, id ids.Run, after int64, limit int) (list []Event, more bool, err error) {
	if _, err := s.Run(ctx, caller, id); err != nil {
		return nil, false, err
	}
	list, err = s.store.Events(ctx, caller.Team, id, after, limit+1)
	if len(list) > limit {
		return list[:limit], true, err
	}
	return list, false, err
}

// Run is one run of the caller's team.
func (s *Service) Run(ctx context.Context, caller access.Caller, id ids.Run) (Run, error) {
	if err := caller.Must(access.Read); err != nil {
		return Run{}, err
	}
	return s.store.Run(ctx, caller.Team, id)
}

// cancelPatience is how long the tasks of a run that is cancelled go on until it is written
// who asked for that.
const cancelPatience = time.Second

// Cancel calls a run off. Members may cancel what they started. A terminal run
// stays what it is. The request is recorded before the tasks are stopped, since the run
// may end at once. A database that is slow or has no space does not keep the tasks from
// being stopped, so that a run that fills the disk can be cancelled.
func (s *Service) Cancel(ctx context.Context, caller access.Caller, id ids.Run) (lifecycle.Status, error) {
	if err := caller.Must(access.CancelRuns); err != nil {
		return "", err
	}
	r, err := s.store.Run(ctx, caller.Team, id)
	if err != nil {
		return "", err
	}
	if !r.Own(caller) && !caller.May(access.CancelAnyRun) {
		return "", fault.Forbidden("only admins and owners can cancel someone else's run")
	}
	var status lifecycle.Status
	written := make(chan struct{})
	go func() {
		defer close(written)
		err = panics.Catch(func() (err error) {
			status, err = s.store.CancelRun(ctx, caller.Team, id, starter(caller), s.now())
			return err
		})
	}()
	if r.Status == lifecycle.Running {
		select {
		case <-written:
		case <-time.After(cancelPatience):
		}
		s.engine.Cancel(id)
	}
	<-written
	if r.Status != lifecycle.Running && status == lifecycle.Running { // it has started meanwhile
		s.engine.Cancel(id)
	}
	return status, err
}
