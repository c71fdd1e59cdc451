package reported

import (
	"cmp"
	"errors"
	"strings"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs/reported"
)

// Nextflow's observer gives its user's pipeline up when an answer is no success.
// So whatever we cannot read or do not know is taken and dropped.

// nextflowAnswer is what the observer reads of an answer.
type nextflowAnswer struct {
	WorkflowID string `json:"workflowId,omitempty"`
	WatchURL   string `json:"watchUrl,omitempty"`
	Message    string `json:"message,omitempty"` // shown as a warning
}

// notWatched is the id of a run that we do not take: what is sent about it is
// dropped.
const notWatched = "not-watched"

// inWorkspace refuses a workspace that is another team's. Ids of other services are
// left over in people's settings and say nothing.
func inWorkspace(x *kernel.Exchange) error {
	if team := x.Request.URL.Query().Get("workspaceId"); strings.HasPrefix(team, "team_") && team != string(x.Caller.Team) {
		return fault.Forbidden("the token is not one of the team that TOWER_WORKSPACE_ID names").WithCode("not_a_member")
	}
	return nil
}

// NextflowCreate answers POST /api/nextflow/trace/create.
func (a *API) NextflowCreate(x *kernel.Exchange) (kernel.Answer, error) {
	if err := inWorkspace(x); err != nil {
		return kernel.Answer{}, err
	}
	in, _ := readFrame(x.Body) // what is missing is mended
	n := reported.New{
		Key: shorten(in.text("sessionId")+"/"+in.text("runName"), 200), Engine: "nextflow", Name: shorten(in.text("runName"), 200),
		Project: shorten(cmp.Or(in.text("projectName"), in.text("repository"), "nextflow"), 200), Details: map[string]string{},
	}
	if r := in.text("repository"); r != "" {
		n.Details["repository"] = r
	}
	b, err := a.Reported.Begin(x.Context(), x.Caller, n)
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind != fault.KindUnavailable {
		return bare(nextflowAnswer{notWatched, x.Base() + "/runs?team=" + string(x.Caller.Team), "This run is not watched: " + refused.Message})
	}
	if err != nil {
		return kernel.Answer{}, err
	}
	return bare(nextflowAnswer{string(b.Run), watchURL(x, b.Run), ""})
}

func bare(data any) (kernel.Answer, error) { return kernel.Answer{Data: data, Bare: true}, nil }

// shorten is a line of at most so many characters, or a dash.
func shorten(text string, most int) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?")))
	if letters := []rune(text); len(letters) > most {
		text = string(letters[:most])
	}
	return cmp.Or(text, "-")
}

// NextflowBegin answers PUT /api/nextflow/trace/{id}/begin.
func (a *API) NextflowBegin(x *kernel.Exchange) (kernel.Answer, error) {
	return a.nextflow(x, beginning)
}

// NextflowProgress answers PUT /api/nextflow/trace/{id}/progress, and heartbeat.
func (a *API) NextflowProgress(x *kernel.Exchange) (kernel.Answer, error) { return a.nextflow(x, nil) }

// NextflowComplete answers PUT /api/nextflow/trace/{id}/complete.
func (a *API) NextflowComplete(x *kernel.Exchange) (kernel.Answer, error) {
	return a.nextflow(x, ending)
}

// nextflow takes a frame about a run that create has begun.
func (a *API) nextflow(x *kernel.Exchange, more func(frame, *reported.Report)) (kernel.Answer, error) {
	if err := inWorkspace(x); err != nil {
		return kernel.Answer{}, err
	}
	if in, ok := readFrame(x.Body); ok {
		r := tasksAndProgress(in)
		if more != nil {
			more(in, &r)
		}
		if _, err := a.Reported.Take(x.Context(), x.Caller, runID(x), r); err != nil && !fault.Is(err, fault.KindNotFound) {
			return kernel.Answer{}, err
		}
	}
	return bare(nextflowAnswer{string(runID(x)), watchURL(x, runID(x)), ""})
}

// NextflowUser answers GET /api/nextflow/user-info.
func (a *API) NextflowUser(x *kernel.Exchange) (kernel.Answer, error) {
	return bare(map[string]any{"user": map[string]any{"id": x.Caller.Subject(), "userName": x.Caller.Name}})
}

// NextflowWorkspaces answers GET /api/nextflow/user/{id}/workspaces.
func (a *API) NextflowWorkspaces(*kernel.Exchange) (kernel.Answer, error) {
	return bare(map[string]any{"orgsAndWorkspaces": []any{}})
}

// NextflowWorkflow answers GET /api/nextflow/workflow/{id}.
func (a *API) NextflowWorkflow(x *kernel.Exchange) (kernel.Answer, error) {
	if err := x.Caller.Must(access.ReportRuns); err != nil {
		return kernel.Answer{}, err
	}
	return bare(map[string]any{"workflow": map[string]any{"id": string(runID(x))}})
}
