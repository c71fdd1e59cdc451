package ai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/events"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// PapersLimit keeps one address from having everything looked up that fails
// and costs no quota.
var PapersLimit = &kernel.AddressLimit{Name: "papers", Window: limits.Window{Most: 300, Per: time.Minute}}

// AnalyzePaper answers POST /api/ai/analyze.
func (a *API) AnalyzePaper(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.AnalyzePaper](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	owner := a.paperOwner(x)
	an, err := a.AI.Analyze(x.Context(), owner, in.Doi)
	return a.deliver(x, owner, an, err)
}

// paperOwner is the caller's team, or the visitor that a cookie of ours names.
func (a *API) paperOwner(x *kernel.Exchange) ai.Owner {
	if x.Caller.Team != "" {
		return ai.OwnerOf(x.Caller)
	}
	return ai.Owner{Visitor: a.visitor(x), Address: x.ClientPrefix()}
}

// deliver waits for an analysis, or streams how it goes, unless it was refused.
func (a *API) deliver(x *kernel.Exchange, owner ai.Owner, an ai.Analysis, refused error) (kernel.Answer, error) {
	if err := errors.Join(refused, a.standing(x, owner)); err != nil {
		return kernel.Answer{}, err
	}
	if wantsStream(x) {
		return kernel.Answer{Stream: func(w http.ResponseWriter, _ *http.Request) { a.streamAnalysis(x, w, an) }}, nil
	}
	an, err := a.await(x, an)
	switch {
	case err != nil:
		return kernel.Answer{}, err
	case an.Failure != nil:
		return kernel.Answer{}, an.Failure.Err()
	case an.Status != ai.Completed:
		return kernel.Answer{Status: http.StatusAccepted, Data: AnalysisOut(an)}, nil
	}
	return kernel.OK(AnalysisOut(an))
}

// await gives an analysis some time to end.
func (a *API) await(x *kernel.Exchange, an ai.Analysis) (ai.Analysis, error) {
	wait := a.AnalysisWait
	conn := http.NewResponseController(x.Writer)
	_ = conn.SetReadDeadline(time.Time{}) // past it, the server would take the client for gone
	_ = conn.SetWriteDeadline(time.Now().Add(wait + kernel.IdleTime))
	ctx, cancel := context.WithTimeout(x.Context(), wait)
	defer cancel()
	return a.AI.Follow(ctx, an, func(ai.Analysis, bool) error { return nil })
}

// standing adds how many analyses are left today.
func (a *API) standing(x *kernel.Exchange, owner ai.Owner) error {
	q, err := a.AI.Quota(x.Context(), owner)
	if err == nil {
		x.RateLimit("analyses", limits.Window{Most: q.Limit, Per: 24 * time.Hour}, limits.Result{Remaining: q.Remaining, Reset: q.ResetsAt.Sub(a.Now())})
	}
	return err
}

func wantsStream(x *kernel.Exchange) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(x.Request.Header.Values("Accept"), ","), ","), func(media string) bool {
		media, _, _ = strings.Cut(media, ";")
		return strings.EqualFold(strings.TrimSpace(media), "text/event-stream")
	})
}

// streamAnalysis sends frames until the analysis is over. The work goes on
// when the client leaves.
func (a *API) streamAnalysis(x *kernel.Exchange, w http.ResponseWriter, an ai.Analysis) {
	f := events.Open(w)
	send := func(v any) error {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return f.Line(fmt.Sprintf("data: %s\n\n", text))
	}
	spoke := a.Now()
	_, err := a.AI.Follow(x.Context(), an, func(now ai.Analysis, moved bool) error {
		switch {
		case moved:
			spoke = a.Now()
			return send(analysisFrame(now))
		case a.Now().Sub(spoke) >= events.Pause:
			spoke = a.Now()
			return f.Line(events.Heartbeat)
		}
		return nil
	})
	if err != nil && x.Context().Err() == nil {
		_ = send(map[string]any{"type": "error", "code": "internal", "error": "the progress of this analysis is lost; ask again"})
	}
}

func analysisFrame(a ai.Analysis) any {
	switch {
	case a.Failure != nil:
		return map[string]any{"type": "error", "analysisId": a.ID, "code": a.Failure.Code, "error": a.Failure.Message}
	case a.Status == ai.Completed:
		return struct {
			Type string `json:"type"`
			api.Analysis
		}{"result", AnalysisOut(a)}
	}
	p := a.Progress
	if p.Stage == "" {
		p = ai.Progress{Stage: string(a.Status), Message: "Waiting for its turn"}
	}
	return map[string]any{"type": "progress", "analysisId": a.ID, "stage": p.Stage, "percent": p.Percent, "message": p.Message}
}

