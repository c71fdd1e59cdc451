package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
	"github.com/millrace/millrace/internal/cli/transfer"
)

type filesCommand struct {
	List     filesList     `cmd:"" name:"ls" aliases:"list" default:"withargs" help:"List the team's files."`
	Upload   filesUpload   `cmd:"" help:"Upload files and folders."`
	Download filesDownload `cmd:"" help:"Download one file or folder."`
	Remove   filesRemove   `cmd:"" name:"rm" aliases:"delete" help:"Delete files."`
	Uploads  filesUploads  `cmd:"" help:"List and cancel uploads of large files and folders that are not complete."`
}

type filesList struct {
	session.Flags `embed:""`
	Source        string `env:"-" enum:"upload,output,all" default:"all" help:"upload, output or all."`
	Limit         int    `short:"n" env:"-" default:"100" help:"Maximum number to list."`
}

// Run lists uploads first.
func (c *filesList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	if c.Limit < 1 {
		return fmt.Errorf("--limit must be at least 1")
	}
	list := []api.File{}
	err = s.EachFile(func(f api.File) bool {
		if c.Source == "all" || string(f.Source) == c.Source {
			list = append(list, f)
		}
		return len(list) < c.Limit
	})
	if err != nil {
		return err
	}
	return s.Emit(list, func() {
		if len(list) == 0 {
			s.Note("No files. Upload some with millrace files upload <file>")
			return
		}
		rows := [][]string{{"NAME", "SOURCE", "SIZE", "CREATED", "KEY"}}
		for _, f := range list {
			rows = append(rows, []string{f.Name, string(f.Source), screen.Size(session.SizeOf(f.Size, f.Directory)), s.Ago(f.CreatedAt.Time), f.Key})
		}
		s.Table(rows)
	})
}

type filesUpload struct {
	session.Flags `embed:""`
	Path          []string `arg:"" name:"file" help:"Local files and folders. A folder stays one folder."`
	ContentType   string   `env:"-" placeholder:"TYPE" help:"Media type of files. Default: by the file name's extension."`
}

// Run prints the key of each file and folder once its hash was compared.
func (c *filesUpload) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	var done []api.File
	err = s.Upload(c.Path, c.ContentType, func(f api.File) {
		done = append(done, f)
		if !s.JSON {
			s.Say("%s", f.Key) // at once: the next one may take hours
		}
	})
	if len(done) == 0 {
		return err
	}
	return errors.Join(err, s.Emit(done, func() {}))
}

type filesDownload struct {
	session.Flags `embed:""`
	File          string `arg:"" help:"Key, or name if only one file has it."`
	To            string `env:"-" default:"." help:"Folder to write to."`
	Force         bool   `env:"-" help:"Replace an existing file that differs."`
}

// Run writes the file or folder under its own name.
func (c *filesDownload) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	f, err := s.File(c.File)
	if err != nil {
		return err
	}
	sum := ""
	if f.Sha256 != nil {
		sum = *f.Sha256
	}
	folder, err := s.Folder(c.To, c.Force)
	if err != nil {
		return err
	}
	defer folder.Close()
	name := f.Name
	if f.Directory != nil {
		err = session.FetchDirectory(folder, transfer.Directory{Path: name, Manifest: f.URL, Sum: sum}, f.Directory, func() (*api.Directory, error) {
			again, err := s.File(f.Key)
			return again.Directory, err
		})
	} else {
		err = folder.Fetch(transfer.File{Path: name, URL: f.URL, Sum: sum, Size: f.Size, Renew: func() (string, error) {
			again, err := s.File(f.Key)
			return again.URL, err
		}})
	}
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(f, func() { s.Say("%s", filepath.Join(c.To, name)) })
}

type filesRemove struct {
	session.Flags `embed:""`
	File          []string `arg:"" help:"Keys, or names if only one file has each."`
	Yes           bool     `short:"y" env:"-" help:"Don't ask for confirmation."`
}

// Run asks a person first, then deletes one after the other and says which.
func (c *filesRemove) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	if err := s.Confirm(c.Yes, fmt.Sprintf("Delete %s?", strings.Join(c.File, ", "))); err != nil {
		return err
	}
	return session.Each(s, c.File, func(name string) (api.FileDeleted, error) {
		f, err := s.File(name)
		if err != nil {
			return api.FileDeleted{}, err
		}
		r, err := s.API.DeleteFileWithResponse(s.Ctx, nil, api.DeleteFile{Key: f.Key, Source: f.Source})
		if err != nil {
			return api.FileDeleted{}, s.Explain(err)
		}
		return r.JSON200.Data, nil
	}, func(g api.FileDeleted) { s.Say("deleted %s", screen.Clean(g.Key)) })
}
