package sharing

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/sharing"
)

// InviteOut is a share link as the API shows it.
func InviteOut(i sharing.Invite, now time.Time) api.CollabInvite {
	out := api.CollabInvite{
		ID: string(i.ID), WorkflowID: string(i.Workflow), Role: api.InviteRole(i.Role), Status: api.InviteStatus(i.Status(now)),
		ExpiresInHours: i.Hours, ExpiresAt: api.At(i.ExpiresAt), Uses: i.Uses, TokenHint: i.TokenHint, AllowSecrets: i.AllowSecrets, AllowResults: i.AllowResults,
		CreatedAt: api.At(i.CreatedAt), CreatedBy: api.Person{ID: string(i.CreatedBy), Name: i.CreatedByName},
		LastUsedAt: kernel.TimeOrNull(i.LastUsedAt), RevokedAt: kernel.TimeOrNull(i.RevokedAt),
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

func (a *API) createdInvite(x *kernel.Exchange, i sharing.Invite, token string) kernel.Answer {
	o := InviteOut(i, a.Now())
	return kernel.Answer{Status: http.StatusCreated, Data: api.CreatedCollabInvite{
		ID: o.ID, WorkflowID: o.WorkflowID, Role: o.Role, Status: o.Status, ExpiresInHours: o.ExpiresInHours, ExpiresAt: o.ExpiresAt,
		MaxUses: o.MaxUses, Uses: o.Uses, MaxCredits: o.MaxCredits, AllowSecrets: o.AllowSecrets, AllowResults: o.AllowResults, TokenHint: o.TokenHint, CreatedAt: o.CreatedAt, CreatedBy: o.CreatedBy,
		LastUsedAt: o.LastUsedAt, RevokedAt: o.RevokedAt, Token: token, Link: x.Base() + "/join#" + token,
	}}
}

// CreateInvite answers POST /api/collab/invites.
func (a *API) CreateInvite(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewCollabInvite](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if in.WorkflowID != "" {
		if err := a.mustHave(x, in.WorkflowID); err != nil {
			return kernel.Answer{}, err
		}
	}
	n := sharing.New{
		Workflow: ids.Workflow(in.WorkflowID), Role: sharing.Role(in.Role), Hours: given0(in.ExpiresInHours), MaxUses: given0(in.MaxUses),
		Once: func(i sharing.Invite, token string) (*access.IdempotencyRecord, error) {
			return x.Record(a.createdInvite(x, i, token))
		},
	}
	n.AllowSecrets, n.AllowResults = isTrue(in.AllowSecrets), isTrue(in.AllowResults)
	if in.MaxCredits != nil {
		if n.MaxCredits, err = credits.FromFloat(*in.MaxCredits); err != nil || n.MaxCredits <= 0 {
			n.MaxCredits = -1
		}
	}
	i, token, err := a.Sharing.Create(x.Context(), x.Caller, n)
	return a.createdInvite(x, i, token), err
}

// isTrue is a choice that may be left out.
func isTrue(b *bool) bool { return b != nil && *b }

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
func (a *API) mustHave(x *kernel.Exchange, id string) error {
	if !kernel.Printable(id) {
		return fault.NotFound("no such workflow")
	}
	_, err := a.Workflows.Workflow(x.Context(), x.Caller, ids.Workflow(id))
	return err
}

// ListInvites answers GET /api/collab/invites.
func (a *API) ListInvites(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := x.InQuery("workflowId")
	if err != nil {
		return kernel.Answer{}, err
	}
	list, err := a.Sharing.Invites(x.Context(), x.Caller, ids.Workflow(id))
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.CollabInvite, len(list))
	for i, one := range list {
		out[i] = InviteOut(one, a.Now())
	}
	return kernel.OK(out)
}

// RevokeInvite answers DELETE /api/collab/invites.
func (a *API) RevokeInvite(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := x.InQuery("id")
	if err != nil {
		return kernel.Answer{}, err
	}
	err = a.Sharing.Revoke(x.Context(), x.Caller, ids.Invite(id))
	return kernel.Answer{Data: api.Revoked{Revoked: true, ID: id}}, err
}

const (
	guestCookie     = "millrace_guest"
	guestCookieLife = 400 * 24 * time.Hour // the most that browsers keep
)

// JoinsLimit slows down whoever tries tokens.
func (a *API) JoinsLimit() *kernel.AddressLimit {
	return &kernel.AddressLimit{Name: "joins", Window: limits.Window{Most: 120, Per: time.Minute}}
}

// JoinWorkflow answers POST /api/collab/join.
func (a *API) JoinWorkflow(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.JoinRequest](x)
	if err == nil {
		err = kernel.Required("invite", in.Invite)
	}
	if err != nil {
		return kernel.Answer{}, err
	}
	name := ""
	if in.Name != nil {
		name = *in.Name
	}
	cookie := ""
	if c, err := x.Request.Cookie(guestCookie); err == nil {
		cookie = c.Value
	}
	visitor, isNew := a.Sharing.Visitor(cookie)
	j, err := a.Sharing.Join(x.Context(), in.Invite, name, visitor, ids.NewGuest)
	if err != nil {
		return kernel.Answer{}, err
	}
	joined, err := a.joinedOut(x, j)
	ans := kernel.Answer{Data: joined}
	if isNew && err == nil {
		ans = ans.With("Set-Cookie", setGuestCookie(x, visitor))
	}
	return ans, err
}

