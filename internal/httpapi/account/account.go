package account

import (
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// EraseTeam answers when the team is gone. It takes as long as its runs need
// to end.
func (a *API) EraseTeam(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.EraseTeam](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	_ = http.NewResponseController(x.Writer).SetWriteDeadline(time.Time{}) // not every connection has one
	e, err := a.Account.Erase(x.Context(), x.Caller, in.Confirm)
	return kernel.Answer{Data: api.Erased{Erased: true, TeamID: string(x.Caller.Team), Counts: e.Counts}}, err
}