// GetAnalysis answers GET /api/ai/status.
func (a *API) GetAnalysis(x *kernel.Exchange) (kernel.Answer, error) {
	q := x.Request.URL.Query()
	id, name := q.Get("id"), q.Get("doi")
	if (id == "") == (name == "") {
		return kernel.Answer{}, fault.Problems([]fault.Detail{{Path: "id", Message: "or doi is needed, and only one of them"}}, "give an id or a doi, and only one of them")
	}
	if name != "" {
		an, err := a.AI.AnalysisOf(x.Context(), x.Caller, name)
		return kernel.Answer{Data: AnalysisOut(an)}, err
	}
	if !kernel.Printable(id) {
		return kernel.Answer{}, fault.NotFound("no such analysis")
	}
	an, err := a.AI.Analysis(x.Context(), x.Caller, ids.Analysis(id))
	return kernel.Answer{Data: AnalysisOut(an)}, err
}

const (
	analysesDefault = 100
	analysesMost    = 1000
)

// ListAnalyses answers GET /api/ai/analyses.
func (a *API) ListAnalyses(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, analysesMost, analysesDefault)
	if err != nil {
		return kernel.Answer{}, err
	}
	before, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, more, err := a.AI.Analyses(x.Context(), x.Caller, ids.Analysis(before), limit)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.AnalysisRow, len(list))
	for i, an := range list {
		o := AnalysisOut(an)
		out[i] = api.AnalysisRow{
			AnalysisID: o.AnalysisID, Status: o.Status, Stage: o.Stage, Doi: o.Doi, Title: kernel.OrNull(an.Title), CreatedAt: o.CreatedAt, Error: o.Error,
		}
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = kernel.AsCursor(out[limit-1].AnalysisID)
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

// AnalysisOut is an analysis as the API shows it.
func AnalysisOut(a ai.Analysis) api.Analysis {
	out := api.Analysis{AnalysisID: string(a.ID), Status: api.AnalysisStatus(a.Status), Doi: kernel.OrNull(string(a.DOI)), CreatedAt: api.At(a.CreatedAt)}
	if !a.Status.Terminal() {
		out.Stage = kernel.OrNull(a.Progress.Stage)
	}
	if a.Failure != nil {
		out.Error = &a.Failure.Message
	}
	if a.Result != nil {
		out.Result = resultOut(*a.Result)
	}
	return out
}

func resultOut(r ai.Result) *api.AnalysisResult {
	out := &api.AnalysisResult{Summary: r.Summary, Notes: r.Notes, Paper: paperOut(r.Paper), Methodology: api.Methodology{
		Overview: r.Methodology.Overview, Datasets: r.Methodology.Datasets, Software: r.Methodology.Software, Steps: []api.MethodologyStep{},
	}}
	for _, s := range r.Methodology.Steps {
		out.Methodology.Steps = append(out.Methodology.Steps, stepOut(s))
	}
	if s := r.Suggestion; s != nil {
		out.WorkflowSuggestion = &api.WorkflowSuggestion{Name: s.Name, Description: s.Description, Definition: s.Definition, Confidence: s.Confidence}
	}
	return out
}

func stepOut(s reader.Step) api.MethodologyStep {
	out := api.MethodologyStep{Name: s.Name, Description: s.Description, Tools: s.Tools, Evidence: []api.Evidence{}}
	for _, e := range s.Evidence {
		out.Evidence = append(out.Evidence, api.Evidence{Page: kernel.NumberOrNull(e.Page), Quote: e.Quote})
	}
	return out
}

func paperOut(p ai.Paper) api.Paper {
	out := api.Paper{
		Doi: kernel.OrNull(string(p.DOI)), Title: kernel.OrNull(p.Title), Authors: []api.Author{}, Abstract: kernel.OrNull(p.Abstract), Journal: kernel.OrNull(p.Journal),
		Publisher: kernel.OrNull(p.Publisher), Year: kernel.NumberOrNull(p.Year), Type: kernel.OrNull(p.Type), URL: kernel.OrNull(p.URL), CitationCount: p.CitationCount,
		IsRetracted: p.IsRetracted, Source: p.Source, PageCount: kernel.NumberOrNull(p.PageCount),
	}
	for _, a := range p.Authors {
		out.Authors = append(out.Authors, api.Author{Name: a.Name, Orcid: kernel.OrNull(a.ORCID), Affiliation: kernel.OrNull(a.Affiliation)})
	}
	if o := p.OpenAccess; o != nil {
		out.OpenAccess = &api.OpenAccess{IsOa: o.IsOA, Status: kernel.OrNull(o.Status), License: kernel.OrNull(o.License), PdfURL: kernel.OrNull(o.PDFURL)}
	}
	return out
}
