package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/domain/once"
	"github.com/millrace/millrace/internal/sharing"
)

func (a *API) inviteOut(i sharing.Invite) api.CollabInvite {
	out := api.CollabInvite{
		ID: string(i.ID), WorkflowID: string(i.Workflow), Role: api.InviteRole(i.Role), Status: api.InviteStatus(i.Status(a.Now())),
		ExpiresInHours: i.Hours, ExpiresAt: api.At(i.ExpiresAt), Uses: i.Uses, TokenHint: i.TokenHint, AllowSecrets: i.AllowSecrets,
		CreatedAt: api.At(i.CreatedAt), CreatedBy: api.Person{ID: string(i.CreatedBy), Name: i.CreatedByName},
		LastUsedAt: timeOrNull(i.LastUsedAt), RevokedAt: timeOrNull(i.RevokedAt),
	}
	if i.MaxUses > 0 {
		out.MaxUses = &i.MaxUses
	}
	if i.MaxCredits > 0 {
		most := i.MaxCredits.Float()
		out.MaxCredits = &most
	}
	return out
}

func (x *exchange) createdInvite(i sharing.Invite, token string) answer {
	o := x.api.inviteOut(i)
	return answer{status: http.StatusCreated, data: api.CreatedCollabInvite{
		ID: o.ID, WorkflowID: o.WorkflowID, Role: o.Role, Status: o.Status, ExpiresInHours: o.ExpiresInHours, ExpiresAt: o.ExpiresAt,
		MaxUses: o.MaxUses, Uses: o.Uses, MaxCredits: o.MaxCredits, AllowSecrets: o.AllowSecrets, TokenHint: o.TokenHint, CreatedAt: o.CreatedAt, CreatedBy: o.CreatedBy,
		LastUsedAt: o.LastUsedAt, RevokedAt: o.RevokedAt, Token: token, Link: x.base() + "/join#" + token,
	}}
}

func (a *API) createInvite(x *exchange) (answer, error) {
	in, err := decode[api.NewCollabInvite](x)
	if err != nil {
		return answer{}, err
	}
	if in.WorkflowID != "" {
		if err := x.mustHave(in.WorkflowID); err != nil {
			return answer{}, err
		}
	}
	n := sharing.New{
		Workflow: ids.Workflow(in.WorkflowID), Role: sharing.Role(in.Role), Hours: given0(in.ExpiresInHours), MaxUses: given0(in.MaxUses),
		Once: func(i sharing.Invite, token string) (*once.Record, error) { return x.record(x.createdInvite(i, token)) },
	}
	if in.AllowSecrets != nil {
		n.AllowSecrets = *in.AllowSecrets
	}
	if in.MaxCredits != nil {
		if n.MaxCredits, err = credits.FromFloat(*in.MaxCredits); err != nil || n.MaxCredits <= 0 {
			n.MaxCredits = -1
		}
	}
	i, token, err := a.Sharing.Create(x.ctx(), x.caller, n)
	return x.createdInvite(i, token), err
}

// given0 is a number that may be left out; a zero that was written is as wrong
// as a negative one.
func given0(n *int) int {
	switch {
	case n == nil:
		return 0
	case *n == 0:
		return -1
	}
	return *n
}

// mustHave is nil if the caller's team has the workflow.
func (x *exchange) mustHave(id string) error {
	if !printable(id) {
		return fault.NotFound("no such workflow")
	}
	_, err := x.api.Workflows.Workflow(x.ctx(), x.caller, ids.Workflow(id))
	return err
}

// inQuery reads what the query must name.
func (x *exchange) inQuery(name string) (string, error) {
	v := x.r.URL.Query().Get(name)
	if v == "" {
		d := fault.Detail{Path: name, Message: "is missing from the query"}
		return "", fault.Problems([]fault.Detail{d}, "%s", sentence(d))
	}
	if !printable(v) {
		return "", fault.NotFound("there is nothing with this %s", name)
	}
	return v, nil
}

func (a *API) listInvites(x *exchange) (answer, error) {
	id, err := x.inQuery("workflowId")
	if err != nil {
		return answer{}, err
	}
	list, err := a.Sharing.Invites(x.ctx(), x.caller, ids.Workflow(id))
	if err != nil {
		return answer{}, err
	}
	out := make([]api.CollabInvite, len(list))
	for i, one := range list {
		out[i] = a.inviteOut(one)
	}
	return ok(out)
}

func (a *API) revokeInvite(x *exchange) (answer, error) {
	id, err := x.inQuery("id")
	if err != nil {
		return answer{}, err
	}
	err = a.Sharing.Revoke(x.ctx(), x.caller, ids.Invite(id))
	return answer{data: api.Revoked{Revoked: true, ID: id}}, err
}

