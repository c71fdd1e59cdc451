package connections

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// ConnectionOut is a connection, without its credentials, as the API shows it.
func ConnectionOut(c connections.Connection) api.Connection {
	return api.Connection{
		ID: string(c.ID), Name: c.Name, Type: api.ConnectionType(c.Type), Endpoint: kernel.OrNull(c.Endpoint), Region: kernel.OrNull(c.Region), Bucket: kernel.OrNull(c.Bucket),
		Prefix: kernel.OrNull(c.Prefix), Host: kernel.OrNull(c.Host), Header: kernel.OrNull(c.Header), Username: kernel.OrNull(c.Username), HostKey: kernel.OrNull(c.HostKey), Hint: kernel.OrNull(c.Hint),
		CreatedBy: api.Person{ID: string(c.CreatedBy), Name: c.CreatorName}, CreatedAt: api.At(c.CreatedAt),
		Test: api.ConnectionTest{Ok: c.Test.OK, Message: c.Test.Message, At: api.At(c.Test.At)},
	}
}

// ListConnections answers GET /api/connections.
func (a *API) ListConnections(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Connections.Connections(x.Context(), x.Caller)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.Connection, len(list))
	for i, c := range list {
		out[i] = ConnectionOut(c)
	}
	return kernel.OK(out)
}

// CreateConnection answers POST /api/connections.
func (a *API) CreateConnection(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewConnection](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	c, err := a.Connections.Create(x.Context(), x.Caller, connections.New{
		Name: in.Name, Type: connections.Type(in.Type),
		Settings: connections.Settings{
			Endpoint: kernel.OrEmpty(in.Endpoint), Region: kernel.OrEmpty(in.Region), Bucket: kernel.OrEmpty(in.Bucket), Prefix: kernel.OrEmpty(in.Prefix),
			Host: kernel.OrEmpty(in.Host), Header: kernel.OrEmpty(in.Header), Username: kernel.OrEmpty(in.Username),
		},
		Credentials: connections.Credentials{
			AccessKey: kernel.OrEmpty(in.AccessKey), SecretKey: kernel.OrEmpty(in.SecretKey), Token: kernel.OrEmpty(in.Token), Password: kernel.OrEmpty(in.Password), SSHKey: kernel.OrEmpty(in.SSHKey),
		},
	})
	return kernel.Answer{Status: 201, Data: ConnectionOut(c)}, err
}

// connectionIDOf is the one that the path names; what no id can be is nobody's.
func connectionIDOf(x *kernel.Exchange) (ids.Connection, error) {
	id := x.Request.PathValue("id")
	if !kernel.Printable(id) {
		return "", fault.NotFound("no such connection")
	}
	return ids.Connection(id), nil
}

// TestConnection answers POST /api/connections/{id}/test.
func (a *API) TestConnection(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := connectionIDOf(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	t, err := a.Connections.Test(x.Context(), x.Caller, id)
	return kernel.Answer{Data: api.ConnectionTested{Ok: t.OK, Message: t.Message}}, err
}

// DeleteConnection answers DELETE /api/connections/{id}.
func (a *API) DeleteConnection(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := connectionIDOf(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	err = a.Connections.Delete(x.Context(), x.Caller, id)
	return kernel.Answer{Data: api.ConnectionDeleted{Deleted: true, ID: string(id)}}, err
}

// ListConnectionObjects answers GET /api/connections/{id}/objects.
func (a *API) ListConnectionObjects(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := connectionIDOf(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if err := a.Connections.Known(x.Context(), x.Caller, id); err != nil {
		return kernel.Answer{}, err
	}
	place, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	prefix := x.Request.URL.Query().Get("prefix")
	if !kernel.Printable(prefix) || len(prefix) > 1024 {
		d := fault.Detail{Path: "prefix", Message: "is no beginning of objects' keys"}
		return kernel.Answer{}, fault.Problems([]fault.Detail{d}, "%s", kernel.Sentence(d))
	}
	l, err := a.Connections.Objects(x.Context(), x.Caller, id, prefix, place)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.ConnectionObjects{Folders: append([]string{}, l.Folders...), Objects: make([]api.ConnectionObject, len(l.Objects))}
	for i, o := range l.Objects {
		out.Objects[i] = api.ConnectionObject{URL: o.URL, Name: o.Name, Size: o.Size, Etag: o.ETag, ModifiedAt: api.At(o.ModifiedAt)}
	}
	page := &api.Page{HasMore: l.Next != ""}
	if page.HasMore {
		page.NextCursor = kernel.AsCursor(l.Next)
	}
	return kernel.Answer{Data: out, Page: page}, nil
}
