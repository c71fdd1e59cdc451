package reader

import (
	"slices"
	"strings"
)

// What a list of steps may hold, so that it stays one that somebody reads.
const (
	maxSteps       = 40
	maxQuotes      = 4 // of one step
	maxDescription = 700
)

// action is how methods tell what was done.
var action = compiled(`(?i)\b(?:(?:was|were|is|are|has been|have been|had been)\s+(?:\w+ly\s+|then\s+|first\s+|subsequently\s+)*\w+(?:ed|en|wn|ne|ilt|un|ut|ade|ept|ound|ought|ead)\b|we\s+(?:then\s+|first\s+|next\s+|also\s+|\w+ly\s+)?\w+(?:ed|uilt|an|ade|ook|ept|ound)\b)`)

// steps tells how the work was done, in the order of the methods: a step for
// each part of the methods, or for each sentence in it that brings in a tool.
func steps(all []finding, said quotes) []Step {
	list := []Step{}
	var now *Step
	head := ""
	for i, f := range all {
		if !f.method || !f.prose || len(list) >= maxSteps {
			continue
		}
		if f.head != head || i == 0 || all[i-1].part != f.part {
			now, head = nil, f.head
		}
		tools := named(f)
		acts := action().MatchString(f.text)
		switch {
		case len(tools) == 0 && !acts:
			continue
		case now == nil, opens(now, tools):
			list = append(list, Step{Name: nameOf(f), Tools: []string{}, Evidence: []Evidence{}})
			now = &list[len(list)-1]
		}
		now.add(f, tools, &said)
	}
	return list
}

// opens reports whether a sentence with these tools is a step of its own.
func opens(now *Step, tools []string) bool {
	return slices.ContainsFunc(tools, func(t string) bool { return !slices.Contains(now.Tools, t) }) && len(now.Tools) > 0
}

// named lists the tools of a sentence, without databases.
func named(f finding) []string {
	var tools []string
	for _, m := range f.mentions {
		if m.tool.kind.name != "database" && !slices.Contains(tools, m.tool.name) {
			tools = append(tools, m.tool.name)
		}
	}
	return tools
}

func (s *Step) add(f finding, tools []string, said *quotes) {
	if len(s.Tools) == 0 && len(tools) > 0 {
		s.Name = nameOf(f)
	}
	for _, t := range tools {
		if !slices.Contains(s.Tools, t) {
			s.Tools = append(s.Tools, t)
		}
	}
	if len(s.Description)+len(f.text) < maxDescription || s.Description == "" {
		s.Description = strings.TrimSpace(s.Description + " " + clip(f.text, maxDescription))
	}
	if len(s.Evidence) >= maxQuotes || len(tools) == 0 && len(s.Evidence) > 0 {
		return
	}
	if said.tries++; said.tries > maxSteps*maxQuotes {
		return // what cannot be found is not looked for again and again
	}
	if page, ok := said.find(f.text); ok {
		s.Evidence = append(s.Evidence, Evidence{page, f.text})
	}
}

// nameOf calls a step after what its first tool does, or else after the
// heading or the first words.
func nameOf(f finding) string {
	for _, m := range f.mentions {
		if k := m.tool.kind; k.title != "" && !background[k.name] {
			return k.title
		}
	}
	if f.head != "" {
		return f.head
	}
	words := strings.Fields(f.text)
	if len(words) > 8 {
		return strings.Join(words[:8], " ") + " …"
	}
	return strings.Join(words, " ")
}

// background are the kinds of tools that a task uses without being about them.
var background = map[string]bool{"library": true, "language": true, "environment": true, "database": true}

// clip cuts a text at a word.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := strings.LastIndexByte(text[:most], ' ')
	if cut < 1 {
		cut = most
	}
	return strings.ToValidUTF8(text[:cut], "") + " …"
}
