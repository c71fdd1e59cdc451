package httpapi

import (
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
)

// eraseTeam answers when the team is gone. It takes as long as its runs need
// to end.
func (a *API) eraseTeam(x *exchange) (answer, error) {
	in, err := decode[api.EraseTeam](x)
	if err != nil {
		return answer{}, err
	}
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Time{}) // not every connection has one
	e, err := a.Account.Erase(x.ctx(), x.caller, in.Confirm)
	return answer{data: api.Erased{Erased: true, TeamID: string(x.caller.Team), Counts: e.Counts}}, err
}
