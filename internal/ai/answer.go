package ai

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/ai/reader"
)

// understand lets the model read, where there is one, and believes nothing
// that it cannot check. A model that fails is replaced by the built-in
// analyser: a lesser answer, and it says so.
func (s *Service) understand(ctx context.Context, r Reading, found Found) (Result, bool, error) {
	pages := r.Text.Pages
	notes := found.Notes
	if s.Model != nil {
		if err := s.advance(ctx, r, thinking); err != nil {
			return Result{}, false, err
		}
		within, cancel := context.WithTimeout(ctx, s.Patience.Model)
		defer cancel()
		read, err := s.Model.Read(within, found.Paper, pages)
		if err == nil {
			read.Title, read.Abstract = reader.TitlePage(pages) // which a model is not asked for
			return checked(read, found.Paper, pages, notes), found.Lesser, nil
		}
		if ctx.Err() != nil {
			return Result{}, false, err
		}
		s.Log.WarnContext(ctx, "the model could not read a paper; the built-in analyser does", slog.String("reading", r.ID), slog.Any("error", err))
		notes = append(notes, "The model gave no usable answer; try again later for an analysis by the model.")
	}
	p := found.Paper
	read := reader.Read(reader.Paper{Title: p.Title, Abstract: p.Abstract, Pages: pages})
	return checked(read, p, pages, notes), found.Lesser || s.Model != nil, nil
}

// What an answer may hold at most; the rest is cut.
const (
	longestText  = 20_000 // characters
	longestName  = 300
	longestQuote = 2_000
	mostSteps    = 60
	mostItems    = 200
	mostEvidence = 10
)

// checked is what remains of a reading when it is held against the paper:
// quotes that are in it word for word, and a workflow that could run.
func checked(read reader.Reading, p Paper, pages []reader.Page, notes []string) Result {
	p.Title = cmp.Or(clean(p.Title, longestTitle), clean(read.Title, longestTitle))
	p.Abstract = cmp.Or(clean(p.Abstract, longestText), clean(read.Abstract, longestText))
	if p.Authors == nil {
		p.Authors = []Author{}
	}
	m := reader.Methodology{
		Overview: clean(read.Methodology.Overview, longestText), Steps: []reader.Step{},
		Datasets: cleanAll(read.Methodology.Datasets), Software: cleanAll(read.Methodology.Software),
	}
	for _, step := range read.Methodology.Steps[:min(len(read.Methodology.Steps), mostSteps)] {
		m.Steps = append(m.Steps, reader.Step{
			Name: clean(step.Name, longestName), Description: clean(step.Description, longestText),
			Tools: cleanAll(step.Tools), Evidence: verbatim(step.Evidence, pages),
		})
	}
	for _, n := range read.Notes[:min(len(read.Notes), mostItems)] {
		if n = clean(n, longestText); n != "" {
			notes = append(notes, n)
		}
	}
	suggestion, note := runnable(read.Suggestion)
	if note != "" {
		notes = append(notes, note)
	}
	if p.IsRetracted != nil && *p.IsRetracted {
		notes = append([]string{"This paper has been retracted."}, notes...)
	}
	if notes == nil {
		notes = []string{}
	}
	return Result{Summary: clean(read.Summary, longestText), Methodology: m, Suggestion: suggestion, Notes: notes, Paper: p}
}

// verbatim keeps the quotes that the paper has, with the pages they are on.
func verbatim(list []reader.Evidence, pages []reader.Page) []reader.Evidence {
	kept := []reader.Evidence{}
	for _, e := range list[:min(len(list), mostEvidence)] {
		quote := clean(e.Quote, longestQuote)
		if page, ok := reader.Quoted(pages, quote); ok {
			kept = append(kept, reader.Evidence{Page: page, Quote: quote})
		}
	}
	return kept
}

// runnable is a suggestion that passes the checks of a run, laid out.
func runnable(s *reader.Suggestion) (*reader.Suggestion, string) {
	if s == nil {
		return nil, ""
	}
	definition, problems := reader.Arrange(s.Definition)
	if len(problems) > 0 {
		return nil, "The suggested workflow had problems and was left out: " + strings.TrimSpace(problems[0].Path+" "+problems[0].Message) + "."
	}
	confidence := s.Confidence
	if !(confidence >= 0 && confidence <= 1) { // also what is no number
		confidence = 0
	}
	// As a workflow may be called: who takes the suggestion makes one of it.
	name := clean(strings.Join(strings.Fields(s.Name), " "), 200)
	return &reader.Suggestion{
		Name: cmp.Or(name, "Workflow of a paper"), Description: clean(s.Description, 10_000), Definition: definition, Confidence: confidence,
	}, ""
}

func cleanAll(list []string) []string {
	kept := []string{}
	for _, text := range list[:min(len(list), mostItems)] {
		if text = clean(text, longestName); text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}

// clean is text as we keep it: without control characters, and not endless.
func clean(text string, most int) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
