package cli

import (
	"crypto/rand"
	"errors"
	"strconv"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type inviteCommand struct {
	Member inviteMember `cmd:"" default:"withargs" help:"Invite someone to the team by email, or everyone in a list."`
	Link   inviteLink   `cmd:"" help:"Create a share link: anyone with it can open the workflow."`
	List   inviteList   `cmd:"" aliases:"ls" help:"List a workflow's share links."`
	Revoke inviteRevoke `cmd:"" help:"Revoke a share link."`
}

type inviteMember struct {
	session.Flags `embed:""`
	Email         string `arg:"" optional:"" help:"Email address."`
	Role          string `env:"-" enum:"member,admin,viewer,owner" default:"member" help:"member or admin; with --file also viewer and owner, for addresses without a role."`
	File          string `env:"-" type:"path" placeholder:"list.csv" help:"List of email addresses, one or several a line, with a role after them if it is another; - reads standard input. At most 500."`
}

// Run has the server send the mail, once however often it is asked.
func (c *inviteMember) Run(w screen.Console) error {
	if (c.Email == "") == (c.File == "") {
		return errors.New("give an email address, or a list with --file")
	}
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	if c.File != "" {
		return c.inviteList(w, s)
	}
	if c.Role != "member" && c.Role != "admin" {
		return errors.New("--role is member or admin; with --file also viewer and owner")
	}
	key := rand.Text()
	in := api.NewTeamInvitation{Email: c.Email, Role: api.NewTeamInvitationRole(c.Role)}
	r, err := s.API.InviteMemberWithResponse(s.Ctx, &api.InviteMemberParams{IdempotencyKey: &key}, in)
	if err != nil {
		return s.Explain(err)
	}
	i := r.JSON201.Data
	return s.Emit(i, func() {
		s.Say("invited %s as %s; the invitation expires %s", screen.Clean(i.Email), i.Role, s.Ago(i.ExpiresAt.Time))
		if !i.Mailed && i.Link != nil {
			s.Say("no email was sent, since your own email address is not confirmed: send them this link, %s", screen.Clean(*i.Link))
		}
	})
}

type inviteLink struct {
	session.Flags `embed:""`
	Workflow      string   `arg:"" help:"ID or name of the workflow."`
	Role          string   `env:"-" enum:"viewer,editor" default:"viewer" help:"viewer: view only; editor: edit and run, paid for by your team."`
	Hours         *int     `env:"-" help:"Hours until it expires, 1 to 720. Default: 168 (7 days)."`
	Uses          *int     `env:"-" help:"Guest limit, 1 to 1000. Default: unlimited."`
	MaxCredits    *float64 `env:"-" placeholder:"CREDITS" help:"Spending limit for all its guests together. Default: unlimited."`
	Results       bool     `env:"-" name:"allow-results" help:"Give guests a link to the results of each run they start."`
	Secrets       bool     `env:"-" name:"allow-secrets" help:"Allow guests to use team secrets (they could read them)."`
}

// Run prints the link; it is shown this once.
func (c *inviteLink) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	id, err := s.WorkflowID(c.Workflow)
	if err != nil {
		return err
	}
	key := rand.Text()
	in := api.NewCollabInvite{WorkflowID: id, Role: api.InviteRole(c.Role), ExpiresInHours: c.Hours, MaxUses: c.Uses, MaxCredits: c.MaxCredits, AllowSecrets: &c.Secrets, AllowResults: &c.Results}
	r, err := s.API.CreateInviteWithResponse(s.Ctx, &api.CreateInviteParams{IdempotencyKey: &key}, in)
	if err != nil {
		return s.Explain(err)
	}
	i := r.JSON201.Data
	return s.Emit(i, func() {
		s.Say("%s", i.Link)
		s.Note("It is shown only once, opens the workflow as %s and expires %s. Revoke it with: millrace invite revoke %s", i.Role, s.Ago(i.ExpiresAt.Time), i.ID)
	})
}

type inviteList struct {
	session.Flags `embed:""`
	Workflow      string `arg:"" help:"ID or name of the workflow."`
}

// Run lists ended ones, too.
func (c *inviteList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	id, err := s.WorkflowID(c.Workflow)
	if err != nil {
		return err
	}
	r, err := s.API.ListInvitesWithResponse(s.Ctx, &api.ListInvitesParams{WorkflowID: id})
	if err != nil {
		return s.Explain(err)
	}
	list := r.JSON200.Data
	return s.Emit(list, func() {
		rows := [][]string{{"ID", "ROLE", "STATUS", "USES", "ENDS", "TOKEN"}}
		for _, i := range list {
			uses := strconv.Itoa(i.Uses)
			if i.MaxUses != nil {
				uses += " of " + strconv.Itoa(*i.MaxUses)
			}
			rows = append(rows, []string{i.ID, string(i.Role), string(i.Status), uses, s.Ago(i.ExpiresAt.Time), i.TokenHint})
		}
		s.Table(rows)
	})
}

type inviteRevoke struct {
	session.Flags `embed:""`
	ID            string `arg:"" help:"ID of the link, from invite list."`
}

// Run works at once, for guests who are there, too.
func (c *inviteRevoke) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.RevokeInviteWithResponse(s.Ctx, &api.RevokeInviteParams{ID: c.ID})
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("revoked %s", c.ID) })
}
