package cli

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type filesUploads struct {
	List   uploadsList   `cmd:"" name:"ls" aliases:"list" default:"withargs" help:"List the team's uploads that are not complete."`
	Remove uploadsRemove `cmd:"" name:"rm" aliases:"cancel" help:"Cancel uploads, and delete what has arrived of them."`
}

type uploadsList struct {
	session.Flags `embed:""`
}

// Run lists the oldest first.
func (c *uploadsList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.ListUploadsWithResponse(s.Ctx, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() {
		if len(r.JSON200.Data) == 0 {
			s.Note("All uploads are complete.")
			return
		}
		rows := [][]string{{"UPLOAD", "NAME", "SIZE", "BY", "BEGAN", "EXPIRES"}}
		for _, u := range r.JSON200.Data {
			rows = append(rows, []string{u.UploadID, u.Filename, screen.Size(u.Size), u.CreatedBy.Name, s.Ago(u.CreatedAt.Time), s.Ago(u.ExpiresAt.Time)})
		}
		s.Table(rows)
	})
}

type uploadsRemove struct {
	session.Flags `embed:""`
	Upload        []string `arg:"" help:"IDs of uploads, see millrace files uploads."`
	Yes           bool     `short:"y" env:"-" help:"Don't ask for confirmation."`
}

// Run asks a person first: an upload that somebody cancels cannot be resumed.
func (c *uploadsRemove) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	if err := s.Confirm(c.Yes, fmt.Sprintf("Cancel %s?", strings.Join(c.Upload, ", "))); err != nil {
		return err
	}
	return session.Each(s, c.Upload, func(id string) (api.UploadAborted, error) {
		r, err := s.API.AbortUploadWithResponse(s.Ctx, id, nil)
		if err != nil {
			return api.UploadAborted{}, fmt.Errorf("%s: %w", id, s.Explain(err))
		}
		return r.JSON200.Data, nil
	}, func(u api.UploadAborted) { s.Say("cancelled %s", u.UploadID) })
}
