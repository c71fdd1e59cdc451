package cli

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/screen"
)

type teamsCommand struct {
	List teamsList `cmd:"" default:"withargs" aliases:"ls" help:"List your teams."`
	Use  teamsUse  `cmd:"" help:"Act in this team from now on."`
}

type teamsList struct {
	common `embed:""`
}

// Run marks the team that commands act in.
func (c *teamsList) Run(w screen.World) error {
	s, err := c.open(w)
	if err != nil {
		return err
	}
	list, err := s.teams()
	if err != nil {
		return err
	}
	me, err := s.api.GetMeWithResponse(w.Ctx, nil)
	if err != nil {
		return s.explain(err)
	}
	return s.emit(list, func() {
		rows := [][]string{{"", "NAME", "ID", "ROLE", "PLAN"}}
		for _, t := range list {
			mark := ""
			if t.ID == me.JSON200.Data.Team.ID {
				mark = "*"
			}
			rows = append(rows, []string{mark, t.Name, t.ID, string(t.Role), t.Plan})
		}
		s.Table(rows)
	})
}

func (s *session) teams() ([]api.TeamRow, error) {
	r, err := s.api.ListTeamsWithResponse(s.Ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	return r.JSON200.Data, nil
}

// team finds one of the caller's teams by its id or name.
func (s *session) team(name string) (api.TeamRow, error) {
	list, err := s.teams()
	if err != nil {
		return api.TeamRow{}, err
	}
	var found []api.TeamRow
	for _, t := range list {
		if t.ID == name || strings.EqualFold(t.Name, name) {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return api.TeamRow{}, fmt.Errorf("you have no team %q: see millrace teams", name)
	case 1:
		return found[0], nil
	default:
		return api.TeamRow{}, fmt.Errorf("%d of your teams are called %q: name one by its id, see millrace teams", len(found), name)
	}
}

type teamsUse struct {
	common `embed:""`
	Name   string `arg:"" name:"team" help:"Id or name of the team."`
}

// Run keeps the choice with the credentials; the server's own choice for
// other devices stays.
func (c *teamsUse) Run(w screen.World) error {
	s, err := c.open(w)
	if err != nil {
		return err
	}
	kept, ok := s.calls.As.(*line.KeptToken)
	if !ok {
		return fmt.Errorf("MILLRACE_TOKEN is in use: name the team with --team or MILLRACE_TEAM")
	}
	s.calls.Team = "" // the old choice may be gone
	t, err := s.team(c.Name)
	if err != nil {
		return err
	}
	err = kept.Keep.Update(func(ring *line.Keyring) error {
		if g := ring.Servers[s.server]; g != nil {
			g.Team = t.ID
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.emit(t, func() { s.Tell("Acting in team %s (%s).", screen.Clean(t.Name), t.ID) })
}
