package runs

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/tags"
)

// Label is what somebody called a run.
type Label struct {
	Name string
	Note string
	Tags []string
}

// LabelEdit changes a label; what is nil stays as it is.
type LabelEdit struct {
	Name *string
	Note *string
	Tags []string
}

const (
	maxName = 200
	maxNote = 10_000
)

func (l Label) empty() bool { return l.Name == "" && l.Note == "" && len(l.Tags) == 0 }

// checked is the label as it is kept, and what is wrong with it.
func (l Label) checked() (Label, []fault.Detail) {
	e, wrong := LabelEdit{Name: &l.Name, Note: &l.Note, Tags: l.Tags}.checked()
	return Label{Name: *e.Name, Note: *e.Note, Tags: e.Tags}, wrong
}

func (e LabelEdit) checked() (LabelEdit, []fault.Detail) {
	var wrong []fault.Detail
	if e.Name != nil {
		name := strings.TrimSpace(*e.Name)
		if utf8.RuneCountInString(name) > maxName || strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) {
			wrong = append(wrong, fault.Detail{Path: "name", Message: "needs at most 200 characters in one line"})
		}
		e.Name = &name
	}
	if e.Note != nil && (utf8.RuneCountInString(*e.Note) > maxNote || strings.ContainsRune(*e.Note, 0) || !utf8.ValidString(*e.Note)) {
		wrong = append(wrong, fault.Detail{Path: "note", Message: "needs at most 10,000 characters, none of them NUL"})
	}
	if e.Tags != nil {
		clean, faults := tags.Checked(e.Tags)
		e.Tags, wrong = clean, append(wrong, faults...)
	}
	return e, wrong
}

// SetLabel changes the name, the note or the tags of a run. Members may change
// those of the runs that they started.
func (s *Service) SetLabel(ctx context.Context, caller access.Caller, id ids.Run, e LabelEdit) (Run, error) {
	if err := caller.Must(access.StartRuns); err != nil {
		return Run{}, err
	}
	r, err := s.Run(ctx, caller, id)
	if err != nil {
		return Run{}, err
	}
	if !r.Own(caller) && !caller.May(access.LabelAnyRun) {
		return Run{}, fault.Forbidden("only admins and owners can name someone else's run")
	}
	e, wrong := e.checked()
	if len(wrong) > 0 {
		return Run{}, fault.Problems(wrong, "%s", wrong[0].Sentence())
	}
	if err := s.store.LabelRun(ctx, caller.Team, id, e); err != nil {
		return Run{}, err
	}
	if r, err = s.details.LeanRun(ctx, caller.Team, id); err != nil {
		return r, err
	}
	return r, s.explainWaiting(ctx, caller.Team, &r)
}
