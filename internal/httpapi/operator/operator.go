// Package operator speaks HTTP for those who look after the installation.
package operator

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/quotas"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/identity/groups"
	"github.com/millrace/millrace/internal/operator"
)

// API is the part of the HTTP API that this room serves. The kernel lets
// operators in and nobody else.
type API struct {
	Operator *operator.Service
	Board    *operator.Board // of the notice; nil: nobody is told anything
	Groups   *groups.Service
}

const (
	listDefault = 100
	listMost    = 500
)

func sizeOut(s credits.Size) api.OperatorSize {
	return api.OperatorSize{Vcpu: s.VCPU, RAMGb: s.RAMGB, Gpu: s.GPU}
}

// Workers answers GET /api/operator/workers.
func (a *API) Workers(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Operator.Workers(x.Context())
	out := make([]api.OperatorWorker, len(list))
	for i, w := range list {
		out[i] = api.OperatorWorker{
			ID: w.ID, Host: w.Host, Executor: kernel.OrNull(w.Executor), Version: w.Version, Has: sizeOut(w.Size), Used: sizeOut(w.Used), Runs: w.Runs,
			Problem: kernel.OrNull(w.Problem), DiskLow: w.DiskLow, Draining: w.Draining, SeenAt: api.At(w.SeenAt),
		}
	}
	return kernel.Answer{Data: out}, err
}

// Queue answers GET /api/operator/queue.
func (a *API) Queue(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, listMost, listDefault)
	if err != nil {
		return kernel.Answer{}, err
	}
	q, err := a.Operator.Queue(x.Context(), limit)
	out := api.OperatorQueue{Queued: q.Queued, Running: q.Running, Runs: make([]api.OperatorRun, len(q.Runs))}
	for i, r := range q.Runs {
		out.Runs[i] = api.OperatorRun{
			ID: string(r.ID), TeamID: string(r.Team), Status: api.OperatorRunStatus(r.Status), Needs: sizeOut(r.Size), Since: api.At(r.Since),
			Reason: kernel.OrNull(r.Reason), Worker: kernel.OrNull(r.Worker),
		}
	}
	return kernel.Answer{Data: out}, err
}

// Disk answers GET /api/operator/disk.
func (a *API) Disk(x *kernel.Exchange) (kernel.Answer, error) {
	kept, disk, err := a.Operator.Storage(x.Context())
	return kernel.Answer{Data: api.OperatorDisk{
		TotalBytes: disk.Total, FreeBytes: disk.Free, FreeFiles: disk.FreeFiles, State: diskStates[disk.State],
		FileBytes: kept.Bytes, DatabaseBytes: kept.Database, PendingDeletes: kept.PendingDelete,
	}}, err
}

var diskStates = []api.OperatorDiskState{"enough", "low", "nearlyNone"}

// Chores answers GET /api/operator/chores.
func (a *API) Chores(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Operator.Chores(x.Context())
	out := make([]api.OperatorChore, len(list))
	for i, c := range list {
		out[i] = api.OperatorChore{
			Name: c.Name, SucceededAt: kernel.TimeOrNull(c.SucceededAt), TookMs: c.Took.Milliseconds(), Done: c.Done, Skipped: c.Skipped, FailedAt: kernel.TimeOrNull(c.FailedAt),
		}
	}
	return kernel.Answer{Data: out}, err
}

func teamOut(t operator.Team) api.OperatorTeam {
	q := t.Quotas
	return api.OperatorTeam{
		ID: string(t.ID), Name: t.Name, Plan: api.Plan(t.Plan), Members: t.Members, StorageBytes: t.Storage, CreditsSpent: t.Spent.Float(), CreditsLeft: t.Left.Float(),
		CreatedAt: api.At(t.CreatedAt), SuspendedAt: kernel.TimeOrNull(t.SuspendedAt),
		Executors: namesOut(q.Executors), Slurm: slurmOut(q.Slurm), StorageGb: q.Storage.In(credits.GB), MonthlyVcpuHours: q.Team.In(quotas.Hour), PerPersonVcpuHours: q.Person.In(quotas.Hour),
		UsedVcpuHours: quotas.HoursOf(t.VCPU.Used), HeldVcpuHours: quotas.HoursOf(t.VCPU.Held),
	}
}

// Teams answers GET /api/operator/teams.
func (a *API) Teams(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, listMost, listDefault)
	if err != nil {
		return kernel.Answer{}, err
	}
	after, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, more, err := a.Operator.Teams(x.Context(), ids.Team(after), limit)
	out := make([]api.OperatorTeam, len(list))
	for i, t := range list {
		out[i] = teamOut(t)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = kernel.AsCursor(string(list[limit-1].ID))
	}
	return kernel.Answer{Data: out, Page: page}, err
}

// Errors answers GET /api/operator/errors.
func (a *API) Errors(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, listMost, listDefault)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, err := a.Operator.Failures(x.Context(), limit)
	out := make([]api.OperatorError, len(list))
	for i, f := range list {
		out[i] = api.OperatorError{At: api.At(f.At), RequestID: f.RequestID, Route: f.Route, Code: f.Code, Host: f.Host}
	}
	return kernel.Answer{Data: out}, err
}

// Version answers GET /api/operator/version.
func (a *API) Version(*kernel.Exchange) (kernel.Answer, error) {
	v := a.Operator.About
	return kernel.OK(api.OperatorVersion{
		Version: v.Version, Go: v.Go, License: v.License, SignUp: v.SignUp, Database: v.Database, Objects: v.Objects, Mail: v.Mail, StartedAt: api.At(v.StartedAt),
	})
}
