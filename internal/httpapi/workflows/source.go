package workflows

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// GetSource answers GET /api/workflows/{id}/source.
func (a *API) GetSource(x *kernel.Exchange) (kernel.Answer, error) {
	s, err := a.Sources.Status(x.Context(), x.Caller, ids.Workflow(x.Request.PathValue("id")))
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.SourceStatus{
		Commit: kernel.OrNull(s.Commit), Latest: kernel.OrNull(s.Latest), ResolvedAt: kernel.TimeOrNull(s.ResolvedAt), Problem: kernel.OrNull(s.Problem),
	}
	if s.Behind >= 0 {
		out.Behind = &s.Behind
	}
	return kernel.Answer{Data: out}, nil
}
