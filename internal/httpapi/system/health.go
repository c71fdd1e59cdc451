package system

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/panics"
)

// Health answers GET /api/health.
func (a *API) Health(*kernel.Exchange) (kernel.Answer, error) {
	return kernel.OK(api.Health{Status: "ok", Version: a.Version})
}

const checkPatience = 5 * time.Second

// Ready asks every part at once. Its failure says which part is not there,
// beside the shape that all failures have.
func (a *API) Ready(x *kernel.Exchange) (kernel.Answer, error) {
	state := api.Readiness{Status: "ready", Checks: a.check(x.Context())}
	var wrong []string
	for _, name := range kernel.SortedKeys(state.Checks) {
		if said := state.Checks[name]; said != "ok" {
			wrong = append(wrong, name+": "+said)
		}
	}
	if len(wrong) == 0 {
		return kernel.OK(state)
	}
	state.Status = "unready"
	return kernel.Answer{Status: http.StatusServiceUnavailable, Bare: true, Data: api.NotReadyAnswer{
		Error: "not ready: " + strings.Join(wrong, "; "), Code: "not_ready", RequestID: x.ID, Data: state,
	}}, nil
}

func (a *API) check(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	said := make(map[string]string, len(a.Checks))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name, check := range a.Checks {
		wg.Go(func() {
			text := "ok"
			if err := panics.Catch(func() error { return check(ctx) }); err != nil {
				// The cause may name hosts and users: it goes to the log alone.
				a.Log.WarnContext(ctx, "not ready", "check", name, "error", err)
				text = "does not answer"
				if e, foreseen := errors.AsType[*fault.Error](err); foreseen {
					text = e.Message
				}
			}
			mu.Lock()
			defer mu.Unlock()
			said[name] = text
		})
	}
	wg.Wait()
	return said
}

// Features says what the installation is equipped with.
func (a *API) Features(x *kernel.Exchange) (kernel.Answer, error) {
	return kernel.Answer{Data: api.Features{
		Chat: a.Chat != nil && a.Chat.Ready() == nil, Mail: a.SendsMail, Gpu: a.Runs.OffersGPU(x.Context(), nil), Billing: a.Charges,
	}}, nil
}
