package httpapi

import (
	"net/http"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/once"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

func (x *exchange) team() ids.Team { return ids.Team(x.r.PathValue("id")) }

func teamRow(m identity.Membership) api.TeamRow {
	return api.TeamRow{ID: string(m.Team.ID), Name: m.Team.Name, Role: api.Role(m.Role), Plan: api.Plan(m.Team.Plan), JoinedAt: api.At(m.JoinedAt)}
}

func (a *API) listTeams(x *exchange) (answer, error) {
	out := make([]api.TeamRow, len(x.presence.Memberships))
	for i, m := range x.presence.Memberships {
		out[i] = teamRow(m)
	}
	return ok(out)
}

func (a *API) createTeam(x *exchange) (answer, error) {
	in, err := decode[api.NewTeam](x)
	if err != nil {
		return answer{}, err
	}
	m, err := a.BuiltIn.Teams.Create(x.ctx(), x.presence, in.Name, x.counted)
	return answer{status: http.StatusCreated, data: teamRow(m)}, err
}

func (a *API) renameTeam(x *exchange) (answer, error) {
	if _, err := x.presence.In(x.team()); err != nil {
		return answer{}, err
	}
	in, err := decode[api.TeamRename](x)
	if err != nil {
		return answer{}, err
	}
	m, err := a.BuiltIn.Teams.Rename(x.ctx(), x.presence, x.team(), in.Name)
	return answer{data: teamRow(m)}, err
}

func (a *API) activateTeam(x *exchange) (answer, error) {
	m, err := a.BuiltIn.Teams.Activate(x.ctx(), x.presence, x.team())
	return answer{data: teamOut(m)}, err
}

func (a *API) leaveTeam(x *exchange) (answer, error) {
	err := a.BuiltIn.Teams.Leave(x.ctx(), x.presence, x.team())
	return answer{data: map[string]any{"left": true, "id": x.team()}}, err
}

func memberOut(m builtin.Member) api.Member {
	return api.Member{ID: string(m.ID), Name: m.Name, Email: m.Email, Role: api.Role(m.Role), JoinedAt: api.At(m.JoinedAt)}
}

func (a *API) listMembers(x *exchange) (answer, error) {
	members, pending, err := a.BuiltIn.Members(x.ctx(), x.presence, x.team())
	if err != nil {
		return answer{}, err
	}
	out := api.Members{Members: []api.Member{}, Invitations: []api.TeamInvitation{}}
	for _, m := range members {
		out.Members = append(out.Members, memberOut(m))
	}
	for _, i := range pending {
		out.Invitations = append(out.Invitations, x.invitation(i))
	}
	return ok(out)
}

func (a *API) changeRole(x *exchange) (answer, error) {
	if _, err := x.presence.In(x.team()); err != nil {
		return answer{}, err
	}
	in, err := decode[api.RoleChange](x)
	if err != nil {
		return answer{}, err
	}
	m, err := a.BuiltIn.Teams.ChangeRole(x.ctx(), x.presence, x.team(), ids.User(x.r.PathValue("userId")), access.Role(in.Role))
	return answer{data: memberOut(m)}, err
}

func (a *API) removeMember(x *exchange) (answer, error) {
	user := x.r.PathValue("userId")
	err := a.BuiltIn.Teams.RemoveMember(x.ctx(), x.presence, x.team(), ids.User(user))
	return answer{data: api.Deleted{Deleted: true, ID: user}}, err
}

func (x *exchange) invitation(i identity.Invitation) api.TeamInvitation {
	return api.TeamInvitation{
		ID: string(i.ID), Email: i.Email, Role: api.Role(i.Role), Status: api.InvitationStatus(i.Status(x.api.Now())),
		CreatedAt: api.At(i.CreatedAt), ExpiresAt: api.At(i.ExpiresAt),
		InvitedBy: api.Person{ID: string(i.InvitedBy), Name: i.InvitedByName}, Mailed: i.Mailed,
	}
}

// invitationLink is where a mail leads: the page of the frontend that the
// inviting person uses.
func (x *exchange) invitationLink(token string) string { return x.base() + "/invitations/" + token }

func (a *API) inviteMember(x *exchange) (answer, error) {
	in, err := decode[api.NewTeamInvitation](x)
	if err != nil {
		return answer{}, err
	}
	n := x.newInvitation(string(in.Email), string(in.Role))
	n.Once = func(i identity.MadeInvitation) (*once.Record, error) { return x.record(x.madeInvitation(i)) }
	i, err := a.Identity.Invite(x.ctx(), x.caller, n)
	return x.madeInvitation(i), err
}

func (x *exchange) newInvitation(email, role string) identity.NewInvitation {
	return identity.NewInvitation{
		Email: email, Role: access.Role(role), Verified: x.presence.User.EmailVerified, ClientPrefix: x.clientPrefix(),
		Link: x.invitationLink, Counted: x.counted,
	}
}

func (x *exchange) madeInvitation(i identity.MadeInvitation) answer {
	out := x.invitation(i.Invitation)
	if i.Link != "" {
		out.Link = &i.Link
	}
	return answer{status: http.StatusCreated, data: out}
}

func (a *API) createInvitation(x *exchange) (answer, error) {
	if _, err := x.presence.In(x.team()); err != nil {
		return answer{}, err
	}
	in, err := decode[api.NewInvitation](x)
	if err != nil {
		return answer{}, err
	}
	i, err := a.BuiltIn.Invitations.InviteTo(x.ctx(), x.presence, x.team(), x.newInvitation(string(in.Email), string(in.Role)))
	return x.madeInvitation(i), err
}

func (a *API) resendInvitation(x *exchange) (answer, error) {
	i, err := a.BuiltIn.Invitations.Resend(x.ctx(), x.presence, x.team(), ids.Invitation(x.r.PathValue("invId")), x.visit(), x.invitationLink)
	ans := x.madeInvitation(i)
	ans.status = http.StatusOK
	return ans, err
}

func (a *API) revokeInvitation(x *exchange) (answer, error) {
	id := x.r.PathValue("invId")
	err := a.BuiltIn.Invitations.Revoke(x.ctx(), x.presence, x.team(), ids.Invitation(id))
	return answer{data: map[string]any{"revoked": true, "id": id}}, err
}

func (a *API) getInvitation(x *exchange) (answer, error) {
	i, err := a.BuiltIn.Invitations.Find(x.ctx(), x.r.PathValue("token"))
	return answer{data: api.InvitationView{
		Team:  api.InvitingTeam{ID: string(i.Team.ID), Name: i.Team.Name},
		Email: i.Email, Role: api.Role(i.Role), Status: api.InvitationStatus(i.Status(a.Now())),
		InvitedBy: api.Person{ID: string(i.InvitedBy), Name: i.InvitedByName}, ExpiresAt: api.At(i.ExpiresAt),
	}}, err
}

func (a *API) acceptInvitation(x *exchange) (answer, error) {
	m, err := a.BuiltIn.Invitations.Accept(x.ctx(), x.presence, x.r.PathValue("token"))
	return answer{data: teamOut(m)}, err
}
