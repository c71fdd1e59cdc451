package main

import (
	"crypto/rand"
	"fmt"

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
	set, err := settingsfile.Given(parsed)
	if err != nil {
		return err
	}
	propose := func(name, value string) { set = settingsfile.Propose(set, name, value) }
	propose("data", "/var/lib/millrace")
	propose("sign-up", "invite")
	propose("admin-listen", "127.0.0.1:9090")
	if !c.Embedded() && c.SecretKeyFile == "" {
		propose("secret-key", rand.Text()+rand.Text()) // for all servers and workers
	}
	if err := settingsfile.Create(c.File, parsed.Selected(), set); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.out, "wrote %s. Review it, then:\n  millrace admin doctor --config %s\n  millrace serve --config %s\n", c.File, c.File, c.File)
	return err
}
