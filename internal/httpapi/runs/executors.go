package runs

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
)

// ListExecutors answers GET /api/executors.
func (a *API) ListExecutors(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Runs.Executors(x.Context(), x.Caller)
	out := make([]api.Executor, len(list))
	for i, e := range list {
		out[i] = executorOut(e)
	}
	return kernel.Answer{Data: out}, err
}

func executorOut(e runs.Executor) api.Executor {
	out := api.Executor{
		Name: e.Name, Kind: e.Kind, Capacity: sizeOut(e.Total), Free: sizeOut(e.Free()), Queued: e.Queued,
		PriceFactor: float64(e.PricePercent) / 100, Images: e.Images, Problem: kernel.OrNull(e.Problem),
	}
	if len(e.Waits) > 0 {
		ms := e.Typical.Milliseconds()
		out.TypicalWaitMs = &ms
	}
	return out
}

func sizeOut(s credits.Size) api.Compute {
	return api.Compute{Vcpu: s.VCPU, RAMGb: s.RAMGB, Gpu: s.GPU}
}
