package runs

import (
	"errors"
	"path/filepath"
	"strconv"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
	"github.com/millrace/millrace/internal/cli/transfer"
)

type runsKept struct {
	session.Flags `embed:""`
	Run_          string `arg:"" name:"run" help:"ID of the run."`
	Node          string `arg:"" optional:"" help:"ID of the step. Without it: list the run's kept folders."`
	Shard         int    `env:"-" help:"Item of a step that runs once per item, from 0."`
	Attempt       int    `env:"-" help:"Attempt, from 1. Default: the newest with a kept folder."`
	To            string `env:"-" help:"Download the files to this folder."`
	Force         bool   `env:"-" help:"Replace existing files that differ."`
}

// Run lists what is kept, or fetches it.
func (c *runsKept) Run(w screen.Console) error {
	if c.Node == "" && (c.To != "" || c.Shard != 0 || c.Attempt != 0) {
		return errors.New("--to, --shard and --attempt need the ID of a step")
	}
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	got, err := s.API.ListKeptAttemptsWithResponse(s.Ctx, c.Run_, nil)
	if err != nil {
		return s.Explain(err)
	}
	if c.Node == "" {
		return c.attempts(s, got.JSON200.Data)
	}
	attempt := c.Attempt
	for _, k := range got.JSON200.Data {
		if c.Attempt == 0 && k.NodeID == c.Node && k.Shard == c.Shard {
			attempt = max(attempt, k.Attempt)
		}
	}
	if attempt == 0 {
		return errors.New("no folder of this step is kept: see millrace runs kept " + c.Run_)
	}
	return c.files(s, attempt)
}

func (c *runsKept) attempts(s *session.Session, list []api.KeptAttempt) error {
	return s.Emit(list, func() {
		if len(list) == 0 {
			s.Note("No kept folders: no step failed, the folders have expired, or there was no disk space.")
			return
		}
		rows := [][]string{{"STEP", "ITEM", "ATTEMPT", "ENTRIES", "SIZE", "KEPT UNTIL"}}
		for _, k := range list {
			rows = append(rows, []string{
				k.NodeID, strconv.Itoa(k.Shard), strconv.Itoa(k.Attempt), strconv.Itoa(k.Files), screen.Size(k.Bytes), k.ExpiresAt.Local().Format("2006-01-02 15:04"),
			})
		}
		s.Table(rows)
	})
}

func (c *runsKept) files(s *session.Session, attempt int) error {
	got, err := s.API.ListKeptFilesWithResponse(s.Ctx, c.Run_, c.Node, c.Shard, attempt, nil)
	if err != nil {
		return s.Explain(err)
	}
	list := got.JSON200.Data
	if c.To == "" {
		return s.Emit(list, func() {
			rows := [][]string{{"PATH", "KIND", "SIZE", "KEPT"}}
			for _, f := range list {
				rows = append(rows, []string{f.Path, f.Kind, screen.Size(f.Size), map[bool]string{true: "yes", false: "–"}[f.URL != nil]})
			}
			s.Table(rows)
		})
	}
	folder, err := s.Folder(c.To, c.Force)
	if err != nil {
		return err
	}
	defer folder.Close()
	fetched := []api.KeptFile{}
	for _, f := range list {
		if f.URL == nil {
			continue
		}
		if err := folder.Fetch(transfer.File{Path: f.Path, URL: *f.URL, Size: f.Size}); err != nil {
			return s.Explain(err)
		}
		fetched = append(fetched, f)
		if !s.JSON {
			s.Say("%s", filepath.Join(c.To, filepath.FromSlash(f.Path)))
		}
	}
	if s.JSON {
		return s.Emit(fetched, nil)
	}
	return nil
}
