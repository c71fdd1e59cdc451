package billing

import (
	"errors"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/quotas"
)

// InviteLimit is the code of a refusal because the guests of a link may not
// spend more.
const InviteLimit = "invite_limit"

// Unpaid says why a run is interrupted when no more credits can be held for it.
func Unpaid(err error) (lifecycle.ErrorCode, string) {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		switch e.Code {
		case InviteLimit:
			return lifecycle.CreditsExhausted, e.Message
		case string(lifecycle.BudgetExhausted):
			return lifecycle.BudgetExhausted, e.Message
		case quotas.Exhausted:
			return lifecycle.QuotaExhausted, e.Message
		}
	}
	return lifecycle.CreditsExhausted, "the team has no credits left: buy a top-up, then retry the run"
}
