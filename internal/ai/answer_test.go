package ai

import (
	"encoding/json"
	"math"
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
	if got.Summary != "Grain was[31m ground." || got.Paper.Title != "On Mills" || utf8.RuneCountInString(step.Name) != longestName+1 {
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
