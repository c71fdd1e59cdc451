package account

import (
	"bufio"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/environments"
	"github.com/millrace/millrace/internal/files"
	aiapi "github.com/millrace/millrace/internal/httpapi/ai"
	auditapi "github.com/millrace/millrace/internal/httpapi/audit"
	billingapi "github.com/millrace/millrace/internal/httpapi/billing"
	connectionsapi "github.com/millrace/millrace/internal/httpapi/connections"
	environmentsapi "github.com/millrace/millrace/internal/httpapi/environments"
	filesapi "github.com/millrace/millrace/internal/httpapi/files"
	identityapi "github.com/millrace/millrace/internal/httpapi/identity"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	notificationsapi "github.com/millrace/millrace/internal/httpapi/notifications"
	reportedapi "github.com/millrace/millrace/internal/httpapi/reported"
	runsapi "github.com/millrace/millrace/internal/httpapi/runs"
	schedulesapi "github.com/millrace/millrace/internal/httpapi/schedules"
	secretsapi "github.com/millrace/millrace/internal/httpapi/secrets"
	sharingapi "github.com/millrace/millrace/internal/httpapi/sharing"
	webhooksapi "github.com/millrace/millrace/internal/httpapi/webhooks"
	workflowsapi "github.com/millrace/millrace/internal/httpapi/workflows"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/notifications"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/finding"
	"github.com/millrace/millrace/internal/runs/reported"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/runs/webhooks"
	"github.com/millrace/millrace/internal/secrets"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/workflows"
)

const (
	exportPage   = 100         // rows that are in memory at once
	exportTime   = time.Minute // in which a client must take a page
	exportBuffer = 64 << 10
)

// ExportTeam gives everything that is stored of a team, page by page: neither
// memory nor a transaction grows with it. What breaks on the way is cut off
// before `complete`.
func (a *API) ExportTeam(x *kernel.Exchange) (kernel.Answer, error) {
	x.Caller.Scopes = nil // a token that may export may export all of it, whatever else it may read
	if err := a.Audit.Note(x.Context()); err != nil {
		return kernel.Answer{}, err
	}
	members, pending, err := a.Identity.Members(x.Context(), x.Presence, x.Caller.Team)
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Stream: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kernel.JSONMedia)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Disposition", `attachment; filename="`+string(x.Caller.Team)+`.json"`)
		e := &export{a: a, x: x, out: bufio.NewWriterSize(w, exportBuffer), conn: http.NewResponseController(w)}
		e.raw(`{"success":true,"data":{"exportedAt":`)
		e.value(api.At(a.Now()))
		e.raw(`,"team":`)
		e.value(api.InvitingTeam{ID: string(x.Membership.Team.ID), Name: x.Membership.Team.Name})
		list(e, "members", members, identityapi.MemberOut)
		list(e, "invitations", pending, func(i identity.Invitation) api.TeamInvitation { return identityapi.InvitationOut(i, a.Now()) })
		e.everything()
		e.raw(`,"complete":true}}` + "\n")
		e.finish()
	}}, nil
}

// export writes one, and remembers what went wrong first.
type export struct {
	a     *API
	x     *kernel.Exchange
	out   *bufio.Writer
	conn  *http.ResponseController
	items int // of the list that is being written
	err   error
}

func (e *export) raw(text string) {
	if e.err == nil {
		_, e.err = e.out.WriteString(text)
	}
}

func (e *export) value(v any) {
	if e.err == nil {
		e.err = json.MarshalWrite(e.out, v, jsontext.EscapeForHTML(true))
	}
}

// item writes one of a list.
func (e *export) item(v any) {
	if e.items++; e.items > 1 {
		e.raw(",")
	}
	e.value(v)
}

