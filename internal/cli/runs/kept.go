package runs

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
	"github.com/millrace/millrace/internal/cli/transfer"
)

type runsKept struct {
	session.Flags `embed:""`
	runArg        `embed:""`
	Node          string `arg:"" optional:"" name:"step" help:"ID of the step, or of an item, such as align/3. Without it: list the run's kept folders."`
	Shard         *int   `env:"-" help:"Item of a step that runs once per item, from 0. Default: the only one with a kept folder."`
	Attempt       int    `env:"-" help:"Attempt, from 1. Default: the newest with a kept folder."`
	To            string `env:"-" help:"Download the files to this folder."`
	Force         bool   `env:"-" help:"Replace existing files that differ."`
}

// Run lists what is kept, or fetches it.
func (c *runsKept) Run(w screen.Console) error {
	if c.Node == "" && (c.To != "" || c.Shard != nil || c.Attempt != 0) {
		return errors.New("--to, --shard and --attempt need the ID of a step: millrace runs kept RUN STEP")
	}
	of, err := placeOf(c.Node, c.Shard)
	if err != nil {
		return err
	}
	s, id, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	got, err := s.API.ListKeptAttemptsWithResponse(s.Ctx, id, nil)
	if err != nil {
		return s.Explain(err)
	}
	list := got.JSON200.Data
	if c.Node == "" {
		return keptAttempts(s, list)
	}
	k, err := c.chosen(id, of, list)
	if err != nil {
		return err
	}
	return c.files(s, id, k)
}

// chosen is the attempt whose folder was asked for. Without an item, that is the only item
// with a folder.
func (c *runsKept) chosen(run string, of place, list []api.KeptAttempt) (api.KeptAttempt, error) {
	ids := keptIDs(list)
	list = slices.DeleteFunc(slices.Clone(list), func(k api.KeptAttempt) bool { return k.NodeID != of.Node })
	if len(list) == 0 {
		return api.KeptAttempt{}, fmt.Errorf("no folder of step %s is kept: see millrace runs kept %s", of.Node, run)
	}
	if several := slices.ContainsFunc(list, func(k api.KeptAttempt) bool { return k.Shard != list[0].Shard }); !of.OfItem && several {
		return api.KeptAttempt{}, fmt.Errorf("folders of several items are kept: name one of %s", namesOf(list, ids))
	}
	if !of.OfItem {
		of.Item = list[0].Shard
	}
	found := api.KeptAttempt{}
	for _, k := range list {
		if k.Shard == of.Item && (c.Attempt == k.Attempt || c.Attempt == 0 && k.Attempt > found.Attempt) {
			found = k
		}
	}
	if found.Attempt == 0 {
		return found, fmt.Errorf("no folder of this attempt is kept, but of %s: see millrace runs kept %s", namesOf(list, ids), run)
	}
	return found, nil
}

const mostNames = 10

// namesOf are the IDs of what is kept, once each.
func namesOf(list []api.KeptAttempt, ids map[string]bool) string {
	var names []string
	for _, k := range list {
		if name := keptID(k, ids); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if more := len(names) - mostNames; more > 0 {
		names = append(names[:mostNames], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// keptIDs tells which steps run once per item, as far as their kept folders show.
func keptIDs(list []api.KeptAttempt) map[string]bool {
	items := map[string]bool{}
	for _, k := range list {
		items[k.NodeID] = items[k.NodeID] || k.Shard > 0
	}
	return items
}

// keptID is the ID of the step or the item of a kept folder.
func keptID(k api.KeptAttempt, items map[string]bool) string {
	return place{Node: k.NodeID, Item: k.Shard, OfItem: items[k.NodeID]}.String()
}

func keptAttempts(s *session.Session, list []api.KeptAttempt) error {
	return s.Emit(list, func() {
		if len(list) == 0 {
			s.Note("No kept folders: no step failed, the folders have expired, or there was no disk space.")
			return
		}
		items := keptIDs(list)
		rows := [][]string{{"STEP", "ATTEMPT", "ENTRIES", "SIZE", "KEPT UNTIL"}}
		for _, k := range list {
			rows = append(rows, []string{
				keptID(k, items), strconv.Itoa(k.Attempt), strconv.Itoa(k.Files), screen.Size(k.Bytes), k.ExpiresAt.Local().Format("2006-01-02 15:04"),
			})
		}
		s.Table(rows)
	})
}

func (c *runsKept) files(s *session.Session, run string, k api.KeptAttempt) error {
	got, err := s.API.ListKeptFilesWithResponse(s.Ctx, run, k.NodeID, k.Shard, k.Attempt, nil)
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
	if len(fetched) == 0 {
		s.Note("The contents of none of its files are kept.")
	}
	return nil
}
