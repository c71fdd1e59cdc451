package account

import (
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// deletedOut is an account that was deleted, as the API shows it.
func deletedOut(id ids.User, erased []ids.Team) api.DeletedAccount {
	out := api.DeletedAccount{Deleted: true, ID: string(id), ErasedTeams: make([]string, len(erased))}
	for i, team := range erased {
		out.ErasedTeams[i] = string(team)
	}
	return out
}

// DeleteOwn answers DELETE /api/me.
func (a *API) DeleteOwn(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.DeleteAccount](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	id := x.Presence.User.ID
	erased, err := a.Account.DeleteOwn(x.Context(), id, in.Confirm)
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Data: deletedOut(id, erased)}.With("Set-Cookie", x.Cookie("", time.Unix(1, 0))), nil
}
