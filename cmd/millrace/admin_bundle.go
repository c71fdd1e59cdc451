package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/cmd/millrace/bundle"
	"github.com/millrace/millrace/cmd/millrace/sources"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/images"
	"github.com/millrace/millrace/internal/git"
	"github.com/millrace/millrace/internal/offline"
	"github.com/millrace/millrace/internal/store"
)

// offlineFolder is where bundles are loaded to, in the data folder.
const offlineFolder = "offline"

// loaded is what was loaded from bundles.
func (s *settings) loaded() offline.Folder {
	return offline.Folder(filepath.Join(s.Data, offlineFolder))
}

type bundleCommand struct {
	settings `embed:""`
	Workflow []string `env:"-" placeholder:"ID" help:"Workflows that the bundle is for."`
	Inputs   []string `env:"-" placeholder:"ADDRESS" sep:"none" help:"Inputs by address to add to it, which everybody may fetch; once for each."`
	Out      string   `env:"-" placeholder:"DIR" help:"Folder to create for the bundle; it must not exist."`
	Load     string   `env:"-" placeholder:"DIR" help:"Load the bundle in this folder into --data, beside a server or without one."`
}

// Run makes a bundle or loads one.
func (c *bundleCommand) Run(w console) error {
	switch {
	case c.Load != "" && c.Out == "" && len(c.Workflow)+len(c.Inputs) == 0:
		return c.load(w)
	case c.Load == "" && c.Out != "" && len(c.Workflow) > 0:
		return c.make(w)
	}
	return errors.New("give --workflow and --out to make a bundle, or --load to load one")
}

// make writes what workflows need into a folder. It works beside a running server, and
// fetches everything anew.
func (c *bundleCommand) make(w console) (err error) {
	if err := c.problems(); err != nil {
		return err
	}
	return c.Beside(w.ctx, func(db *store.DB) error {
		out, err := offline.Create(c.Out)
		if err != nil {
			return err
		}
		err = c.fill(w, db, out)
		if err != nil { // half a bundle is worse than none
			return errors.Join(err, os.RemoveAll(c.Out))
		}
		_, sum, err := out.Close()
		if err == nil {
			_, err = fmt.Fprintf(w.out, "%s is a bundle; its SHA-256 is %s\n", c.Out, sum)
		}
		return err
	})
}

func (c *bundleCommand) fill(w console, db *store.DB, out *offline.Writer) error {
	work, release, err := c.workFolder()
	if err != nil {
		return err
	}
	defer release()
	m, done, err := c.maker(w, db, out, work)
	if err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	stop := out.Watch(5*time.Second, func(bytes int64) { fmt.Fprintf(w.out, "  %d MB\n", bytes>>20) })
	err = c.addAll(w, db, m)
	stop()
	return errors.Join(err, done(), os.RemoveAll(work))
}

// workFolder is where images and environments are made on their way, of one command at a
// time. The folder of the bundle may be on a disk that has no links and no owners.
func (c *bundleCommand) workFolder() (path string, release func(), err error) {
	top := filepath.Join(c.Data, "bundling")
	if err := os.MkdirAll(top, 0o700); err != nil {
		return "", nil, err
	}
	lock, err := os.Open(top)
	if err != nil {
		return "", nil, err
	}
	release = func() { lock.Close() }
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		release()
		return "", nil, errors.New("another bundle is being made: try again when that has ended")
	}
	path = filepath.Join(top, "work")
	return path, release, os.RemoveAll(path) // of one that was killed
}

func (c *bundleCommand) addAll(w console, db *store.DB, m *bundle.Maker) error {
	for _, id := range c.Workflow {
		team, err := db.TeamOfWorkflow(w.ctx, ids.Workflow(id))
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		found, err := db.Workflow(w.ctx, team, ids.Workflow(id))
		if err != nil {
			return err
		}
		if err := m.Add(w.ctx, found); err != nil {
			return fmt.Errorf("the workflow %s (%q): %w", id, found.Name, err)
		}
		if err := db.WritePending(w.audited("operator.bundle_made", string(team), id).ctx); err != nil {
			return err
		}
	}
	for _, address := range c.Inputs {
		if err := m.AddInput(w.ctx, address); err != nil {
			return err
		}
	}
	return nil
}

// maker opens stores in a folder that is removed afterwards. It has nothing yet, so that
// all is fetched and kept.
func (c *bundleCommand) maker(w console, db *store.DB, out *offline.Writer, work string) (m *bundle.Maker, done func() error, err error) {
	log := slog.New(slog.DiscardHandler)
	nothing := func() ([]string, error) { return nil, nil }
	m = &bundle.Maker{Out: out, Inputs: c.remoteInputs(db), Say: func(format string, args ...any) { fmt.Fprintf(w.out, format+"\n", args...) }}
	m.Images, err = images.Open(images.Config{
		Folder: filepath.Join(work, "images"), InUse: nothing, Log: log, Now: db.Now, Registries: c.ImageRegistries, AuthFile: c.ImageAuthFile, AllowPrivate: c.FetchAllowPrivate,
		Loaded: c.loaded(),
	})
	if err != nil {
		return nil, nil, err
	}
	code, err := sources.Open(sources.Config{
		Settings: c.Settings, Data: work, Folder: filepath.Join(work, "sources"), Sandbox: c.Sandbox, AllowPrivate: c.FetchAllowPrivate, Log: log, Loaded: c.loaded(), Keep: out,
	})
	if err != nil {
		return nil, nil, err
	}
	m.Code = &git.Hosts{Trees: code.Trees, Open: db.OpenConnection}
	m.Environments, err = c.EnvironmentSettings.Open(environments.Config{
		Folder: filepath.Join(work, "environments"), InUse: nothing, Records: &bundle.Records{Locks: db}, Log: log, Now: db.Now, AllowPrivate: c.FetchAllowPrivate, Loaded: c.loaded(), Keep: out,
	}, c.Sandbox, parseSize)
	return m, func() error { return errors.Join(code.Close(), m.Environments.Close()) }, err
}

// load takes a bundle in. The server finds it with the next run.
func (c *bundleCommand) load(w console) error {
	b, err := offline.Open(c.Load)
	if err != nil {
		return err
	}
	defer b.Close()
	return c.Beside(w.ctx, func(db *store.DB) error {
		fmt.Fprintf(w.out, "%s has the SHA-256 %s\n", c.Load, b.SHA256)
		if err := bundle.Load(w.ctx, b, c.Data, offlineFolder, w.out); err != nil {
			return err
		}
		if err := db.WritePending(w.audited("operator.bundle_loaded", audit.Installation, b.SHA256).ctx); err != nil {
			return err
		}
		fmt.Fprintln(w.out, "Everything was loaded. Workflows of the bundle, for teams to take:")
		for _, d := range b.Workflows {
			fmt.Fprintf(w.out, "  millrace workflows apply %s\n", filepath.Join(c.Load, d.File))
		}
		return nil
	})
}
