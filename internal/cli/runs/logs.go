package runs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

// Logs prints what a run wrote.
type Logs struct {
	session.Flags `embed:""`
	runArg        `embed:""`
	Follow        bool   `short:"f" env:"-" help:"Keep printing until the run ends."`
	Node          string `env:"-" placeholder:"STEP" help:"Only the log of this step, or of an item, such as align/3."`
	Shard         *int   `env:"-" help:"With --node: only this item."`
}

// logPlace is a point in what a run wrote.
type logPlace struct {
	run    string
	node   string
	shard  int
	offset int64
}

// Run prints the log from its beginning. With --json it is one object a page.
func (c *Logs) Run(w screen.Console) error {
	if c.Shard != nil && c.Node == "" {
		return errors.New("--shard needs --node")
	}
	of, err := placeOf(c.Node, c.Shard)
	if err != nil {
		return err
	}
	if c.JSON && c.Follow {
		return errors.New("--json and --follow can't be combined")
	}
	s, id, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	at := logPlace{run: id, node: of.Node, shard: of.Item}
	print := func(text string) { fmt.Fprint(s.Out, s.LogText(text)) }
	if of.Node != "" {
		if err := hasNode(s, id, of.Node); err != nil {
			return err
		}
	}
	if s.JSON {
		return jsonLogs(s, at)
	}
	read := func() error {
		next, err := readLogs(s, at, print)
		at.offset = next
		return err
	}
	if err := read(); err != nil || !c.Follow {
		return s.Explain(err)
	}
	// Every message of the stream is a reason to look; the last one comes after
	// the last line.
	return follow(s, id, func(m message) error {
		if at.node == "" && m.logEnd == at.offset {
			return nil
		}
		return read()
	})
}

// hasNode is an error for a node that the run does not have: its log would be empty.
func hasNode(s *session.Session, run, node string) error {
	r, err := s.API.GetRunWithResponse(s.Ctx, run, nil)
	if err != nil {
		return s.Explain(err)
	}
	if slices.ContainsFunc(r.JSON200.Nodes, func(n api.RunNode) bool { return n.ID == node }) {
		return nil
	}
	return fmt.Errorf("the run has no step %q: \"millrace runs view %s\" lists them", node, run)
}

// readLogs prints what was written from a point on, and returns where it ended.
func readLogs(s *session.Session, at logPlace, print func(string)) (next int64, err error) {
	for {
		page, err := logPage(s, at)
		if err != nil {
			return at.offset, err
		}
		if page.Text != "" {
			print(page.Text)
		}
		at.offset = page.NextOffset
		if page.EOF || page.NextOffset == page.Offset {
			return at.offset, nil
		}
	}
}

func logPage(s *session.Session, at logPlace) (api.RunLogs, error) {
	params := &api.ReadRunLogsParams{Offset: &at.offset}
	if at.node != "" {
		params.NodeID, params.Shard = &at.node, &at.shard
	}
	r, err := s.API.ReadRunLogsWithResponse(s.Ctx, at.run, params)
	if err != nil {
		return api.RunLogs{}, s.Explain(err)
	}
	return r.JSON200.Data, nil
}

// jsonLogs prints the pages as the API gives them.
func jsonLogs(s *session.Session, at logPlace) error {
	for {
		page, err := logPage(s, at)
		if err != nil {
			return err
		}
		if err := s.Emit(page, nil); err != nil {
			return err
		}
		if page.EOF || page.NextOffset == page.Offset {
			return nil
		}
		at.offset = page.NextOffset
	}
}
