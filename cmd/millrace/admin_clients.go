package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store"
)

type clientCommand struct {
	Add    clientAdd    `cmd:"" help:"Register an OAuth client."`
	List   clientList   `cmd:"" help:"List registered OAuth clients."`
	Remove clientRemove `cmd:"" help:"Remove an OAuth client and revoke all its tokens."`
}

type clientAdd struct {
	databaseSettings `embed:""`
	ID               string   `arg:"" help:"The client_id of the client."`
	Redirect         []string `arg:"" help:"Redirect URIs: https://…, http://127.0.0.1 (any port and path), or a custom scheme with a dot."`
	Name             string   `required:"" help:"Name shown to people when it asks for access."`
}

// Run registers a public client: it has no secret to keep.
func (c *clientAdd) Run(w console) error {
	w = w.audited("operator.client_added", audit.Installation, c.ID)
	client := builtin.Client{ID: c.ID, Name: strings.TrimSpace(c.Name), RedirectURIs: c.Redirect}
	if err := builtin.CheckClient(client); err != nil {
		return err
	}
	return c.Beside(w.ctx, func(db *store.DB) error {
		client.CreatedAt = db.Now()
		if err := db.InsertClient(w.ctx, client); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w.out, "registered %s (%s)\n", client.ID, client.Name)
		return err
	})
}

type clientList struct {
	databaseSettings `embed:""`
}

// Run prints a table, the built-in client first.
func (c *clientList) Run(w console) error {
	return c.Beside(w.ctx, func(db *store.DB) error {
		list, err := db.Clients(w.ctx)
		if err != nil {
			return err
		}
		t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ID\tNAME\tREDIRECTS")
		for _, client := range append([]builtin.Client{builtin.CommandLine}, list...) {
			fmt.Fprintf(t, "%s\t%s\t%s\n", client.ID, client.Name, strings.Join(client.RedirectURIs, " "))
		}
		return t.Flush()
	})
}

type clientRemove struct {
	databaseSettings `embed:""`
	ID               string `arg:"" help:"The client_id."`
}

// Run ends all that people gave the program.
func (c *clientRemove) Run(w console) error {
	w = w.audited("operator.client_removed", audit.Installation, c.ID)
	return c.Beside(w.ctx, func(db *store.DB) error {
		if err := db.DeleteClient(w.ctx, c.ID); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w.out, "removed %s and revoked its tokens\n", c.ID)
		return err
	})
}