// flush sends a page off, and asks whether the caller may still have the next
// one.
func (e *export) flush() {
	if e.err != nil {
		return
	}
	_ = e.conn.SetWriteDeadline(time.Now().Add(exportTime)) // not every connection has one
	if e.err = e.out.Flush(); e.err == nil && !e.a.Server.StillMay(e.x.Context(), e.x.Presence.By(), e.x.Route.May, e.x.Caller.Team) {
		e.err = errors.New("the caller may not export the team any more")
	}
}

// finish hangs up where something went wrong: the client sees an answer that
// is no JSON and did not arrive whole.
func (e *export) finish() {
	e.flush()
	if e.err == nil {
		return
	}
	if e.x.Context().Err() == nil {
		e.a.Log.ErrorContext(e.x.Context(), "an export broke off", slog.String("request_id", e.x.ID), slog.Any("error", e.err))
	}
	panic(http.ErrAbortHandler)
}

// list writes what is in memory already.
func list[T, O any](e *export, name string, all []T, out func(T) O) {
	e.raw(`,"` + name + `":[`)
	e.items = 0
	for _, v := range all {
		e.item(out(v))
	}
	e.raw("]")
}

// paged writes a list page by page: next gives what follows the last one of
// the page before, nil at first; the list ends with a page that is not full.
func paged[T any](e *export, name string, size int, next func(last *T) ([]T, error), put func(T) error) {
	e.raw(`,"` + name + `":[`)
	e.items = 0
	var last *T
	for e.err == nil {
		var page []T
		if page, e.err = next(last); e.err != nil {
			break
		}
		for i := range page {
			if err := put(page[i]); err != nil && !fault.Is(err, fault.KindNotFound) && e.err == nil { // what somebody deleted meanwhile is left out
				e.err = err
			}
		}
		e.flush()
		if len(page) < size {
			break
		}
		last = &page[len(page)-1]
	}
	e.raw("]")
}

// after is the id of the last one, or none.
func after[T any, ID ~string](last *T, id func(*T) ID) ID {
	if last == nil {
		return ""
	}
	return id(last)
}

