// Package reader analyses a paper without a model: it finds the sections,
// picks the sentences that say most, recognises the tools that the methods
// name, and suggests a workflow of them. It sees text only; where the text
// comes from is the business of others. Nothing that a paper says is obeyed.
package reader

import (
	"cmp"
	"encoding/json"
	"slices"
)

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

// TitlePage is the title and the abstract as the pages have them; empty where they
// have none.
func TitlePage(pages []Page) (title, abstract string) { return titlePage(Sections(pages)) }

func titlePage(sections []Section) (title, abstract string) {
	return titleOf(sections), textOf(sections, Abstract)
}

// Read analyses a paper. It takes any text, and time in proportion to it.
func Read(p Paper) Reading {
	sections := Sections(p.Pages)
	found := scan(sections)
	list := uses(found)
	title, abstract := titlePage(sections)
	r := Reading{Title: cmp.Or(p.Title, title), Abstract: cmp.Or(p.Abstract, abstract)}
	data, code := datasets(sections, list)
	r.Summary = summary(r.Abstract, sections)
	r.Methodology = Methodology{Overview: overview(found), Steps: steps(found, newQuotes(p.Pages)), Datasets: append([]string{}, data...), Software: software(found, list, code)}
	r.Suggestion = suggest(r.Title, list, data)
	r.Notes = notes(r, sections)
	return r
}

// software lists the tools with their versions, and where the code is.
func software(found []finding, list []use, code []string) []string {
	names := []string{}
	for _, u := range list {
		if u.tool.kind.name != "database" {
			names = once(names, u.String())
		}
	}
	for _, name := range append(others(found), code...) {
		names = once(names, name)
	}
	return names
}

// notes says how the reading came about.
func notes(r Reading, sections []Section) []string {
	list := []string{"Found by matching known tool names; no AI model was used. All sentences are quoted from the paper."}
	if !slices.ContainsFunc(sections, func(s Section) bool { return s.Kind == Methods }) {
		list = append(list, "No methods section was found, so the whole text was searched for tools.")
	}
	if r.Suggestion == nil {
		return append(list, "No known tool was found, so no workflow is suggested.")
	}
	return append(list, "The suggested workflow connects the tools in the order of the methods. Settings and file names are typical ones, not the paper's: check every command.")
}
