package runs

import (
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
	"github.com/millrace/millrace/internal/cli/transfer"
)

type outputsCommand struct {
	List     outputsList     `cmd:"" default:"withargs" aliases:"ls" help:"List a run's outputs."`
	Download outputsDownload `cmd:"" help:"Download a run's outputs and verify their checksums."`
}

type outputsList struct {
	session.Flags `embed:""`
	runArg        `embed:""`
}

// Run lists what is verified so far.
func (c *outputsList) Run(w screen.Console) error {
	s, id, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	list, err := outputs(s, id)
	if err != nil {
		return err
	}
	return s.Emit(list, func() {
		rows := [][]string{{"NAME", "STEP", "PORT", "SIZE", "SHA-256"}}
		for _, o := range list {
			rows = append(rows, []string{o.Name, o.NodeID, o.Port, screen.Size(session.SizeOf(o.Size, o.Directory)), o.Sha256})
		}
		s.Table(rows)
	})
}

// outputs are all of a run's, read page by page: each page is checked before
// it is answered, which takes its time where there are thousands.
func outputs(s *session.Session, run string) ([]api.Output, error) {
	all, limit := []api.Output{}, 500
	params := api.ListRunOutputsParams{Limit: &limit}
	for {
		r, err := s.API.ListRunOutputsWithResponse(s.Ctx, run, &params)
		if err != nil {
			return nil, s.Explain(err)
		}
		all = append(all, r.JSON200.Data...)
		if params.Cursor = r.JSON200.Page.NextCursor; params.Cursor == nil {
			return all, nil
		}
	}
}

type outputsDownload struct {
	session.Flags `embed:""`
	runArg        `embed:""`
	To            string `env:"-" default:"." help:"Folder to write to."`
	Name          string `env:"-" placeholder:"PATTERN" help:"Only files whose name matches, such as *.csv."`
	Force         bool   `env:"-" help:"Replace existing files that differ."`
}

// Run prints the path of each file that is there, whole and checked.
func (c *outputsDownload) Run(w screen.Console) error {
	s, id, err := c.at(c.Flags, w)
	if err != nil {
		return err
	}
	if _, err := path.Match(c.Name, ""); err != nil {
		return fmt.Errorf("--name %s is not a valid pattern", c.Name)
	}
	list, err := outputs(s, id)
	if err != nil {
		return err
	}
	folder, err := s.Folder(c.To, c.Force)
	if err != nil {
		return err
	}
	defer folder.Close()
	fetched := []api.Output{}
	for i, place := range places(list) {
		if match, _ := path.Match(c.Name, list[i].Name); c.Name != "" && !match {
			continue
		}
		o, err := fresh(s, id, list[i])
		if err != nil {
			return err
		}
		if o.Directory != nil {
			err = session.FetchDirectory(folder, transfer.Directory{Path: place, Manifest: o.URL, Sum: o.Sha256}, o.Directory, func() (*api.Directory, error) {
				again, err := renewed(s, id, o)
				return again.Directory, err
			})
		} else {
			err = folder.Fetch(transfer.File{Path: place, URL: o.URL, Sum: o.Sha256, Size: o.Size, Renew: func() (string, error) {
				again, err := renewed(s, id, o)
				return again.URL, err
			}})
		}
		if err != nil {
			return s.Explain(err)
		}
		fetched = append(fetched, o)
		if !s.JSON {
			s.Say("%s", filepath.Join(c.To, filepath.FromSlash(place)))
		}
	}
	if s.JSON {
		return s.Emit(fetched, nil)
	}
	if len(fetched) == 0 {
		s.Note("No outputs to download.")
	}
	return nil
}

// fresh is the output with an address that lives: a long download can outlast
// the addresses of those behind it.
func fresh(s *session.Session, run string, o api.Output) (api.Output, error) {
	if s.Now().Add(time.Minute).Before(o.ExpiresAt.Time) {
		return o, nil
	}
	return renewed(s, run, o)
}

// renewed is the output with a new address.
func renewed(s *session.Session, run string, o api.Output) (api.Output, error) {
	list, err := outputs(s, run)
	if err != nil {
		return o, err
	}
	for _, again := range list {
		if again.Key == o.Key {
			return again, nil
		}
	}
	return o, fmt.Errorf("%s no longer exists", o.Name)
}

// places gives each output a path of its own: its name, and where several
// share it, below their node, port and shard.
func places(list []api.Output) []string {
	named := map[string]int{}
	for _, o := range list {
		named[strings.ToLower(o.Name)]++ // some disks do not tell case
	}
	below, taken := make([]string, len(list)), map[string]bool{}
	for i, o := range list {
		if named[strings.ToLower(o.Name)] == 1 {
			continue
		}
		below[i] = o.NodeID + "/" + o.Port + "/"
		if o.Index != nil {
			below[i] += strconv.Itoa(*o.Index) + "/"
		}
		taken[strings.ToLower(o.NodeID)] = true // by a folder, which no file may be called
	}
	all := make([]string, len(list))
	for i, o := range list {
		place := below[i] + o.Name
		for n := 2; taken[strings.ToLower(place)]; n++ {
			place = below[i] + strconv.Itoa(n) + "-" + o.Name
		}
		taken[strings.ToLower(place)] = true
		all[i] = place
	}
	return all
}
