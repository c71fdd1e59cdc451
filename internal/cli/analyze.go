package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/definitions"
	"github.com/millrace/millrace/internal/cli/gitfile"
	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/runs"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
	"github.com/millrace/millrace/internal/definitionfile"
)

const (
	maxPDF      = 20 << 20 // bytes; the server takes no more
	lookPause   = 3 * time.Second
	analyzeTime = 30 * time.Minute
)

type analyzeCommand struct {
	session.Flags `embed:""`
	Paper         string `arg:"" help:"A DOI, such as 10.1038/s41586-020-2649-2, or a PDF."`
	DOI           string `env:"-" name:"doi" help:"DOI of the PDF's paper."`
	Title         string `env:"-" help:"Title of the PDF's paper."`
	Save          string `env:"-" placeholder:"FILE" help:"Write the suggested workflow to this file, for millrace run or workflows apply."`
}

// Run works without an account, too.
func (c *analyzeCommand) Run(w screen.Console) error {
	s, err := c.Visit(w)
	if err != nil {
		return err
	}
	// A visitor is known by a cookie, and found again by it while the analysis goes.
	if s.Calls.HTTP.Jar, err = cookiejar.New(nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.Ctx, analyzeTime)
	defer cancel()
	s.Ctx = ctx
	var a api.Analysis
	if info, statErr := os.Stat(c.Paper); statErr == nil && info.Mode().IsRegular() {
		a, err = analyzePDF(s, c.Paper, c.DOI, c.Title)
	} else if strings.HasSuffix(strings.ToLower(c.Paper), ".pdf") {
		return fmt.Errorf("there is no file %s", c.Paper)
	} else {
		a, err = analyzeDOI(s, c.Paper)
	}
	if err != nil {
		return s.Explain(err)
	}
	if a.Status == api.AnalysisStatusFailed || a.Result == nil {
		return fmt.Errorf("the analysis failed: %s", screen.Clean(screen.OrDash(a.Error)))
	}
	if err := s.Emit(a, func() { showAnalysis(s, *a.Result) }); err != nil {
		return err
	}
	return c.keep(s, a.Result.WorkflowSuggestion)
}

func (c *analyzeCommand) keep(s *session.Session, suggestion *api.WorkflowSuggestion) error {
	if c.Save == "" {
		if suggestion != nil && !s.JSON {
			s.Note("\nSave the suggestion with: millrace analyze %s --save workflow.json", c.Paper)
		}
		return nil
	}
	if suggestion == nil {
		return errors.New("the analysis suggests no workflow; nothing was saved")
	}
	text, err := exported(gitfile.Workflow{Name: suggestion.Name, Description: suggestion.Description, Definition: suggestion.Definition}, definitionfile.IsYAML(c.Save, nil))
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.Save, text, 0o644); err != nil {
		return err
	}
	s.Note("Saved. Run it with: millrace run %s --watch", c.Save)
	return nil
}

// analyzeDOI listens to the analysis as it goes.
func analyzeDOI(s *session.Session, doi string) (api.Analysis, error) {
	resp, err := s.API.AnalyzePaper(s.Ctx, nil, api.AnalyzePaper{Doi: doi}, func(_ context.Context, r *http.Request) error {
		r.Header.Set("Accept", "text/event-stream")
		return nil
	})
	if err != nil {
		return api.Analysis{}, err
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		var answer struct{ Data api.Analysis }
		err := json.NewDecoder(resp.Body).Decode(&answer)
		return answer.Data, err
	}
	shown := screen.NewBar(s.Console)
	defer shown.Close()
	var result api.Analysis
	err = line.Frames(resp.Body, func() {}, func(time.Duration) {}, func(f line.Frame) error {
		var m api.AnalysisMessage
		if err := json.Unmarshal(f.Data, &m); err != nil {
			return err
		}
		switch m.Type {
		case "result":
			return errors.Join(json.Unmarshal(f.Data, &result), runs.ErrDone)
		case "error":
			e := &client.Error{Message: screen.OrDash(m.Error)}
			if m.Code != nil {
				e.Code = *m.Code
			}
			return e
		default:
			if m.Percent != nil && m.Message != nil {
				shown.Show(fmt.Sprintf("%s %3.0f %%  %s", screen.Gauge(*m.Percent/100), *m.Percent, screen.Clean(*m.Message)))
			}
			return nil
		}
	})
	switch {
	case errors.Is(err, runs.ErrDone):
		return result, nil
	case err == nil:
		return result, errors.New("the server closed the connection; run the same command again to continue")
	default:
		return result, err
	}
}

