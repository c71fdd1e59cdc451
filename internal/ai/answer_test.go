package ai

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/ai/reader"
)

func TestWhatAReadingClaimsIsHeldAgainstThePaper(t *testing.T) {
	t.Parallel()
	pages := []reader.Page{{Number: 1, Text: "We ground the grain."}, {Number: 2, Text: "The wheel was oak."}}
	retracted := true
	got := checked(reader.Reading{
		Title: "Not the title", Summary: "Grain\x00 was\x1b[31m ground.\xff",
		Methodology: reader.Methodology{
			Software: make([]string, 1000), Datasets: []string{" GSE1 ", ""},
			Steps: []reader.Step{{Name: strings.Repeat("ä", 1000), Evidence: []reader.Evidence{
				{Page: 7, Quote: "The wheel was oak."}, {Page: 1, Quote: "The wheel was gold."}, {Page: 1, Quote: ""},
			}}},
		},
		Suggestion: &reader.Suggestion{Confidence: math.Inf(1), Definition: []byte(`{"version":1,"nodes":[{"id":"a","name":"A","type":"task","command":"true"}],"edges":[]}`)},
	}, Paper{Title: "On Mills", IsRetracted: &retracted}, pages, nil)
	step := got.Methodology.Steps[0]
	if len(step.Evidence) != 1 || step.Evidence[0].Page != 2 {
		t.Errorf("the evidence is %+v", step.Evidence)
	}
	if got.Summary != "Grain was[31m ground." || got.Paper.Title != "On Mills" || utf8.RuneCountInString(step.Name) != longestName {
		t.Errorf("%+v", got)
	}
	if len(got.Methodology.Software) != 0 || len(got.Methodology.Datasets) != 1 || got.Suggestion.Confidence != 0 || got.Notes[0] != "This paper has been retracted." {
		t.Errorf("%+v", got)
	}
	if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), "null,\"software\"") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestASuggestionThatCannotRunIsLeftOut(t *testing.T) {
	t.Parallel()
	for name, definition := range map[string]string{
		"no JSON":           `nonsense`,
		"nothing":           ``,
		"a cycle":           `{"version":1,"nodes":[{"id":"a","name":"A","type":"task","command":"true"}],"edges":[{"id":"e","source":"a","target":"a"}]}`,
		"no command":        `{"version":1,"nodes":[{"id":"a","name":"A","type":"task"}],"edges":[]}`,
		"leaves the folder": `{"version":1,"nodes":[{"id":"a","name":"A","type":"task","command":"true","outputs":{"o":{"path":"../../etc/passwd"}}}],"edges":[]}`,
	} {
		got := checked(reader.Reading{Suggestion: &reader.Suggestion{Definition: []byte(definition)}}, Paper{}, nil, nil)
		if got.Suggestion != nil || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "left out") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Whoever takes a suggestion makes a workflow of it, which is called as it is.
func TestASuggestionIsCalledAsAWorkflowMayBe(t *testing.T) {
	t.Parallel()
	definition := []byte(`{"version":1,"nodes":[{"id":"a","name":"A","type":"task","command":"true"}],"edges":[]}`)
	for name, tt := range map[string]struct{ given, want string }{
		"as long as may be":  {strings.Repeat("ä", 200), strings.Repeat("ä", 200)},
		"one too long":       {strings.Repeat("ä", 201), strings.Repeat("ä", 199) + "…"},
		"of two lines":       {"Mills\n\tand\r\nwater", "Mills and water"},
		"of nothing visible": {"\x00 \n", "Workflow of a paper"},
		"without a name":     {"", "Workflow of a paper"},
	} {
		s := &reader.Suggestion{Name: tt.given, Description: strings.Repeat("x", 10_001), Definition: definition}
		got := checked(reader.Reading{Suggestion: s}, Paper{}, nil, nil).Suggestion
		if got == nil || got.Name != tt.want || utf8.RuneCountInString(got.Description) != 10_000 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAnAnswerIsNotEndless(t *testing.T) {
	t.Parallel()
	many := func(n int) (list []string) {
		for i := range n {
			list = append(list, strings.Repeat("n", i%3)) // a third of them empty
		}
		return list
	}
	pages := []reader.Page{{Number: 1, Text: "The wheel was made of oak wood."}}
	steps := make([]reader.Step, mostSteps+1)
	for range mostEvidence + 1 {
		steps[0].Evidence = append(steps[0].Evidence, reader.Evidence{Quote: "The wheel was made of oak wood."})
	}
	got := checked(reader.Reading{
		Summary: strings.Repeat("s", longestText+1), Notes: many(3 * mostItems),
		Methodology: reader.Methodology{Steps: steps, Software: many(3 * mostItems)},
	}, Paper{}, pages, []string{"first"})
	if n := utf8.RuneCountInString(got.Summary); n != longestText {
		t.Errorf("the summary has %d characters", n)
	}
	if len(got.Notes) > mostItems+1 || got.Notes[0] != "first" || slices.Contains(got.Notes, "") {
		t.Errorf("%d notes, the first %q", len(got.Notes), got.Notes[0])
	}
	if m := got.Methodology; len(m.Steps) != mostSteps || len(m.Steps[0].Evidence) != mostEvidence || len(m.Software) > mostItems || slices.Contains(m.Software, "") {
		t.Errorf("%d steps, %d quotes, %d programs", len(m.Steps), len(m.Steps[0].Evidence), len(m.Software))
	}
}
