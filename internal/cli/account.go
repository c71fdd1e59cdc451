package cli

import (
	"errors"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type accountCommand struct {
	Delete accountDelete `cmd:"" help:"Delete your account, and the teams that only you belong to."`
}

type accountDelete struct {
	session.Flags `embed:""`
	Confirm       string `env:"-" placeholder:"ID" help:"ID of your account, from whoami."`
}

// Run deletes the account of whoever is signed in, if they confirm it with its id.
func (c *accountDelete) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	if c.Confirm == "" {
		return errors.New("this deletes your account and the teams that only you belong to, and can't be undone: confirm it with --confirm and the id that `millrace whoami` shows")
	}
	r, err := s.API.DeleteMeWithResponse(s.Ctx, api.DeleteAccount{Confirm: c.Confirm})
	if err != nil {
		return s.Explain(err)
	}
	gone := r.JSON200.Data
	return s.Emit(gone, func() { s.Say("your account is deleted, and %d teams are being erased", len(gone.ErasedTeams)) })
}
