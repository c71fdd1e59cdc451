package runs

import (
	"errors"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

// labelFlags say what a run is called.
type labelFlags struct {
	Name *string  `env:"-" help:"Name of the run."`
	Note *string  `env:"-" help:"Why you ran it, or what you found."`
	Tag  []string `env:"-" sep:"none" help:"A tag to find it by; repeatable."`
}

type runsRename struct {
	session.Flags `embed:""`
	Run_          string   `arg:"" name:"run" help:"ID of the run."`
	Name          *string  `arg:"" optional:"" help:"The name; an empty one removes it."`
	Note          *string  `env:"-" help:"The note; an empty one removes it."`
	Tag           []string `env:"-" sep:"none" help:"A tag; replaces existing tags; repeatable."`
	NoTags        bool     `env:"-" help:"Remove all tags."`
}

// Run changes what is named and leaves the rest.
func (c *runsRename) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	in := api.RunEdit{Name: c.Name, Note: c.Note}
	if len(c.Tag) > 0 || c.NoTags {
		tags := append([]string{}, c.Tag...) // none is a list, too
		in.Tags = &tags
	}
	if in.Name == nil && in.Note == nil && in.Tags == nil {
		return errors.New("nothing to change: set a name, --note, --tag or --no-tags")
	}
	r, err := s.API.EditRunWithResponse(s.Ctx, c.Run_, nil, in)
	if err != nil {
		return s.Explain(err)
	}
	row := r.JSON200.Data
	return s.Emit(row, func() { s.Say("%s is %s", row.ID, screen.Clean(nameText(row.Name, row.Tags))) })
}

// given is what was typed; nothing: nil.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

// nameText is a run's name with its tags, or a dash.
func nameText(name *string, tags []string) string {
	words := []string{text(name)}
	for _, t := range tags {
		words = append(words, "["+t+"]")
	}
	if line := strings.TrimSpace(strings.Join(words, " ")); line != "" {
		return line
	}
	return "–"
}
