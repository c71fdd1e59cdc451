package kernel

import (
	"cmp"
	"strings"

	"github.com/millrace/millrace/internal/audit"
)

// putOnRecord has what the route does put on record, with what is known of who does it.
func (x *Exchange) putOnRecord() {
	action := x.server.Actions[x.Route.Pattern]
	if action == "" {
		return
	}
	entry := &audit.Pending{Entry: audit.Entry{
		At: x.started, Action: action, Chain: audit.ChainOf(x.Caller.Team), Target: x.target(), Via: x.via(), Address: x.Address(), RequestID: x.ID,
	}}
	switch {
	case x.Caller.Guest != nil:
		entry.Actor = audit.Actor{Type: "guest", ID: x.Caller.Guest.ID, Name: x.Caller.Name}
	case x.SignedIn():
		entry.Actor = audit.Actor{Type: "user", ID: string(x.Presence.User.ID), Name: x.Presence.User.Name}
		if x.server.CountsChanges(x.Route) {
			entry.Allowance = x.server.ChangesPerDay
		}
	}
	if x.Route.Who == Operator { // in the log of the team that it concerns, which the store knows
		entry.Actor.Type, entry.Chain = "operator", ""
	}
	if team := x.Request.PathValue("id"); strings.Contains(x.Route.Pattern, "/auth/teams/{id}") {
		if _, ok := x.Presence.Team(team); ok {
			entry.Chain = team
		}
	}
	if action == "team.erased" { // what is on record of a team goes with it, its id too
		entry.Chain, entry.Target = audit.Installation, ""
	}
	if action == "account.deleted" { // by then its person belongs to no team
		entry.Chain = audit.Installation
	}
	x.Request = x.Request.WithContext(audit.With(x.Context(), entry))
}

// CountsChanges reports whether what a route does counts against the daily allowance of the
// account that calls it, so that the route may refuse it with 429. What operators do does not.
func (s *Server) CountsChanges(rt Route) bool {
	action := s.Actions[rt.Pattern]
	return action != "" && rt.Who != Anybody && rt.Who != Operator && !s.Uncounted[action]
}

// target is what the path or the query names; never what is secret in a path.
func (x *Exchange) target() string {
	for _, name := range []string{"tokenId", "userId", "invId", "scheduleId", "triggerId", "deliveryId", "name", "id"} {
		if v := x.Request.PathValue(name); v != "" && Printable(v) {
			return cut(v)
		}
	}
	if v := x.Request.URL.Query().Get("id"); Printable(v) {
		return cut(v)
	}
	return ""
}

// cut is the beginning of a text, in whole characters: no database takes others.
func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), 200)], "") }

// via is by what the actor is who they are.
func (x *Exchange) via() string {
	if !x.SignedIn() {
		return ""
	}
	return cmp.Or(x.Presence.Grant, "session")
}
