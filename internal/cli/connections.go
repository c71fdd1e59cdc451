package cli

import (
	"github.com/millrace/millrace/internal/cli/connect"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type connectionsCommand struct {
	List   connectionsList   `cmd:"" default:"withargs" aliases:"ls" help:"List the team's connections, without their credentials."`
	Add    connectionsAdd    `cmd:"" help:"Create a connection to a bucket, an HTTPS host or a Git host. The secret is read from standard input."`
	Test   connectionsTest   `cmd:"" help:"Test a connection."`
	Browse connectionsBrowse `cmd:"" help:"List the objects in a bucket."`
	Delete connectionsDelete `cmd:"" aliases:"rm" help:"Delete a connection and its credentials."`
}

// connectAs opens a session in the words of package connect.
func connectAs(c session.Flags, w screen.Console, do func(connect.Session) error) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	return do(connect.Session{Console: s.Console, API: s.API, Emit: s.Emit, Explain: s.Explain})
}

type connectionsList struct {
	session.Flags `embed:""`
}

func (c *connectionsList) Run(w screen.Console) error {
	return connectAs(c.Flags, w, connect.Session.List)
}

type connectionsAdd struct {
	session.Flags `embed:""`
	connect.New   `embed:""`
}

func (c *connectionsAdd) Run(w screen.Console) error {
	return connectAs(c.Flags, w, func(s connect.Session) error { return s.Add(c.New) })
}

type connectionArg struct {
	Connection string `arg:"" help:"ID or name of the connection."`
}

type connectionsTest struct {
	session.Flags `embed:""`
	connectionArg `embed:""`
}

func (c *connectionsTest) Run(w screen.Console) error {
	return connectAs(c.Flags, w, func(s connect.Session) error { return s.Test(c.Connection) })
}

type connectionsBrowse struct {
	session.Flags `embed:""`
	connectionArg `embed:""`
	Prefix        string `arg:"" optional:"" help:"Folder to list. Default: the connection's folder."`
}

func (c *connectionsBrowse) Run(w screen.Console) error {
	return connectAs(c.Flags, w, func(s connect.Session) error { return s.Browse(c.Connection, c.Prefix) })
}

type connectionsDelete struct {
	session.Flags `embed:""`
	connectionArg `embed:""`
}

func (c *connectionsDelete) Run(w screen.Console) error {
	return connectAs(c.Flags, w, func(s connect.Session) error { return s.Delete(c.Connection) })
}
