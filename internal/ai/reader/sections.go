package reader

import "strings"

// Kind says what a section is about.
type Kind string

// The kinds of sections that are told apart.
const (
	Front        Kind = "front" // title and authors: what comes before any heading
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

// Section is a part of a paper under one heading. The text is clean: a
// paragraph a line, without the lines that repeat on every page.
type Section struct {
	Kind    Kind
	Heading string
	Page    int // where it begins
	Text    string

	paragraphs []paragraph
}

// Sections cuts a paper at its headings.
func Sections(pages []Page) []Section {
	all := lines(pages)
	c := cutter{words: wordsOf(all), now: Section{Kind: Front}}
	if len(all) > 0 {
		c.now.Page = all[0].page
	}
	for i, l := range all {
		h, ok := headingAt(all, i, c.now.Kind)
		switch {
		case ok && !h.sub:
			c.section(h, l.page)
			if h.rest != "" {
				c.block = append(c.block, line{l.page, h.rest, true})
			}
		case ok && c.now.Kind != Front && c.now.Kind != References:
			c.paragraph()
			c.head = h.title
		case l.gap || len(c.block) >= maxBlock:
			c.paragraph()
			fallthrough
		default:
			c.block = append(c.block, l)
		}
	}
	c.section(heading{}, 0)
	return c.done
}

type cutter struct {
	words words
	done  []Section
	now   Section
	head  string
	block []line
}

// paragraph ends the one that was collected.
func (c *cutter) paragraph() {
	if len(c.block) > 0 {
		c.now.paragraphs = append(c.now.paragraphs, c.words.paragraph(c.block, c.head))
	}
	c.block = nil
}

// section ends the one that was collected and opens the next.
func (c *cutter) section(next heading, page int) {
	c.paragraph()
	if len(c.now.paragraphs) > 0 || c.now.Heading != "" {
		c.now.paragraphs = c.words.mend(c.now.paragraphs)
		var text []string
		for _, p := range c.now.paragraphs {
			text = append(text, p.text)
		}
		c.now.Text = strings.Join(text, "\n")
		c.done = append(c.done, c.now)
	}
	c.now, c.head = Section{Kind: next.kind, Heading: next.title, Page: page}, ""
}
