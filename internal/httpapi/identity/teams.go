package identity

import (
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

func team(x *kernel.Exchange) ids.Team { return ids.Team(x.Request.PathValue("id")) }

func teamRow(m identity.Membership) api.TeamRow {
	return api.TeamRow{ID: string(m.Team.ID), Name: m.Team.Name, Role: api.Role(m.Role), Plan: api.Plan(m.Team.Plan), JoinedAt: api.At(m.JoinedAt)}
}

// ListTeams answers GET /auth/teams.
func (a *API) ListTeams(x *kernel.Exchange) (kernel.Answer, error) {
	out := make([]api.TeamRow, len(x.Presence.Memberships))
	for i, m := range x.Presence.Memberships {
		out[i] = teamRow(m)
	}
	return kernel.OK(out)
}

// CreateTeam answers POST /auth/teams.
func (a *API) CreateTeam(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewTeam](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	m, err := a.BuiltIn.Teams.Create(x.Context(), x.Presence, in.Name, x.CountedBy)
	return kernel.Answer{Status: http.StatusCreated, Data: teamRow(m)}, err
}

// RenameTeam answers PATCH /auth/teams/{id}.
func (a *API) RenameTeam(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.TeamRename](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	m, err := a.BuiltIn.Teams.Rename(x.Context(), x.Presence, team(x), in.Name)
	return kernel.Answer{Data: teamRow(m)}, err
}

// ActivateTeam answers POST /auth/teams/{id}/activate.
func (a *API) ActivateTeam(x *kernel.Exchange) (kernel.Answer, error) {
	m, err := a.BuiltIn.Teams.Activate(x.Context(), x.Presence, team(x))
	return kernel.Answer{Data: teamOut(m)}, err
}

// LeaveTeam answers POST /auth/teams/{id}/leave.
func (a *API) LeaveTeam(x *kernel.Exchange) (kernel.Answer, error) {
	err := a.BuiltIn.Teams.Leave(x.Context(), x.Presence, team(x))
	return kernel.Answer{Data: map[string]any{"left": true, "id": team(x)}}, err
}

// MemberOut is a member as the API shows it.
func MemberOut(m builtin.Member) api.Member {
	return api.Member{ID: string(m.ID), Name: m.Name, Email: m.Email, Role: api.Role(m.Role), JoinedAt: api.At(m.JoinedAt)}
}

// ListMembers answers GET /auth/teams/{id}/members.
func (a *API) ListMembers(x *kernel.Exchange) (kernel.Answer, error) {
	members, pending, err := a.BuiltIn.Members(x.Context(), x.Presence, team(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.Members{Members: []api.Member{}, Invitations: []api.TeamInvitation{}}
	for _, m := range members {
		out.Members = append(out.Members, MemberOut(m))
	}
	for _, i := range pending {
		out.Invitations = append(out.Invitations, InvitationOut(i, a.Now()))
	}
	return kernel.OK(out)
}

// ChangeRole answers PATCH /auth/teams/{id}/members/{userId}.
func (a *API) ChangeRole(x *kernel.Exchange) (kernel.Answer, error) {
	user := ids.User(x.Request.PathValue("userId"))
	if err := a.mayChange(x, user); err != nil {
		return kernel.Answer{}, err
	}
	in, err := kernel.Decode[api.RoleChange](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	m, err := a.BuiltIn.Teams.ChangeRole(x.Context(), x.Presence, team(x), user, access.Role(in.Role))
	return kernel.Answer{Data: MemberOut(m)}, err
}

// mayChange refuses who is no member, or one whom the caller may not change, before
// the body is looked at.
func (a *API) mayChange(x *kernel.Exchange, user ids.User) error {
	members, _, err := a.BuiltIn.Members(x.Context(), x.Presence, team(x))
	if err != nil {
		return err
	}
	at := slices.IndexFunc(members, func(m builtin.Member) bool { return m.ID == user })
	if at < 0 {
		return fault.NotFound("no such member")
	}
	return x.Membership.Role.MayTouch(members[at].Role)
}

// RemoveMember answers DELETE /auth/teams/{id}/members/{userId}.
func (a *API) RemoveMember(x *kernel.Exchange) (kernel.Answer, error) {
	user := x.Request.PathValue("userId")
	err := a.BuiltIn.Teams.RemoveMember(x.Context(), x.Presence, team(x), ids.User(user))
	return kernel.Answer{Data: api.Deleted{Deleted: true, ID: user}}, err
}

// InvitationOut is an invitation as the API shows it.
func InvitationOut(i identity.Invitation, now time.Time) api.TeamInvitation {
	return api.TeamInvitation{
		ID: string(i.ID), Email: i.Email, Role: api.Role(i.Role), Status: api.InvitationStatus(i.Status(now)),
		CreatedAt: api.At(i.CreatedAt), ExpiresAt: api.At(i.ExpiresAt),
		InvitedBy: api.Person{ID: string(i.InvitedBy), Name: i.InvitedByName}, Mailed: i.Mailed,
	}
}

// invitationLink is where a mail leads: the page of the frontend that the
// inviting person uses.
func invitationLink(x *kernel.Exchange) func(token string) string {
	return func(token string) string { return x.Base() + "/invitations/" + token }
}

// InviteMember answers POST /api/team/invite.
func (a *API) InviteMember(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewTeamInvitation](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if access.Role(in.Role) == access.Admin { // who stays when the token is revoked
		if err := x.MustBeWhole(); err != nil {
			return kernel.Answer{}, err
		}
	}
	n := newInvitation(x, string(in.Email), string(in.Role))
	n.Once = func(i identity.MadeInvitation) (*access.IdempotencyRecord, error) {
		return x.Record(a.madeInvitation(x, i))
	}
	i, err := a.Identity.Invite(x.Context(), x.Caller, n)
	return a.madeInvitation(x, i), err
}

func newInvitation(x *kernel.Exchange, email, role string) identity.NewInvitation {
	return identity.NewInvitation{
		Email: email, Role: access.Role(role), Verified: x.Presence.User.EmailVerified, ClientPrefix: x.ClientPrefix(),
		Link: invitationLink(x), Counted: x.CountedBy,
	}
}

func (a *API) madeInvitation(x *kernel.Exchange, i identity.MadeInvitation) kernel.Answer {
	out := InvitationOut(i.Invitation, a.Now())
	if i.Link != "" {
		out.Link = &i.Link
	}
	return kernel.Answer{Status: http.StatusCreated, Data: out}
}

// CreateInvitation answers POST /auth/teams/{id}/invitations.
func (a *API) CreateInvitation(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewInvitation](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	i, err := a.BuiltIn.Invitations.InviteTo(x.Context(), x.Presence, team(x), newInvitation(x, string(in.Email), string(in.Role)))
	return a.madeInvitation(x, i), err
}

// ResendInvitation answers POST /auth/teams/{id}/invitations/{invId}/resend.
func (a *API) ResendInvitation(x *kernel.Exchange) (kernel.Answer, error) {
	i, err := a.BuiltIn.Invitations.Resend(x.Context(), x.Presence, team(x), ids.Invitation(x.Request.PathValue("invId")), visit(x), invitationLink(x))
	ans := a.madeInvitation(x, i)
	ans.Status = http.StatusOK
	return ans, err
}

// RevokeInvitation answers DELETE /auth/teams/{id}/invitations/{invId}.
func (a *API) RevokeInvitation(x *kernel.Exchange) (kernel.Answer, error) {
	id := x.Request.PathValue("invId")
	err := a.BuiltIn.Invitations.Revoke(x.Context(), x.Presence, team(x), ids.Invitation(id))
	return kernel.Answer{Data: map[string]any{"revoked": true, "id": id}}, err
}

// GetInvitation answers GET /auth/invitations/{token}.
func (a *API) GetInvitation(x *kernel.Exchange) (kernel.Answer, error) {
	i, err := a.BuiltIn.Invitations.Find(x.Context(), x.Request.PathValue("token"))
	return kernel.Answer{Data: api.InvitationView{
		Team:  api.InvitingTeam{ID: string(i.Team.ID), Name: i.Team.Name},
		Email: i.Email, Role: api.Role(i.Role), Status: api.InvitationStatus(i.Status(a.Now())),
		InvitedBy: api.Person{ID: string(i.InvitedBy), Name: i.InvitedByName}, ExpiresAt: api.At(i.ExpiresAt),
	}}, err
}

// AcceptInvitation answers POST /auth/invitations/{token}/accept.
func (a *API) AcceptInvitation(x *kernel.Exchange) (kernel.Answer, error) {
	m, err := a.BuiltIn.Invitations.Accept(x.Context(), x.Presence, x.Request.PathValue("token"))
	return kernel.Answer{Data: teamOut(m)}, err
}
