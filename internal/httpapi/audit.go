package httpapi

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
)

// deeds are what routes do, in the words of the audit log. A test walks all
// routes that change something and finds one entry for each.
var deeds = map[string]string{
	"GET /api/account/data": "team.exported", "DELETE /api/account/data": "team.erased", "PUT /api/team/retention": "team.retention_set",
	"POST /api/team/invite": "invitation.created", "POST /auth/teams/{id}/invitations": "invitation.created",
	"POST /auth/teams/{id}/invitations/{invId}/resend": "invitation.resent", "DELETE /auth/teams/{id}/invitations/{invId}": "invitation.revoked",
	"POST /auth/invitations/{token}/accept": "member.joined", "POST /invitations/{token}": "member.joined",
	"POST /auth/teams": "team.created", "PATCH /auth/teams/{id}": "team.renamed", "POST /auth/teams/{id}/activate": "session.team_chosen",
	"POST /auth/teams/{id}/leave": "member.left", "PATCH /auth/teams/{id}/members/{userId}": "member.role_changed",
	"DELETE /auth/teams/{id}/members/{userId}": "member.removed",

	"POST /api/workflows": "workflow.created", "PUT /api/workflows/{id}": "workflow.updated", "DELETE /api/workflows/{id}": "workflow.deleted",
	"POST /api/workflows/{id}/revisions/{n}/restore": "workflow.restored", "POST /api/results/copy": "workflow.created",
	"POST /api/runs": "run.started", "POST /api/runs/{id}/retry": "run.started", "POST /api/sweeps": "sweep.started",
	"POST /api/runs/{id}/cancel": "run.cancelled", "PATCH /api/runs/{id}": "run.labelled",
	"POST /api/runs/{id}/links": "result_link.created", "DELETE /api/runs/{id}/links": "result_link.revoked",
	"POST /api/files/presign": "file.upload_allowed", "POST /api/files/delete": "file.deleted", "POST /api/files/delete-run": "run.files_deleted",
	"POST /api/collab/invites": "share_link.created", "DELETE /api/collab/invites": "share_link.revoked", "POST /api/collab/join": "guest.joined",
	"POST /api/ai/analyze": "analysis.requested", "POST /api/ai/upload": "analysis.requested",

	"PUT /api/secrets/{name}": "secret.set", "DELETE /api/secrets/{name}": "secret.deleted",
	"POST /api/service-accounts": "service_account.created", "DELETE /api/service-accounts/{id}": "service_account.deleted",
	"POST /api/service-accounts/{id}/tokens": "token.created", "DELETE /api/service-accounts/{id}/tokens/{tokenId}": "token.revoked",
	"POST /api/service-accounts/{id}/tokens/{tokenId}/rotate": "token.rotated",
	"POST /auth/api-tokens":                                   "token.created", "POST /auth/api-tokens/{id}/rotate": "token.rotated", "DELETE /auth/api-tokens": "token.revoked",

	"POST /api/billing/topup": "topup.started", "POST /api/billing/checkout": "topup.started",
	"POST /webhooks/stripe": "payment.reported", "POST /checkout/{secret}": "payment.reported",

	"POST /auth/sign-up": "account.created", "POST /sign-up": "account.created",
	"POST /auth/sign-in": "session.started", "POST /sign-in": "session.started", "POST /sign-in/code": "session.started",
	"GET /auth/oidc/{provider}/callback": "session.started",
	"POST /auth/sign-out":                "session.ended", "POST /sign-out": "session.ended", "DELETE /auth/sessions/{id}": "session.revoked",
	"DELETE /auth/apps/{id}": "app.revoked", "POST /oauth/authorize": "app.allowed", "POST /device": "app.allowed", "POST /oauth/revoke": "app.signed_out",
	"POST /auth/verify": "account.verification", "POST /verify/{token}": "account.verification",
	"POST /auth/reset/{token}": "account.password_reset", "POST /reset/{token}": "account.password_reset",
	"POST /auth/password": "account.password_changed", "POST /auth/second-factor": "account.second_factor_changed",
}

// arm has what the route does put on record, with what is known of who does it.
func (x *exchange) arm() {
	action := deeds[x.rt.pattern]
	if action == "" {
		return
	}
	d := &audit.Deed{Entry: audit.Entry{
		At: x.started, Action: action, Chain: audit.ChainOf(x.caller.Team), Target: x.target(), Via: x.via(), Address: x.address(), RequestID: x.id,
	}}
	switch {
	case x.caller.Guest != nil:
		d.Actor = audit.Actor{Type: "guest", ID: x.caller.Guest.ID, Name: x.caller.Name}
	case x.signedIn():
		d.Actor = audit.Actor{Type: "user", ID: string(x.presence.User.ID), Name: x.presence.User.Name}
	}
	if team := x.r.PathValue("id"); strings.Contains(x.rt.pattern, "/auth/teams/{id}") {
		if _, ok := x.presence.Team(team); ok {
			d.Chain = team
		}
	}
	if action == "team.erased" { // what is on record of a team goes with it
		d.Chain, d.Target = audit.Installation, string(x.caller.Team)
	}
	x.r = x.r.WithContext(audit.With(x.ctx(), d))
}

