package audit

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// EntryOut is an entry of the audit log as the API shows it.
func EntryOut(e audit.Entry) api.AuditEntry {
	return api.AuditEntry{
		Seq: int(e.Seq), At: api.At(e.At), Actor: api.AuditActor{Type: api.AuditActorType(cmp.Or(e.Actor.Type, "system")), ID: kernel.OrNull(e.Actor.ID), Name: kernel.OrNull(e.Actor.Name)},
		Action: e.Action, Target: kernel.OrNull(e.Target), TargetName: kernel.OrNull(e.TargetName), TargetExists: e.TargetExists, Via: kernel.OrNull(e.Via), Address: kernel.OrNull(e.Address), RequestID: kernel.OrNull(e.RequestID), Hash: e.Hash,
	}
}

const (
	auditMost = 500
	auditPage = 100
)

func auditFilter(x *kernel.Exchange) (f audit.Filter, err error) {
	q := x.Request.URL.Query()
	f.Actor, f.Action = q.Get("actor"), q.Get("action")
	for name, into := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := q.Get(name); q.Has(name) {
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				d := fault.Detail{Path: name, Message: "is no time such as 2026-03-02T09:15:00Z"}
				return f, fault.Problems([]fault.Detail{d}, "%s", kernel.Sentence(d))
			}
		}
	}
	place, err := kernel.Cursor(x.Request)
	if err != nil || place == "" {
		return f, err
	}
	if f.Before, err = strconv.ParseInt(place, 10, 64); err != nil {
		d := fault.Detail{Path: "cursor", Message: "is none of ours"}
		return f, fault.Problems([]fault.Detail{d}, "%s", kernel.Sentence(d))
	}
	return f, nil
}

// ListAudit answers GET /api/audit.
func (a *API) ListAudit(x *kernel.Exchange) (kernel.Answer, error) {
	return list(x, func(ctx context.Context, f audit.Filter, limit int) ([]audit.Entry, bool, error) {
		return a.Audit.Entries(ctx, x.Caller, f, limit)
	})
}

// ListInstallation answers GET /api/operator/audit.
func (a *API) ListInstallation(x *kernel.Exchange) (kernel.Answer, error) {
	return list(x, a.Audit.OfInstallation)
}

// list answers with a page of the entries that are read.
func list(x *kernel.Exchange, read func(ctx context.Context, f audit.Filter, limit int) ([]audit.Entry, bool, error)) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, auditMost, auditPage)
	if err != nil {
		return kernel.Answer{}, err
	}
	f, err := auditFilter(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	entries, more, err := read(x.Context(), f, limit)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.AuditEntry, len(entries))
	for i, e := range entries {
		out[i] = EntryOut(e)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = kernel.AsCursor(strconv.FormatInt(entries[len(entries)-1].Seq, 10))
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

// ExportAudit streams all that the filter finds, newest first, as lines of JSON
// or as CSV.
func (a *API) ExportAudit(x *kernel.Exchange) (kernel.Answer, error) {
	f, err := auditFilter(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	format := cmp.Or(x.Request.URL.Query().Get("format"), "csv")
	write := map[string]func(io.Writer) func(audit.Entry) error{"csv": auditCSV, "jsonl": auditJSONL}[format]
	if write == nil {
		d := fault.Detail{Path: "format", Message: "is neither csv nor jsonl"}
		return kernel.Answer{}, fault.Problems([]fault.Detail{d}, "%s", kernel.Sentence(d))
	}
	media := map[string]string{"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}[format]
	return kernel.Answer{Stream: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Disposition", `attachment; filename="audit.`+format+`"`)
		put := write(w)
		for more := true; more; {
			var list []audit.Entry
			if list, more, err = a.Audit.Entries(x.Context(), x.Caller, f, auditMost); err != nil {
				a.Log.ErrorContext(x.Context(), "an export of the audit log broke off", slog.String("request_id", x.ID), slog.Any("error", err))
				panic(http.ErrAbortHandler)
			}
			for _, e := range list {
				if put(e) != nil {
					return // nobody reads any more
				}
				f.Before = e.Seq
			}
		}
	}}, nil
}

func auditJSONL(w io.Writer) func(audit.Entry) error {
	lines := json.NewEncoder(w)
	return func(e audit.Entry) error { return lines.Encode(EntryOut(e)) }
}

func auditCSV(w io.Writer) func(audit.Entry) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"seq", "at", "actor type", "actor id", "actor name", "action", "target", "via", "address", "request id", "hash", "target name"})
	return func(e audit.Entry) error {
		_ = out.Write([]string{
			strconv.FormatInt(e.Seq, 10), e.At.Format(time.RFC3339Nano), e.Actor.Type, e.Actor.ID, kernel.Inert(e.Actor.Name), e.Action, kernel.Inert(e.Target), e.Via, e.Address, e.RequestID, e.Hash, kernel.Inert(e.TargetName),
		})
		out.Flush()
		return out.Error()
	}
}
