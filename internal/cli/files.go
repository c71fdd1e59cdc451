package cli

import (
	"fmt"
	"path/filepath"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/transfer"
)

type filesCommand struct {
	List     filesList     `cmd:"" name:"ls" aliases:"list" default:"withargs" help:"List the team's files."`
	Upload   filesUpload   `cmd:"" help:"Upload files."`
	Download filesDownload `cmd:"" help:"Download one file."`
	Remove   filesRemove   `cmd:"" name:"rm" aliases:"delete" help:"Delete files."`
}

type filesList struct {
	common `embed:""`
	Source string `env:"-" enum:"upload,output,all" default:"all" help:"upload, output or all."`
	Limit  int    `short:"n" env:"-" default:"100" help:"Maximum number to list."`
}

// Run lists uploads first.
func (c *filesList) Run(w screen.World) error {
	s, err := c.open(w)
	if err != nil {
		return err
	}
	if c.Limit < 1 {
		return fmt.Errorf("--limit must be at least 1")
	}
	list := []api.File{}
	err = s.eachFile(func(f api.File) bool {
		if c.Source == "all" || string(f.Source) == c.Source {
			list = append(list, f)
		}
		return len(list) < c.Limit
	})
	if err != nil {
		return err
	}
	return s.emit(list, func() {
		if len(list) == 0 {
			s.Note("No files: upload some with millrace files upload <file>")
			return
		}
		rows := [][]string{{"NAME", "SOURCE", "SIZE", "CREATED", "KEY"}}
		for _, f := range list {
			rows = append(rows, []string{f.Name, string(f.Source), screen.Size(f.Size), s.Ago(f.CreatedAt.Time), f.Key})
		}
		s.Table(rows)
	})
}

// eachFile gives the team's files until more says no.
func (s *session) eachFile(more func(api.File) bool) error {
	limit := 200
	for params := (api.ListFilesParams{Limit: &limit}); ; {
		r, err := s.api.ListFilesWithResponse(s.Ctx, &params)
		if err != nil {
			return s.explain(err)
		}
		for _, f := range r.JSON200.Data {
			if !more(f) {
				return nil
			}
		}
		if params.Cursor = r.JSON200.Page.NextCursor; params.Cursor == nil {
			return nil
		}
	}
}

// file finds one by its key, or by its name where only one has it.
func (s *session) file(name string) (found api.File, err error) {
	named := 0
	err = s.eachFile(func(f api.File) bool {
		if f.Key == name {
			found, named = f, 1
			return false
		}
		if f.Name == name {
			found = f
			named++
		}
		return true
	})
	switch {
	case err != nil:
		return found, err
	case named == 0:
		return found, fmt.Errorf("the team has no file %q: see millrace files ls", name)
	case named > 1:
		return found, fmt.Errorf("%d files are called %q: name one by its key, see millrace files ls", named, name)
	default:
		return found, nil
	}
}

type filesUpload struct {
	common      `embed:""`
	File        []string `arg:"" type:"existingfile" help:"Local files."`
	ContentType string   `env:"-" placeholder:"TYPE" help:"Media type. Default: by the file's ending."`
}

// Run prints the key of each file once its hash was compared.
func (c *filesUpload) Run(w screen.World) error {
	s, err := c.open(w)
	if err != nil {
		return err
	}
	sent := []api.File{}
	for _, path := range c.File {
		f, err := s.upload(path, c.ContentType)
		if err != nil {
			return err
		}
		sent = append(sent, f)
		if !s.json {
			s.Say("%s", f.Key)
		}
	}
	if s.json {
		return s.emit(sent, nil)
	}
	return nil
}

type filesDownload struct {
	common `embed:""`
	File   string `arg:"" help:"Key, or name where only one file has it."`
	To     string `env:"-" default:"." help:"Folder to write to."`
	Force  bool   `env:"-" help:"Replace a file that is there and differs."`
}

// Run writes the file under its own name.
func (c *filesDownload) Run(w screen.World) error {
	s, err := c.open(w)
	if err != nil {
		return err
	}
	f, err := s.file(c.File)
	if err != nil {
		return err
	}
	sum := ""
	if f.Sha256 != nil {
		sum = *f.Sha256
	}
	folder, err := s.folder(c.To, c.Force)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Fetch(transfer.File{Path: f.Name, URL: f.URL, Sum: sum, Size: f.Size}); err != nil {
		return s.explain(err)
	}
	return s.emit(f, func() { s.Say("%s", filepath.Join(c.To, f.Name)) })
}

// folder is where downloads go.
func (s *session) folder(path string, force bool) (*transfer.Folder, error) {
	f := &transfer.Folder{World: s.World, HTTP: s.calls.HTTP, Force: force}
	return f, f.Open(path)
}

type filesRemove struct {
	common `embed:""`
	File   []string `arg:"" help:"Keys, or names where only one file has it."`
}

// Run deletes one after the other and says which.
func (c *filesRemove) Run(w screen.World) error {
	s, err := c.open(w)
	if err != nil {
		return err
	}
	gone := []api.FileDeleted{}
	for _, name := range c.File {
		f, err := s.file(name)
		if err != nil {
			return err
		}
		r, err := s.api.DeleteFileWithResponse(s.Ctx, nil, api.DeleteFile{Key: f.Key, Source: f.Source})
		if err != nil {
			return s.explain(err)
		}
		gone = append(gone, r.JSON200.Data)
	}
	return s.emit(gone, func() {
		for _, g := range gone {
			s.Say("deleted %s", screen.Clean(g.Key))
		}
	})
}