// analyzePDF sends the file and waits for the answer.
func analyzePDF(s *session.Session, path, doi, title string) (api.Analysis, error) {
	text, err := definitions.ReadSmall(s.Console, path, maxPDF)
	if err != nil {
		return api.Analysis{}, err
	}
	body, contentType, err := form(filepath.Base(path), text, "doi", doi, "title", title)
	if err != nil {
		return api.Analysis{}, err
	}
	for {
		r, err := s.API.UploadPaperWithBodyWithResponse(s.Ctx, nil, contentType, bytes.NewReader(body))
		if err != nil {
			return api.Analysis{}, err
		}
		if r.JSON200 != nil {
			return r.JSON200.Data, nil
		}
		if s.Calls.As != nil {
			return analysis(s, r.JSON202.Data.AnalysisID)
		}
		// A visitor has no list to look in; asking again joins what goes on.
		if err := s.Sleep(s.Ctx, lookPause); err != nil {
			return api.Analysis{}, err
		}
	}
}

// analysis waits until it has ended.
func analysis(s *session.Session, id string) (api.Analysis, error) {
	for {
		r, err := s.API.GetAnalysisWithResponse(s.Ctx, &api.GetAnalysisParams{ID: &id})
		if err != nil {
			return api.Analysis{}, err
		}
		a := r.JSON200.Data
		if a.Status == api.AnalysisStatusCompleted || a.Status == api.AnalysisStatusFailed {
			return a, nil
		}
		if err := s.Sleep(s.Ctx, lookPause); err != nil {
			return a, err
		}
	}
}

// form is a file with some fields, those without a value left out.
func form(name string, file []byte, fields ...string) (body []byte, contentType string, err error) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] != "" {
			err = errors.Join(err, w.WriteField(fields[i], fields[i+1]))
		}
	}
	part, partErr := w.CreateFormFile("file", name)
	if partErr != nil {
		return nil, "", partErr
	}
	_, fileErr := part.Write(file)
	err = errors.Join(err, fileErr, w.Close())
	return out.Bytes(), w.FormDataContentType(), err
}

func showAnalysis(s *session.Session, r api.AnalysisResult) {
	year := ""
	if r.Paper.Year != nil {
		year = fmt.Sprint(*r.Paper.Year)
	}
	s.Facts("title", screen.OrDash(r.Paper.Title), "doi", screen.OrDash(r.Paper.Doi), "journal", screen.OrDash(r.Paper.Journal), "year", year)
	s.Say("\n%s", screen.Clean(r.Summary))
	if len(r.Methodology.Steps) > 0 {
		s.Say("\nSteps")
	}
	for i, step := range r.Methodology.Steps {
		s.Say("%3d. %s", i+1, screen.Clean(step.Name))
		if len(step.Tools) > 0 {
			s.Say("     with %s", screen.Clean(strings.Join(step.Tools, ", ")))
		}
	}
	for _, note := range r.Notes {
		s.Say("\nNote: %s", screen.Clean(note))
	}
	if f := r.WorkflowSuggestion; f != nil {
		s.Say("\nSuggested workflow: %s (%.0f %% confidence)", screen.Clean(f.Name), 100*f.Confidence)
		definitions.Describe(s.Console, f.Definition)
	}
}
