package cli

import (
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type serviceAccountsCommand struct {
	List   serviceAccountsList   `cmd:"" default:"withargs" aliases:"ls" help:"List the team's service accounts and their tokens."`
	Create serviceAccountsCreate `cmd:"" help:"Create a service account."`
	Delete serviceAccountsDelete `cmd:"" aliases:"rm" help:"Delete a service account and all its tokens."`
	Token  serviceAccountsToken  `cmd:"" help:"Create a token; it is shown only once."`
	Rotate serviceAccountsRotate `cmd:"" help:"Replace a token; the old one keeps working for a while."`
	Revoke serviceAccountsRevoke `cmd:"" help:"Revoke a token immediately."`
}

type serviceAccountsList struct {
	session.Flags `embed:""`
}

// Run shows tokens without what makes them tokens.
func (c *serviceAccountsList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.ListServiceAccountsWithResponse(s.Ctx, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() {
		rows := [][]string{{"ACCOUNT", "ROLE", "TOKEN", "SCOPES", "EXPIRES", "LAST USED", "ENDS IN"}}
		for _, a := range r.JSON200.Data {
			rows = append(rows, []string{a.Name + "  " + a.ID, string(a.Role), "", "", "", "", ""})
			for _, t := range a.Tokens {
				used := "never"
				if t.LastUsedAt != nil {
					used = s.Ago(t.LastUsedAt.Time)
				}
				rows = append(rows, []string{"", string(t.Role), t.Name + "  " + t.ID, scopeWords(t.Scopes), s.Ago(t.ExpiresAt.Time), used, t.TokenHint})
			}
		}
		s.Table(rows)
	})
}

func scopeWords(list []api.Scope) string {
	if len(list) == 0 {
		return "everything its role allows"
	}
	words := make([]string, len(list))
	for i, scope := range list {
		words[i] = string(scope)
	}
	return strings.Join(words, ",")
}

type serviceAccountsCreate struct {
	session.Flags `embed:""`
	Name          string `arg:"" help:"Name, for example the program that uses it."`
	Role          string `env:"-" enum:"viewer,member,admin" default:"member" help:"viewer, member or admin."`
}

// Run prints the id that the other commands take.
func (c *serviceAccountsCreate) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	role := api.Role(c.Role)
	r, err := s.API.CreateServiceAccountWithResponse(s.Ctx, nil, api.NewServiceAccount{Name: c.Name, Role: &role})
	if err != nil {
		return s.Explain(err)
	}
	a := r.JSON201.Data
	return s.Emit(a, func() {
		s.Say("%s", a.ID)
		s.Note("Create a token for it with: millrace service-accounts token %s NAME", a.ID)
	})
}

type serviceAccountsDelete struct {
	session.Flags `embed:""`
	ID            string `arg:"" help:"ID of the service account."`
}

// Run ends its tokens, too.
func (c *serviceAccountsDelete) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.DeleteServiceAccountWithResponse(s.Ctx, c.ID, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("deleted %s", c.ID) })
}

type serviceAccountsToken struct {
	session.Flags `embed:""`
	ID            string   `arg:"" help:"ID of the service account."`
	Name          string   `arg:"" help:"Name of the token, for example where it's used."`
	Scopes        []string `env:"-" help:"read, run, write, admin. Default: everything its role allows."`
	Days          *int     `env:"-" help:"Days until it expires, 1 to 366. Default: 90."`
}

// Run prints the token alone, for a pipe into another program's secrets.
func (c *serviceAccountsToken) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	in := api.NewAPIToken{Name: c.Name, ExpiresInDays: c.Days}
	for _, scope := range c.Scopes {
		in.Scopes = append(in.Scopes, api.Scope(scope))
	}
	r, err := s.API.CreateServiceTokenWithResponse(s.Ctx, c.ID, nil, in)
	if err != nil {
		return s.Explain(err)
	}
	return emitToken(s, r.JSON201.Data)
}

func emitToken(s *session.Session, t api.CreatedAPIToken) error {
	return s.Emit(t, func() {
		s.Say("%s", t.Token)
		s.Note("It is shown only once, and expires %s.", s.Ago(t.ExpiresAt.Time))
	})
}

// token is what names one token of a service account.
type serviceToken struct {
	ID    string `arg:"" help:"ID of the service account."`
	Token string `arg:"" help:"ID of the token, from service-accounts list."`
}

type serviceAccountsRotate struct {
	session.Flags `embed:""`
	serviceToken  `embed:""`
	Overlap       int `env:"-" default:"24" help:"Hours the old token keeps working, 0 to 720."`
}

// Run prints the new token.
func (c *serviceAccountsRotate) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.RotateServiceTokenWithResponse(s.Ctx, c.ID, c.Token, nil, api.TokenRotation{OverlapHours: &c.Overlap})
	if err != nil {
		return s.Explain(err)
	}
	return emitToken(s, r.JSON201.Data)
}

type serviceAccountsRevoke struct {
	session.Flags `embed:""`
	serviceToken  `embed:""`
}

// Run works at once.
func (c *serviceAccountsRevoke) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.RevokeServiceTokenWithResponse(s.Ctx, c.ID, c.Token, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("revoked %s", c.Token) })
}
