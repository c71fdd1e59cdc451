package runs

import (
	"crypto/rand"
	"strconv"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsShare struct {
	session.Flags `embed:""`
	Run_          string   `arg:"" name:"run" help:"ID of the run."`
	Hours         int      `env:"-" default:"168" help:"Hours until it expires, 1 to 720."`
	Param         []string `short:"p" env:"-" sep:"none" placeholder:"NAME" help:"A parameter to show; repeatable."`
	AllowCopy     bool     `env:"-" help:"Allow people to copy the workflow to their own team."`
}

// Run makes a link; its token is shown this once.
func (c *runsShare) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	key := rand.Text()
	r, err := s.API.CreateResultLinkWithResponse(s.Ctx, c.Run_, &api.CreateResultLinkParams{IdempotencyKey: &key},
		api.NewResultLink{ExpiresInHours: &c.Hours, Parameters: c.Param, AllowCopy: &c.AllowCopy})
	if err != nil {
		return s.Explain(err)
	}
	made := r.JSON201.Data
	return s.Emit(made, func() {
		s.Say("%s", made.Link)
		s.Note("Anyone with the link can see the graph and the outputs until %s. The link is shown only once. Revoke it with: millrace runs unshare %s %s",
			made.ExpiresAt.Local().Format("2006-01-02 15:04"), made.RunID, made.ID)
	})
}

type runsLinks struct {
	session.Flags `embed:""`
	Run_          string `arg:"" name:"run" help:"ID of the run."`
}

// Run lists the links to a run's results.
func (c *runsLinks) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.ListResultLinksWithResponse(s.Ctx, c.Run_, nil)
	if err != nil {
		return s.Explain(err)
	}
	list := r.JSON200.Data
	return s.Emit(list, func() {
		rows := [][]string{{"ID", "STATUS", "VIEWS", "SHOWS", "ENDS", "BY"}}
		for _, l := range list {
			rows = append(rows, []string{l.ID, l.Status, strconv.Itoa(l.Views), strings.Join(l.Parameters, " "), l.ExpiresAt.Local().Format("2006-01-02 15:04"), l.CreatedBy.Name})
		}
		s.Table(rows)
	})
}

type runsUnshare struct {
	session.Flags `embed:""`
	Run_          string `arg:"" name:"run" help:"ID of the run."`
	Link          string `arg:"" help:"ID of the link, as runs links shows it."`
}

// Run ends a link at once.
func (c *runsUnshare) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.RevokeResultLinkWithResponse(s.Ctx, c.Run_, &api.RevokeResultLinkParams{LinkID: c.Link})
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("revoked %s", c.Link) })
}
