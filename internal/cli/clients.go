package cli

import (
	"fmt"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type clientsCommand struct {
	session.Flags `embed:""`
}

// Run shows what the server offers to install. Nobody has to be signed in.
func (c *clientsCommand) Run(w screen.Console) error {
	s, err := c.Visit(w)
	if err != nil {
		return err
	}
	r, err := s.API.ListClientsWithResponse(s.Ctx)
	if err != nil {
		return s.Explain(err)
	}
	list := r.JSON200.Data
	return s.Emit(list, func() {
		rows := [][]string{{"NAME", "FOR", "SHA-256"}}
		for _, f := range list {
			rows = append(rows, []string{screen.Clean(f.Name), screen.Clean(purpose(f)), screen.Clean(f.Sha256)})
		}
		s.Table(rows)
		for _, f := range list {
			if f.Install != nil {
				fmt.Fprintf(s.Out, "\nTo install %s:\n\n    %s\n", screen.Clean(purpose(f)), screen.Clean(*f.Install))
			}
		}
	})
}

// purpose says in words what a file is for.
func purpose(f api.ClientFile) string {
	switch f.Kind {
	case "python":
		return "the Python client"
	case "snakemake":
		return "the Snakemake plugin, with the Python client"
	case "program":
		if f.Platform != nil {
			return "the command line on " + *f.Platform
		}
	}
	return "–"
}
