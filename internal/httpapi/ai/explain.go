package ai

import (
	"net/http"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// ExplainRun has the model say why a run failed.
func (a *API) ExplainRun(x *kernel.Exchange) (kernel.Answer, error) {
	d, err := a.Runs.Detailed(x.Context(), x.Caller, ids.Run(x.Request.PathValue("id")))
	if err != nil {
		return kernel.Answer{}, err
	}
	if err := a.Chat.Ready(); err != nil {
		return kernel.Answer{}, err
	}
	if d.Failure == nil {
		return kernel.Answer{}, fault.Conflict("the run did not fail in a step: there is nothing to explain")
	}
	conn := http.NewResponseController(x.Writer)
	_ = conn.SetReadDeadline(time.Time{}) // the model has limits of its own
	_ = conn.SetWriteDeadline(time.Time{})
	said, err := a.Chat.Explain(x.Context(), x.Caller, ai.FailedStep{
		Definition: d.Definition, Node: d.Failure.Node, Message: d.ErrorMessage, ExitCode: d.Failure.ExitCode, Lines: d.Failure.Lines,
	})
	out := api.RunExplanation{Text: said.Text}
	if e := said.Edit; e != nil {
		out.Edit = &api.SuggestedEdit{Node: e.Node, Field: e.Field, Value: e.Value}
	}
	return kernel.Answer{Data: out}, err
}