// target is what the path or the query names; never what is secret in a path.
func (x *exchange) target() string {
	for _, name := range []string{"tokenId", "userId", "invId", "name", "id"} {
		if v := x.r.PathValue(name); v != "" && printable(v) {
			return v[:min(len(v), 200)]
		}
	}
	if v := x.r.URL.Query().Get("id"); printable(v) {
		return v[:min(len(v), 200)]
	}
	return ""
}

// via is by what the actor is who they are.
func (x *exchange) via() string {
	if !x.signedIn() {
		return ""
	}
	return cmp.Or(x.presence.Grant, "session")
}

func auditOut(e audit.Entry) api.AuditEntry {
	return api.AuditEntry{
		Seq: int(e.Seq), At: api.At(e.At), Actor: api.AuditActor{Type: api.AuditActorType(cmp.Or(e.Actor.Type, "system")), ID: orNull(e.Actor.ID), Name: orNull(e.Actor.Name)},
		Action: e.Action, Target: orNull(e.Target), Via: orNull(e.Via), Address: orNull(e.Address), RequestID: orNull(e.RequestID), Hash: e.Hash,
	}
}

const (
	auditMost = 500
	auditPage = 100
)

func (x *exchange) auditFilter() (f audit.Filter, err error) {
	q := x.r.URL.Query()
	f.Actor, f.Action = q.Get("actor"), q.Get("action")
	for name, into := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := q.Get(name); text != "" {
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				d := fault.Detail{Path: name, Message: "is no time such as 2026-03-02T09:15:00Z"}
				return f, fault.Problems([]fault.Detail{d}, "%s", sentence(d))
			}
		}
	}
	place, err := cursor(x.r)
	if err != nil || place == "" {
		return f, err
	}
	if f.Before, err = strconv.ParseInt(place, 10, 64); err != nil {
		d := fault.Detail{Path: "cursor", Message: "is none of ours"}
		return f, fault.Problems([]fault.Detail{d}, "%s", sentence(d))
	}
	return f, nil
}

func (a *API) listAudit(x *exchange) (answer, error) {
	limit, err := number(x.r, "limit", 1, auditMost, auditPage)
	if err != nil {
		return answer{}, err
	}
	f, err := x.auditFilter()
	if err != nil {
		return answer{}, err
	}
	list, more, err := a.Audit.Entries(x.ctx(), x.caller, f, limit)
	if err != nil {
		return answer{}, err
	}
	out := make([]api.AuditEntry, len(list))
	for i, e := range list {
		out[i] = auditOut(e)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = asCursor(strconv.FormatInt(list[len(list)-1].Seq, 10))
	}
	return answer{data: out, page: page}, nil
}

// exportAudit streams all that the filter finds, newest first, as lines of JSON
// or as CSV.
func (a *API) exportAudit(x *exchange) (answer, error) {
	f, err := x.auditFilter()
	if err != nil {
		return answer{}, err
	}
	format := cmp.Or(x.r.URL.Query().Get("format"), "csv")
	write := map[string]func(io.Writer) func(audit.Entry) error{"csv": auditCSV, "jsonl": auditJSONL}[format]
	if write == nil {
		d := fault.Detail{Path: "format", Message: "is neither csv nor jsonl"}
		return answer{}, fault.Problems([]fault.Detail{d}, "%s", sentence(d))
	}
	media := map[string]string{"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}[format]
	return answer{stream: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Disposition", `attachment; filename="audit.`+format+`"`)
		put := write(w)
		for more := true; more; {
			var list []audit.Entry
			if list, more, err = a.Audit.Entries(x.ctx(), x.caller, f, auditMost); err != nil {
				a.Log.ErrorContext(x.ctx(), "an export of the audit log broke off", slog.String("request_id", x.id), slog.Any("error", err))
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
	return func(e audit.Entry) error { return lines.Encode(auditOut(e)) }
}

func auditCSV(w io.Writer) func(audit.Entry) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"seq", "at", "actor type", "actor id", "actor name", "action", "target", "via", "address", "request id", "hash"})
	return func(e audit.Entry) error {
		_ = out.Write([]string{
			strconv.FormatInt(e.Seq, 10), e.At.Format(time.RFC3339Nano), e.Actor.Type, e.Actor.ID, inert(e.Actor.Name), e.Action, inert(e.Target), e.Via, e.Address, e.RequestID, e.Hash,
		})
		out.Flush()
		return out.Error()
	}
}

// inert keeps a spreadsheet from taking somebody's name for a formula.
func inert(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
