package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/groups"
	"github.com/millrace/millrace/internal/store"
)

// Groups is about groups at providers.
type Groups struct {
	List GroupsList `cmd:"" help:"List the rules."`
	Set  GroupsSet  `cmd:"" help:"Replace all rules by those of a file."`
}

// GroupsList lists the rules.
type GroupsList struct {
	installation.Settings `embed:""`
	JSON                  bool `name:"json" help:"Print what the command set reads."`
}

// Run prints a table, or JSON.
func (c *GroupsList) Run(w Console) error {
	return c.Beside(w.Ctx, func(db *store.DB) error {
		m, err := groups.NewService(db).Mapping(w.Ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			out := api.GroupMapping{Rules: make([]api.GroupRule, len(m))}
			for i, r := range m {
				out.Rules[i] = api.GroupRule{Group: r.Group, TeamID: string(r.Team), Role: api.Role(r.Role)}
			}
			e := json.NewEncoder(w.Out)
			e.SetIndent("", "  ")
			return e.Encode(out)
		}
		return table(w.Out, "GROUP\tTEAM\tROLE", func(t io.Writer) {
			for _, r := range m {
				fmt.Fprintf(t, "%q\t%s\t%s\n", r.Group, r.Team, r.Role)
			}
		})
	})
}

// GroupsSet replaces the rules.
type GroupsSet struct {
	installation.Settings `embed:""`
	File                  string `arg:"" help:"File such as {\"rules\": [{\"group\": \"lab\", \"teamId\": \"team_…\", \"role\": \"member\"}]}; - reads standard input."`
}

// mostBytes bounds a file of rules, as it does the request that sets them.
const mostBytes = 1 << 20

// Run reads the file and sets what it says.
func (c *GroupsSet) Run(w Console) error {
	in, err := c.rules(w.In)
	if err != nil {
		return err
	}
	m := make(groups.Mapping, len(in.Rules))
	for i, r := range in.Rules {
		m[i] = groups.Rule{Group: r.Group, Team: ids.Team(r.TeamID), Role: access.Role(r.Role)}
	}
	ctx := w.Audited("operator.group_mapping_set", audit.Installation, "")
	return c.Beside(ctx, func(db *store.DB) error {
		if err := groups.NewService(db).Replace(ctx, m, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w.Out, "set %d rules; each applies to a person from their next sign-in through a provider\n", len(m))
		return err
	})
}

func (c *GroupsSet) rules(in io.Reader) (m api.GroupMapping, err error) {
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return m, err
		}
		defer f.Close()
		in = f
	}
	d := json.NewDecoder(io.LimitReader(in, mostBytes))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("%s: %w", c.File, err)
	}
	if m.Rules == nil || d.More() {
		return m, errors.New("the file has no list of rules, or more than one: {\"rules\": []} removes all")
	}
	return m, nil
}
