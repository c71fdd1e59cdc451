package cli

import (
	"strconv"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type secretsCommand struct {
	List   secretsList   `cmd:"" default:"withargs" aliases:"ls" help:"List the team's secrets, without their values."`
	Set    secretsSet    `cmd:"" help:"Set a secret; its value is read from standard input."`
	Delete secretsDelete `cmd:"" aliases:"rm" help:"Delete a secret."`
}

type secretsList struct {
	session.Flags `embed:""`
}

// Run shows what may be known.
func (c *secretsList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.ListSecretsWithResponse(s.Ctx, nil)
	if err != nil {
		return s.Explain(err)
	}
	list := r.JSON200.Data
	return s.Emit(list, func() {
		rows := [][]string{{"NAME", "VERSION", "CHANGED", "LAST USED", "ENDS IN"}}
		for _, x := range list {
			used, hint := "never", ""
			if x.LastUsedAt != nil {
				used = s.Ago(x.LastUsedAt.Time)
			}
			if x.Hint != nil {
				hint = *x.Hint
			}
			rows = append(rows, []string{x.Name, strconv.Itoa(x.Version), s.Ago(x.UpdatedAt.Time), used, hint})
		}
		s.Table(rows)
	})
}

type secretsSet struct {
	session.Flags `embed:""`
	Name          string `arg:"" help:"Name of the secret. Steps that list it under secrets read it as SECRET_<name>."`
}

// maxSecret is a little more than the server takes, which has the last word.
const maxSecret = 65 << 10

// Run never takes the value as an argument: those are seen by everybody on the
// machine, and kept by shells. The line end after the last line is not part of
// it.
func (c *secretsSet) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	value, err := s.SecretText("Value: ", maxSecret)
	if err != nil {
		return err
	}
	r, err := s.API.PutSecretWithResponse(s.Ctx, c.Name, nil, api.NewSecret{Value: value})
	if err != nil {
		return s.Explain(err)
	}
	x := r.JSON200.Data
	return s.Emit(x, func() { s.Say("set %s, version %d", x.Name, x.Version) })
}

type secretsDelete struct {
	session.Flags `embed:""`
	Name          string `arg:"" help:"Name of the secret."`
}

// Run forgets it at once.
func (c *secretsDelete) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.DeleteSecretWithResponse(s.Ctx, c.Name, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("deleted %s", c.Name) })
}