// everything asks each room in turn.
func (e *export) everything() {
	a, x := e.a, e.x
	paged(e, "workflows", exportPage, func(last *workflows.Row) ([]workflows.Row, error) {
		rows, _, err := a.Workflows.Workflows(x.Context(), x.Caller, "", after(last, func(w *workflows.Row) ids.Workflow { return w.ID }), exportPage)
		return rows, err
	}, func(w workflows.Row) error {
		one, err := a.Workflows.Workflow(x.Context(), x.Caller, w.ID)
		if err != nil {
			return err
		}
		one.LastRuns = w.LastRuns
		e.item(workflowsapi.WorkflowOut(one))
		return nil
	})
	paged(e, "runs", exportPage, func(last *runs.Run) ([]runs.Run, error) {
		rows, _, err := a.Runs.Runs(x.Context(), x.Caller, runs.Filter{}, after(last, func(r *runs.Run) ids.Run { return r.ID }), exportPage)
		return rows, err
	}, e.run)
	paged(e, "deletedRuns", exportPage, func(last *finding.Deleted) ([]finding.Deleted, error) {
		return a.Finding.DeletedRuns(x.Context(), x.Caller, after(last, func(d *finding.Deleted) ids.Run { return d.ID }), exportPage)
	}, func(d finding.Deleted) error { e.item(runsapi.DeletedOut(d)); return nil })
	e.favorites()
	paged(e, "files", exportPage, func(last *files.Listed) ([]files.Listed, error) {
		var place files.Place
		if last != nil {
			place = files.Place{Source: last.Source, ID: last.ID}
		}
		rows, _, err := a.Files.Files(x.Context(), x.Caller, files.Filter{}, place, exportPage, x.Base())
		return rows, err
	}, func(f files.Listed) error { e.item(filesapi.FileOut(f)); return nil })
	paged(e, "usage", exportPage, func(last *billing.Entry) ([]billing.Entry, error) {
		rows, _, err := a.Billing.Usage(x.Context(), x.Caller, after(last, func(u *billing.Entry) string { return u.ID }), exportPage)
		return rows, err
	}, func(u billing.Entry) error { e.item(billingapi.UsageOut(u)); return nil })
	paged(e, "invoices", exportPage, func(last *billing.Invoice) ([]billing.Invoice, error) {
		rows, _, err := a.Billing.Invoices(x.Context(), x.Caller, after(last, func(i *billing.Invoice) string { return i.ID }), exportPage, x.Base())
		return rows, err
	}, func(i billing.Invoice) error { e.item(billingapi.InvoiceOut(i)); return nil })
	paged(e, "analyses", exportPage, func(last *ai.Analysis) ([]ai.Analysis, error) {
		rows, _, err := a.AI.Analyses(x.Context(), x.Caller, after(last, func(n *ai.Analysis) ids.Analysis { return n.ID }), exportPage)
		return rows, err
	}, func(n ai.Analysis) error {
		one, err := a.AI.Analysis(x.Context(), x.Caller, n.ID)
		if err == nil {
			e.item(aiapi.AnalysisOut(one))
		}
		return err
	})
	paged(e, "invites", exportPage, func(last *sharing.Invite) ([]sharing.Invite, error) {
		return a.Sharing.AllInvites(x.Context(), x.Caller, after(last, func(i *sharing.Invite) ids.Invite { return i.ID }), exportPage)
	}, func(i sharing.Invite) error { e.item(sharingapi.InviteOut(i, a.Now())); return nil })
	paged(e, "resultLinks", exportPage, func(last *sharing.ResultLink) ([]sharing.ResultLink, error) {
		return a.Sharing.AllResultLinks(x.Context(), x.Caller, after(last, func(l *sharing.ResultLink) ids.ResultLink { return l.ID }), exportPage)
	}, func(l sharing.ResultLink) error { e.item(sharingapi.ResultLinkOut(l, a.Now())); return nil })
	paged(e, "sweeps", exportPage, func(last *runs.Sweep) ([]runs.Sweep, error) {
		rows, _, err := a.Runs.Sweeps(x.Context(), x.Caller, after(last, func(s *runs.Sweep) ids.Sweep { return s.ID }), exportPage)
		return rows, err
	}, func(s runs.Sweep) error { e.item(runsapi.SweepRow(s)); return nil })
	paged(e, "secrets", secrets.MaxSecrets+1, func(*secrets.Secret) ([]secrets.Secret, error) { return a.Secrets.Secrets(x.Context(), x.Caller) },
		func(s secrets.Secret) error { e.item(secretsapi.SecretOut(s)); return nil })
	paged(e, "environments", exportPage, func(last *environments.Build) ([]environments.Build, error) {
		return a.Environments.All(x.Context(), x.Caller, after(last, func(b *environments.Build) string { return b.Key }), exportPage)
	}, func(b environments.Build) error { e.item(environmentsapi.EnvironmentOut(b)); return nil })
	paged(e, "audit", exportPage, func(last *audit.Entry) ([]audit.Entry, error) {
		var f audit.Filter
		if last != nil {
			f.Before = last.Seq
		}
		rows, _, err := a.Audit.Entries(x.Context(), x.Caller, f, exportPage)
		return rows, err
	}, func(n audit.Entry) error { e.item(auditapi.EntryOut(n)); return nil })
	paged(e, "connections", connections.MaxConnections+1, func(*connections.Connection) ([]connections.Connection, error) {
		return a.Connections.Connections(x.Context(), x.Caller)
	}, func(c connections.Connection) error { e.item(connectionsapi.ConnectionOut(c)); return nil })
	paged(e, "budgets", billing.MaxBudgets+1, func(*billing.Budget) ([]billing.Budget, error) { return a.Billing.Budgets(x.Context(), x.Caller) },
		func(b billing.Budget) error { e.item(billingapi.BudgetOut(b, a.Now())); return nil })
	paged(e, "notifications", exportPage, func(last *notifications.Notification) ([]notifications.Notification, error) {
		rows, _, _, err := a.Notifications.Inbox(x.Context(), x.Caller, false, after(last, func(n *notifications.Notification) string { return n.ID }), exportPage)
		return rows, err
	}, func(n notifications.Notification) error { e.item(notificationsapi.NotificationOut(n)); return nil })
	paged(e, "webhooks", webhooks.Most+1, func(*webhooks.Webhook) ([]webhooks.Webhook, error) { return a.Webhooks.List(x.Context(), x.Caller) },
		func(w webhooks.Webhook) error { e.item(webhooksapi.WebhookOut(w)); return nil })
	paged(e, "schedules", exportPage, func(last *schedules.Schedule) ([]schedules.Schedule, error) {
		return a.Schedules.AllSchedules(x.Context(), x.Caller, after(last, func(s *schedules.Schedule) ids.Schedule { return s.ID }), exportPage)
	}, func(s schedules.Schedule) error { e.item(schedulesapi.ScheduleOut(s)); return nil })
	paged(e, "triggers", exportPage, func(last *schedules.Trigger) ([]schedules.Trigger, error) {
		return a.Schedules.AllTriggers(x.Context(), x.Caller, after(last, func(t *schedules.Trigger) ids.Trigger { return t.ID }), exportPage)
	}, func(t schedules.Trigger) error { e.item(schedulesapi.TriggerOut(t)); return nil })
}

