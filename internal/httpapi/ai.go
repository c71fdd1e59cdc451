package httpapi

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
)

// papersLimit keeps one address from having everything looked up that fails
// and costs no quota.
var papersLimit = &addressLimit{name: "papers", window: limits.Window{Most: 300, Per: time.Minute}}

func (a *API) analyzePaper(x *exchange) (answer, error) {
	in, err := decode[api.AnalyzePaper](x)
	if err != nil {
		return answer{}, err
	}
	owner := x.paperOwner()
	an, err := a.AI.Analyze(x.ctx(), owner, in.Doi)
	return x.deliver(owner, an, err)
}

// paperOwner is the caller's team, or the visitor that a cookie of ours names.
func (x *exchange) paperOwner() ai.Owner {
	if x.caller.Team != "" {
		return ai.OwnerOf(x.caller)
	}
	return ai.Owner{Visitor: x.visitor(), Address: x.clientPrefix()}
}

// deliver waits for an analysis, or streams how it goes, unless it was refused.
func (x *exchange) deliver(owner ai.Owner, an ai.Analysis, refused error) (answer, error) {
	if err := errors.Join(refused, x.standing(owner)); err != nil {
		return answer{}, err
	}
	if x.wantsStream() {
		return answer{stream: func(w http.ResponseWriter, _ *http.Request) { x.streamAnalysis(w, an) }}, nil
	}
	an, err := x.await(an)
	switch {
	case err != nil:
		return answer{}, err
	case an.Failure != nil:
		return answer{}, an.Failure.Err()
	case an.Status != ai.Completed:
		return answer{status: http.StatusAccepted, data: analysisOut(an)}, nil
	}
	return ok(analysisOut(an))
}

// await gives an analysis some time to end.
func (x *exchange) await(an ai.Analysis) (ai.Analysis, error) {
	wait := x.api.AnalysisWait
	conn := http.NewResponseController(x.w)
	_ = conn.SetReadDeadline(time.Time{}) // past it, the server would take the client for gone
	_ = conn.SetWriteDeadline(time.Now().Add(wait + idle))
	ctx, cancel := context.WithTimeout(x.ctx(), wait)
	defer cancel()
	return x.api.AI.Follow(ctx, an, func(ai.Analysis, bool) error { return nil })
}

// standing adds how many analyses are left today.
func (x *exchange) standing(owner ai.Owner) error {
	q, err := x.api.AI.Quota(x.ctx(), owner)
	if err == nil {
		x.rateLimit("analyses", limits.Window{Most: q.Limit, Per: 24 * time.Hour}, limits.Result{Remaining: q.Remaining, Reset: q.ResetsAt.Sub(x.api.Now())})
	}
	return err
}

func (x *exchange) wantsStream() bool {
	return slices.ContainsFunc(strings.Split(strings.Join(x.r.Header.Values("Accept"), ","), ","), func(media string) bool {
		media, _, _ = strings.Cut(media, ";")
		return strings.EqualFold(strings.TrimSpace(media), "text/event-stream")
	})
}

// streamAnalysis sends frames until the analysis is over. The work goes on
// when the client leaves.
func (x *exchange) streamAnalysis(w http.ResponseWriter, an ai.Analysis) {
	f := events.Open(w)
	send := func(v any) error {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return f.Line(fmt.Sprintf("data: %s\n\n", text))
	}
	spoke := x.api.Now()
	_, err := x.api.AI.Follow(x.ctx(), an, func(now ai.Analysis, moved bool) error {
		switch {
		case moved:
			spoke = x.api.Now()
			return send(analysisFrame(now))
		case x.api.Now().Sub(spoke) >= events.Pause:
			spoke = x.api.Now()
			return f.Line(events.Heartbeat)
		}
		return nil
	})
	if err != nil && x.ctx().Err() == nil {
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
		}{"result", analysisOut(a)}
	}
	p := a.Progress
	if p.Stage == "" {
		p = ai.Progress{Stage: string(a.Status), Message: "Waiting for a free desk"}
	}
	return map[string]any{"type": "progress", "analysisId": a.ID, "stage": p.Stage, "percent": p.Percent, "message": p.Message}
}

func (a *API) getAnalysis(x *exchange) (answer, error) {
	q := x.r.URL.Query()
	id, name := q.Get("id"), q.Get("doi")
	if (id == "") == (name == "") {
		return answer{}, fault.Problems([]fault.Detail{{Path: "id", Message: "or doi is needed, and only one of them"}}, "give an id or a doi, and only one of them")
	}
	if name != "" {
		an, err := a.AI.AnalysisOf(x.ctx(), x.caller, name)
		return answer{data: analysisOut(an)}, err
	}
	if !printable(id) {
		return answer{}, fault.NotFound("no such analysis")
	}
	an, err := a.AI.Analysis(x.ctx(), x.caller, ids.Analysis(id))
	return answer{data: analysisOut(an)}, err
}

const (
	analysesDefault = 100
	analysesMost    = 1000
)

func (a *API) listAnalyses(x *exchange) (answer, error) {
	limit, err := number(x.r, "limit", 1, analysesMost, analysesDefault)
	if err != nil {
		return answer{}, err
	}
	before, err := cursor(x.r)
	if err != nil {
		return answer{}, err
	}
	list, more, err := a.AI.Analyses(x.ctx(), x.caller, ids.Analysis(before), limit)
	if err != nil {
		return answer{}, err
	}
	out := make([]api.AnalysisRow, len(list))
	for i, an := range list {
		o := analysisOut(an)
		out[i] = api.AnalysisRow{
			AnalysisID: o.AnalysisID, Status: o.Status, Stage: o.Stage, Doi: o.Doi, Title: orNull(an.Title), CreatedAt: o.CreatedAt, Error: o.Error,
		}
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = asCursor(out[limit-1].AnalysisID)
	}
	return answer{data: out, page: page}, nil
}

func analysisOut(a ai.Analysis) api.Analysis {
	out := api.Analysis{AnalysisID: string(a.ID), Status: api.AnalysisStatus(a.Status), Doi: orNull(string(a.DOI)), CreatedAt: api.At(a.CreatedAt)}
	if !a.Status.Terminal() {
		out.Stage = orNull(a.Progress.Stage)
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
		out.Evidence = append(out.Evidence, api.Evidence{Page: capOut(e.Page), Quote: e.Quote})
	}
	return out
}

func paperOut(p ai.Paper) api.Paper {
	out := api.Paper{
		Doi: orNull(string(p.DOI)), Title: orNull(p.Title), Authors: []api.Author{}, Abstract: orNull(p.Abstract), Journal: orNull(p.Journal),
		Publisher: orNull(p.Publisher), Year: capOut(p.Year), Type: orNull(p.Type), URL: orNull(p.URL), CitationCount: p.CitationCount,
		IsRetracted: p.IsRetracted, Source: p.Source, PageCount: capOut(p.PageCount),
	}
	for _, a := range p.Authors {
		out.Authors = append(out.Authors, api.Author{Name: a.Name, Orcid: orNull(a.ORCID), Affiliation: orNull(a.Affiliation)})
	}
	if o := p.OpenAccess; o != nil {
		out.OpenAccess = &api.OpenAccess{IsOa: o.IsOA, Status: orNull(o.Status), License: orNull(o.License), PdfURL: orNull(o.PDFURL)}
	}
	return out
}
