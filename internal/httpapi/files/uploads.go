package files

import (
	"net/http"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// What the lists of a body may have, which has room for millions of empty ones.
var (
	entriesAtMost = kernel.AtMost[api.FolderEntry](folders.MaxEntries)
	partsAtMost   = kernel.AtMost[api.SentPart](files.MaxParts)
)

// BeginUpload allows a large upload.
func (a *API) BeginUpload(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewUpload](x, entriesAtMost)
	if err != nil {
		return kernel.Answer{}, err
	}
	u, err := a.Uploads.Begin(x.Context(), x.Caller, files.Presign{Name: in.Filename, ContentType: in.ContentType, Size: in.Size, Entries: entriesIn(in.Entries)})
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Status: http.StatusCreated, Data: api.LargeUpload{
		UploadID: u.ID, Key: u.Key, PartSize: u.PartSize, PartCount: u.PartCount(), ExpiresAt: api.At(u.ExpiresAt()),
	}}, nil
}

// entriesIn are the entries of a folder; nil where there are none in the body.
func entriesIn(list []api.FolderEntry) (entries []folders.Entry) {
	for _, e := range list {
		entries = append(entries, folders.Entry{Path: e.Path, Size: kernel.Value(e.Size), Link: kernel.Value(e.Link), Folder: kernel.Value(e.Folder)})
	}
	return entries
}

// uploadIDOf is the one that the path names; what no id can be is nobody's.
func uploadIDOf(x *kernel.Exchange) (string, error) {
	id := x.Request.PathValue("id")
	if !kernel.Printable(id) {
		return "", fault.NotFound("no such upload")
	}
	return id, nil
}

// knownUpload is uploadIDOf one that is there, which comes before what the body says.
func (a *API) knownUpload(x *kernel.Exchange) (string, error) {
	id, err := uploadIDOf(x)
	if err != nil {
		return "", err
	}
	return id, a.Uploads.Known(x.Context(), x.Caller, id)
}

// ListUploads gives those that are not complete.
func (a *API) ListUploads(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Uploads.List(x.Context(), x.Caller)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.OpenUpload, len(list))
	for i, u := range list {
		out[i] = api.OpenUpload{
			UploadID: u.ID, Filename: u.Name, Size: u.Size, CreatedAt: api.At(u.CreatedAt), ExpiresAt: api.At(u.ExpiresAt()),
			CreatedBy: api.Person{ID: string(u.CreatedBy), Name: u.CreatorName},
		}
	}
	return kernel.OK(out)
}

// GetUpload says what of it has arrived.
func (a *API) GetUpload(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := uploadIDOf(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	u, parts, err := a.Uploads.Upload(x.Context(), x.Caller, id)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.ArrivedPart, len(parts))
	for i, p := range parts {
		out[i] = api.ArrivedPart{Number: p.Number, Size: p.Size, Etag: p.ETag}
	}
	return kernel.OK(api.LargeUploadState{
		UploadID: u.ID, Key: u.Key, PartSize: u.PartSize, PartCount: u.PartCount(), ExpiresAt: api.At(u.ExpiresAt()),
		Filename: u.Name, ContentType: u.ContentType, Size: u.Size, Parts: out,
	})
}

// SignParts gives the addresses of parts.
func (a *API) SignParts(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := a.knownUpload(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	in, err := kernel.Decode[api.PartNumbers](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, err := a.Uploads.Parts(x.Context(), x.Caller, id, in.Numbers, x.Base())
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.SignedPart, len(list))
	for i, p := range list {
		out[i] = api.SignedPart{Number: p.Number, Size: p.Size, URL: p.URL, Method: http.MethodPut, ExpiresAt: api.At(p.ExpiresAt)}
	}
	return kernel.OK(out)
}

// receivePart takes a part. Its type is that of no file yet.
func (a *API) receivePart(x *kernel.Exchange, t files.Transfer) (kernel.Answer, error) {
	if x.Request.ContentLength != t.Size {
		return kernel.Answer{}, fault.Forbidden("this address takes exactly %d bytes", t.Size)
	}
	etag, err := a.Uploads.Receive(x.Context(), t.Key, t.Part, &kernel.IdleReader{Body: x.Request.Body, Conn: http.NewResponseController(x.Writer)})
	if err != nil {
		return kernel.Answer{}, err
	}
	x.Writer.Header().Set("ETag", `"`+etag+`"`)
	return kernel.OK(map[string]any{"key": t.Key, "number": t.Part, "size": t.Size, "etag": etag})
}

// CompleteUpload makes the parts a file.
func (a *API) CompleteUpload(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := a.knownUpload(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	in, err := kernel.Decode[api.FinishUpload](x, entriesAtMost, partsAtMost)
	if err != nil {
		return kernel.Answer{}, err
	}
	finish := files.Finish{SHA256: kernel.OrEmpty(in.Sha256), Entries: entriesIn(in.Entries), Base: x.Base()}
	for _, p := range in.Parts {
		finish.Parts = append(finish.Parts, files.Part{Number: p.Number, ETag: p.Etag})
	}
	f, err := a.Uploads.Complete(x.Context(), x.Caller, id, finish)
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.OK(FileOut(f))
}

// AbortUpload calls it off.
func (a *API) AbortUpload(x *kernel.Exchange) (kernel.Answer, error) {
	id, err := uploadIDOf(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	err = a.Uploads.Abort(x.Context(), x.Caller, id)
	return kernel.Answer{Data: api.UploadAborted{Aborted: true, UploadID: id}}, err
}