const (
	guestCookie     = "millrace_guest"
	guestCookieLife = 400 * 24 * time.Hour // the most that browsers keep
)

// joinsLimit slows down whoever tries tokens.
func (a *API) joinsLimit() *addressLimit {
	return &addressLimit{name: "joins", window: limits.Window{Most: 120, Per: time.Minute}}
}

func (a *API) joinWorkflow(x *exchange) (answer, error) {
	in, err := decode[api.JoinRequest](x)
	if err == nil {
		err = named("invite", in.Invite)
	}
	if err != nil {
		return answer{}, err
	}
	name := ""
	if in.Name != nil {
		name = *in.Name
	}
	cookie := ""
	if c, err := x.r.Cookie(guestCookie); err == nil {
		cookie = c.Value
	}
	visitor, isNew := a.Sharing.Visitor(cookie)
	j, err := a.Sharing.Join(x.ctx(), in.Invite, name, visitor, ids.NewGuest)
	if err != nil {
		return answer{}, err
	}
	w, err := a.Workflows.Shared(x.ctx(), j.Caller())
	if err != nil {
		return answer{}, err
	}
	pass, err := a.Sharing.GuestPass(x.ctx(), j)
	if err != nil {
		return answer{}, err
	}
	token, err := a.Sharing.Sign(pass)
	if err != nil {
		return answer{}, err
	}
	ans := answer{data: api.Joined{
		Workflow: api.SharedWorkflow{ID: string(w.ID), Name: w.Name, Description: w.Description, Definition: json.RawMessage(w.Definition), Revision: w.Revision},
		Role:     api.InviteRole(j.Invite.Role), Guest: api.Guest{ID: j.Guest.ID, Name: j.Guest.Name, Color: pass.Color},
		Room: pass.Room(), RoomToken: token, CollabURL: x.collabURL(), ExpiresAt: api.At(pass.ExpiresAt()), RunToken: orNull(j.RunToken),
	}}
	if isNew {
		ans = ans.with("Set-Cookie", x.guestCookie(visitor))
	}
	return ans, nil
}

func (x *exchange) guestCookie(visitor string) string {
	c := http.Cookie{
		Name: guestCookie, Value: visitor, Path: "/api/collab/", MaxAge: int(guestCookieLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !loopback(x.base()),
	}
	return c.String()
}

// collabURL is where the editor's socket is.
func (x *exchange) collabURL() string {
	if x.api.CollabURL != "" {
		return x.api.CollabURL
	}
	return "ws" + strings.TrimPrefix(x.base(), "http")
}

func (a *API) createRoomToken(x *exchange) (answer, error) {
	var in api.RoomTokenRequest
	if len(x.body) > 0 {
		var err error
		if in, err = decode[api.RoomTokenRequest](x); err != nil {
			return answer{}, err
		}
	}
	if in.WorkflowID == nil || *in.WorkflowID == "" {
		id, err := x.inQuery("workflowId")
		if err != nil {
			return answer{}, err
		}
		in.WorkflowID = &id
	}
	if !printable(*in.WorkflowID) {
		return answer{}, fault.NotFound("no such workflow")
	}
	pass, err := a.Sharing.MemberPass(x.ctx(), x.caller, x.presence.By(), ids.Workflow(*in.WorkflowID))
	if err != nil {
		return answer{}, err
	}
	token, err := a.Sharing.Sign(pass)
	return answer{data: api.RoomToken{
		Token: token, Room: pass.Room(), CollabURL: x.collabURL(), Role: api.InviteRole(pass.Role), ExpiresAt: api.At(pass.ExpiresAt()),
	}}, err
}

// Editor is the host of the editor rooms.
type Editor interface {
	// Admit checks the token of somebody who wants to enter a room, before
	// anything is upgraded. What it returns serves the socket to its end.
	Admit(r *http.Request, room string) (serve func(http.ResponseWriter, *http.Request), err error)
}

// openEditor lets a socket into a room. Where it comes from is checked here,
// what its token says by the host.
func (a *API) openEditor(x *exchange) (answer, error) {
	if o := x.r.Header.Get("Origin"); o != "" && !x.known(o) {
		return answer{}, fault.Forbidden("this socket comes from a page of another site; if that site is yours, add it to --public-urls").WithCode("cross_origin")
	}
	serve, err := a.Editor.Admit(x.r, x.r.PathValue("room"))
	if err != nil {
		return answer{}, err
	}
	return answer{stream: serve}, nil
}
