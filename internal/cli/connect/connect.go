// Package connect is the commands for a team's connections to data elsewhere.
package connect

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/screen"
)

// Session is somebody at a server.
type Session struct {
	screen.Console
	API     *client.ClientWithResponses
	Emit    func(data any, people func()) error // as JSON, or for people
	Explain func(error) error
}

// List shows where each connection leads, and whether it worked.
func (s Session) List() error {
	r, err := s.API.ListConnectionsWithResponse(s.Ctx, nil)
	if err != nil {
		return s.Explain(err)
	}
	list := r.JSON200.Data
	return s.Emit(list, func() {
		rows := [][]string{{"ID", "NAME", "TYPE", "WHERE", "LAST TEST"}}
		for _, x := range list {
			rows = append(rows, []string{x.ID, x.Name, string(x.Type), whereTo(x), x.Test.Message + ", " + s.Ago(x.Test.At.Time)})
		}
		s.Table(rows)
	})
}

func whereTo(x api.Connection) string {
	if x.Bucket == nil {
		return textOf(x.Host)
	}
	return "s3://" + *x.Bucket + "/" + textOf(x.Prefix)
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// New is what to connect to.
type New struct {
	Name      string `arg:"" help:"Name of the connection."`
	Type      string `required:"" env:"-" enum:"s3,https,git" help:"s3, https or git."`
	Endpoint  string `env:"-" help:"For s3: https://host of the storage service. Default: Amazon S3."`
	Region    string `env:"-" help:"For s3: the region."`
	Bucket    string `env:"-" help:"For s3: the bucket."`
	Prefix    string `env:"-" help:"For s3: restrict the connection to this folder."`
	AccessKey string `env:"-" help:"For s3: ID of the access key. Without one, the bucket is read without credentials."`
	Host      string `env:"-" help:"For https and git: the host."`
	Header    string `env:"-" help:"For https: the header that contains the token. Default: Authorization: Bearer."`
	Username  string `env:"-" help:"For https and git: username; the secret is then the password."`
	SSH       bool   `name:"ssh" env:"-" help:"For git: the secret is a private SSH key."`
}

// maxSecret is a little more than the server takes, which has the last word.
const maxSecret = 17 << 10

// Add never takes the secret as an argument: those are seen by everybody on the
// machine, and kept by shells.
func (s Session) Add(c New) error {
	in := api.NewConnection{
		Name: c.Name, Type: api.ConnectionType(c.Type), Endpoint: given(c.Endpoint), Region: given(c.Region), Bucket: given(c.Bucket), Prefix: given(c.Prefix),
		AccessKey: given(c.AccessKey), Host: given(c.Host), Header: given(c.Header), Username: given(c.Username),
	}
	if c.Type != "s3" || c.AccessKey != "" {
		secret, err := s.SecretText("Secret: ", maxSecret)
		if err != nil {
			return err
		}
		switch {
		case c.Type == "s3":
			in.SecretKey = &secret
		case c.SSH:
			secret += "\n" // without which it is no key
			in.SSHKey = &secret
		case c.Username != "":
			in.Password = &secret
		default:
			in.Token = &secret
		}
	}
	r, err := s.API.CreateConnectionWithResponse(s.Ctx, nil, in)
	if err != nil {
		return s.Explain(err)
	}
	x := r.JSON201.Data
	return s.Emit(x, func() {
		s.Say("%s", x.ID)
		if !x.Test.Ok {
			s.Tell("The connection was saved, but its test failed: %s", x.Test.Message)
		}
	})
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Find turns a connection's name into its id.
func (s Session) Find(name string) (id string, err error) {
	if strings.HasPrefix(name, "conn_") {
		return name, nil
	}
	r, err := s.API.ListConnectionsWithResponse(s.Ctx, nil)
	if err != nil {
		return "", s.Explain(err)
	}
	var found []string
	for _, x := range r.JSON200.Data {
		if x.Name == name {
			found = append(found, x.ID)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("the team has no connection %q: see millrace connections", name)
	}
	return "", fmt.Errorf("%d connections are called %q: use one of the IDs %s", len(found), name, strings.Join(found, ", "))
}

// Test fails where the connection does not work.
func (s Session) Test(name string) error {
	id, err := s.Find(name)
	if err != nil {
		return err
	}
	r, err := s.API.TestConnectionWithResponse(s.Ctx, id, nil)
	if err != nil {
		return s.Explain(err)
	}
	x := r.JSON200.Data
	if err := s.Emit(x, func() { s.Say("%s", x.Message) }); err != nil || x.Ok {
		return err
	}
	return errors.New("the connection test failed")
}

// Browse lists folders first, page after page.
func (s Session) Browse(name, prefix string) error {
	id, err := s.Find(name)
	if err != nil {
		return err
	}
	all := api.ConnectionObjects{Folders: []string{}, Objects: []api.ConnectionObject{}}
	for cursor := (*string)(nil); ; {
		r, err := s.API.ListConnectionObjectsWithResponse(s.Ctx, id, &api.ListConnectionObjectsParams{Prefix: given(prefix), Cursor: cursor})
		if err != nil {
			return s.Explain(err)
		}
		all.Folders = append(all.Folders, r.JSON200.Data.Folders...)
		all.Objects = append(all.Objects, r.JSON200.Data.Objects...)
		if cursor = r.JSON200.Page.NextCursor; cursor == nil {
			break
		}
	}
	return s.Emit(all, func() {
		rows := [][]string{{"SIZE", "CHANGED", "ADDRESS"}}
		for _, f := range all.Folders {
			rows = append(rows, []string{"folder", "", f})
		}
		for _, o := range all.Objects {
			rows = append(rows, []string{screen.Size(o.Size), s.Ago(o.ModifiedAt.Time), o.URL})
		}
		s.Table(rows)
	})
}

// Delete forgets one at once.
func (s Session) Delete(name string) error {
	id, err := s.Find(name)
	if err != nil {
		return err
	}
	r, err := s.API.DeleteConnectionWithResponse(s.Ctx, id, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("deleted %s", id) })
}
