package identity

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// InviteMembers answers POST /api/team/invitations.
func (a *API) InviteMembers(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.InvitationList](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	role := string(kernel.Value(in.Role))
	list, err := builtin.ParseInvitations(in.List, access.Role(role))
	if err != nil {
		return kernel.Answer{}, err
	}
	for _, r := range list {
		if r.Role == access.Admin || r.Role == access.Owner { // who stay when the token is revoked
			if err := x.MustBeWhole(); err != nil {
				return kernel.Answer{}, err
			}
		}
	}
	list, err = a.BuiltIn.Invitations.InviteList(x.Context(), x.Caller, builtin.InvitationList{Text: in.List, NewInvitation: newInvitation(x, "", role)})
	out := api.InvitationResults{Results: make([]api.InvitationResult, len(list))}
	for i, r := range list {
		out.Results[i] = a.resultOut(x, r)
	}
	return kernel.Answer{Data: out}, err
}

func (a *API) resultOut(x *kernel.Exchange, r builtin.InvitationResult) api.InvitationResult {
	out := api.InvitationResult{Line: r.Line, Email: r.Email, Role: api.Role(r.Role), Result: api.InvitationResultResult(r.Result), Message: kernel.OrNull(r.Message)}
	if r.Result == builtin.ResultInvited {
		made := a.madeInvitation(x, r.Made).Data.(api.TeamInvitation)
		out.Invitation = &made
	}
	return out
}