// joinedOut is what a guest who was let in gets.
func (a *API) joinedOut(x *kernel.Exchange, j sharing.Joined) (api.Joined, error) {
	w, err := a.Workflows.Shared(x.Context(), j.Caller())
	if err != nil {
		return api.Joined{}, err
	}
	pass, err := a.Sharing.GuestPass(x.Context(), j)
	if err != nil {
		return api.Joined{}, err
	}
	token, err := a.Sharing.Sign(pass)
	if err != nil {
		return api.Joined{}, err
	}
	out := api.Joined{
		Workflow: api.SharedWorkflow{ID: string(w.ID), Name: w.Name, Description: w.Description, Definition: json.RawMessage(w.Definition), Revision: w.Revision},
		Role:     api.InviteRole(pass.Role), Guest: api.Guest{ID: j.Guest.ID, Name: j.Guest.Name, Color: pass.Color},
		Room: pass.Room(), RoomToken: token, CollabURL: a.collabURL(x), ExpiresAt: api.At(pass.ExpiresAt()), RunToken: kernel.OrNull(j.RunToken),
	}
	if j.RunToken != "" {
		out.RunSizes, err = a.runSizes(x, j)
	}
	return out, err
}

// runSizes are the sizes that the runs of a guest can have.
func (a *API) runSizes(x *kernel.Exchange, j sharing.Joined) (*api.RunSizes, error) {
	sizes, err := a.Runs.Sizes(x.Context(), j.Caller())
	out := &api.RunSizes{Capacities: make([]api.Compute, len(sizes.Capacities)), Gpu: sizes.GPU}
	for i, c := range sizes.Capacities {
		out.Capacities[i] = api.Compute{Vcpu: c.VCPU, RAMGb: c.RAMGB, Gpu: c.GPU}
	}
	return out, err
}

func setGuestCookie(x *kernel.Exchange, visitor string) string {
	c := http.Cookie{
		Name: guestCookie, Value: visitor, Path: "/api/collab/", MaxAge: int(guestCookieLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !kernel.Loopback(x.Base()),
	}
	return c.String()
}

// collabURL is where the editor's socket is.
func (a *API) collabURL(x *kernel.Exchange) string {
	if a.CollabURL != "" {
		return a.CollabURL
	}
	return "ws" + strings.TrimPrefix(x.Base(), "http")
}

// CreateRoomToken answers POST /api/collab/token.
func (a *API) CreateRoomToken(x *kernel.Exchange) (kernel.Answer, error) {
	var in api.RoomTokenRequest
	if len(x.Body) > 0 {
		var err error
		if in, err = kernel.Decode[api.RoomTokenRequest](x); err != nil {
			return kernel.Answer{}, err
		}
	}
	if in.WorkflowID == nil || *in.WorkflowID == "" {
		id, err := x.InQuery("workflowId")
		if err != nil {
			return kernel.Answer{}, err
		}
		in.WorkflowID = &id
	}
	if !kernel.Printable(*in.WorkflowID) {
		return kernel.Answer{}, fault.NotFound("no such workflow")
	}
	pass, err := a.Sharing.MemberPass(x.Context(), x.Caller, x.Presence.By(), ids.Workflow(*in.WorkflowID))
	if err != nil {
		return kernel.Answer{}, err
	}
	token, err := a.Sharing.Sign(pass)
	return kernel.Answer{Data: api.RoomToken{
		Token: token, Room: pass.Room(), CollabURL: a.collabURL(x), Role: api.InviteRole(pass.Role), ExpiresAt: api.At(pass.ExpiresAt()),
	}}, err
}

// Editor is the host of the editor rooms.
type Editor interface {
	// Admit checks the token of somebody who wants to enter a room, before
	// anything is upgraded. What it returns serves the socket to its end.
	Admit(r *http.Request, room string) (serve func(http.ResponseWriter, *http.Request), err error)
}

// OpenEditor lets a socket into a room. Where it comes from is checked here,
// what its token says by the host.
func (a *API) OpenEditor(x *kernel.Exchange) (kernel.Answer, error) {
	if o := x.Request.Header.Get("Origin"); o != "" && !x.Known(o) {
		return kernel.Answer{}, fault.Forbidden("this socket comes from a page of another site; if that site is yours, add it to --public-urls").WithCode("cross_origin")
	}
	serve, err := a.Editor.Admit(x.Request, x.Request.PathValue("room"))
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Stream: serve}, nil
}