// favorites writes those of whoever exports, and their filters.
func (e *export) favorites() {
	marked, err := e.a.Finding.Favorites(e.x.Context(), e.x.Caller)
	if err == nil {
		var filters []finding.SavedFilter
		if filters, err = e.a.Finding.Filters(e.x.Context(), e.x.Caller); err == nil {
			e.raw(`,"favorites":`)
			e.value(runsapi.FavoritesOut(marked))
			list(e, "filters", filters, runsapi.FilterOut)
		}
	}
	if e.err == nil {
		e.err = err
	}
}

// run writes a run with its events, which may be many more than fit a page.
func (e *export) run(r runs.Run) error {
	a, x := e.a, e.x
	d, err := a.Runs.Detailed(x.Context(), x.Caller, r.ID)
	if err != nil {
		return err
	}
	out, err := runsapi.RunOut(d, a.Now())
	if err != nil {
		return err
	}
	text, err := json.Marshal(out, jsontext.EscapeForHTML(true))
	if err != nil {
		return err
	}
	if e.items++; e.items > 1 {
		e.raw(",")
	}
	e.raw(string(text[:len(text)-1])) // its closing brace comes after the events
	runItems := e.items
	paged(e, "events", runsapi.EventsMost, func(last *runs.Event) ([]runs.Event, error) {
		var seq int64
		if last != nil {
			seq = last.Seq
		}
		rows, _, err := a.Runs.Events(x.Context(), x.Caller, r.ID, seq, runsapi.EventsMost)
		return rows, err
	}, func(v runs.Event) error { e.item(runsapi.EventOut(v)); return nil })
	if r.Engine != "" {
		e.reported(r.ID)
	}
	e.items = runItems
	e.raw("}")
	return nil
}

// reported writes what another engine told of a run, and of each of its tasks.
func (e *export) reported(id ids.Run) {
	a, x := e.a, e.x
	about, err := a.Reported.About(x.Context(), x.Caller, id)
	if err != nil {
		if !fault.Is(err, fault.KindNotFound) && e.err == nil {
			e.err = err
		}
		return
	}
	e.raw(`,"reported":`)
	e.value(reportedapi.AboutOut(id, about))
	paged(e, "tasks", exportPage, func(last *reported.Whole) ([]reported.Whole, error) {
		return a.Reported.AllTasks(x.Context(), x.Caller, id, after(last, func(t *reported.Whole) string { return t.ID }), exportPage)
	}, func(t reported.Whole) error { e.item(reportedapi.TaskOut(t.Row, t.Attempts)); return nil })
}
