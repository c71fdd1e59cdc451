package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/cmd/millrace/settingsfile"
)

type initCommand struct {
	settings `embed:""`
	File     string `arg:"" default:"/etc/millrace/millrace.conf" help:"File to write; it must not exist."`
}

// Run writes what it was given, what is good to begin with, and all other
// settings as comments.
func (c *initCommand) Run(w console, parsed *kong.Context) error {
	if err := c.problems(); err != nil {
		return err
	}
	set := settingsfile.Given(parsed)
	propose := func(name, value string) { set = settingsfile.Propose(set, name, value) }
	propose("data", "/var/lib/millrace")
	propose("sign-up", "invite")
	propose("admin-listen", "127.0.0.1:9090")
	if !c.embedded() {
		propose("secret-key", rand.Text()+rand.Text()) // for all servers and workers
	}
	if err := os.MkdirAll(filepath.Dir(c.File), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already, and stays as it is", c.File)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(settingsfile.Write(f, parsed.Selected(), set), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.File))
	}
	_, err = fmt.Fprintf(w.out, "wrote %s. Look through it, then:\n  millrace admin doctor --config %s\n  millrace serve --config %s\n", c.File, c.File, c.File)
	return err
}
