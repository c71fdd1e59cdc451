package files

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

const (
	maxFiles = 2000
	maxKeys  = 100
)

// ListFiles answers GET /api/files.
func (a *API) ListFiles(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, maxFiles, maxFiles)
	if err != nil {
		return kernel.Answer{}, err
	}
	place, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	f, err := filter(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	source, id, _ := strings.Cut(place, " ")
	list, next, err := a.Files.Files(x.Context(), x.Caller, f, files.Place{Source: files.Source(source), ID: id}, limit, x.Base())
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.File, len(list))
	for i, f := range list {
		out[i] = FileOut(f)
	}
	page := &api.Page{HasMore: next.ID != ""}
	if page.HasMore {
		page.NextCursor = kernel.AsCursor(string(next.Source) + " " + next.ID)
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

// filter reads which files are asked for.
func filter(x *kernel.Exchange) (f files.Filter, err error) {
	q := x.Request.URL.Query()
	f = files.Filter{Source: files.Source(q.Get("source")), Keys: q["key"]}
	f.Words, err = kernel.Words(x.Request)
	if err != nil {
		return f, err
	}
	var wrong []fault.Detail
	if f.Source != "" && f.Source != files.FromUpload && f.Source != files.FromRun {
		wrong = append(wrong, fault.Detail{Path: "source", Message: "is neither upload nor output"})
	}
	if len(f.Keys) > maxKeys || slices.ContainsFunc(f.Keys, func(key string) bool { return key == "" || !kernel.Printable(key) }) {
		wrong = append(wrong, fault.Detail{Path: "key", Message: fmt.Sprintf("must be the keys of at most %d files", maxKeys)})
	}
	if text := q.Get("directory"); text != "" {
		folder := text == "true"
		if f.Directory = &folder; !folder && text != "false" {
			wrong = append(wrong, fault.Detail{Path: "directory", Message: "is neither true nor false"})
		}
	}
	if len(wrong) > 0 {
		return f, fault.Problems(wrong, "%s", kernel.Sentence(wrong[0]))
	}
	return f, nil
}

// FileOut is a file as the API shows it.
func FileOut(f files.Listed) api.File {
	out := api.File{
		Key: f.Key, Name: f.Name, Source: api.FileSource(f.Source), Size: f.Size, ContentType: f.ContentType,
		Sha256: kernel.OrNull(f.SHA256), RunID: kernel.OrNull(string(f.Run)), CreatedAt: api.At(f.CreatedAt), URL: f.URL, ExpiresAt: api.At(f.ExpiresAt),
	}
	if f.Folder != nil {
		out.Directory = &api.Directory{Files: f.Folder.Files, Bytes: f.Folder.Bytes, ArchiveURL: f.Archive, DataURL: kernel.OrNull(f.DataURL)}
	}
	return out
}

// PresignUpload answers POST /api/files/presign.
func (a *API) PresignUpload(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.Presign](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	p, err := a.Files.Presign(x.Context(), x.Caller, files.Presign{Name: in.Filename, ContentType: in.ContentType, Size: in.Size, Base: x.Base()})
	return kernel.Answer{Data: api.PresignedUpload{URL: p.URL, Key: p.Key, Method: "PUT", ExpiresAt: api.At(p.ExpiresAt)}}, err
}

// DeleteFile answers POST /api/files/delete.
func (a *API) DeleteFile(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.DeleteFile](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	var wrong []fault.Detail
	if in.Key == "" {
		wrong = append(wrong, fault.Detail{Path: "key", Message: "is missing"})
	}
	source := files.Source(in.Source)
	if source != files.FromUpload && source != files.FromRun {
		wrong = append(wrong, fault.Detail{Path: "source", Message: "is neither upload nor output"})
	}
	if len(wrong) > 0 {
		return kernel.Answer{}, fault.Problems(wrong, "%s", kernel.Sentence(wrong[0]))
	}
	if !kernel.Printable(in.Key) {
		return kernel.Answer{}, fault.NotFound("no such file")
	}
	err = a.Files.Delete(x.Context(), x.Caller, source, in.Key)
	return kernel.Answer{Data: api.FileDeleted{Deleted: true, Key: in.Key, Source: in.Source}}, err
}

// DeleteRunFiles answers POST /api/files/delete-run.
func (a *API) DeleteRunFiles(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.DeleteRunFiles](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if err := kernel.Required("runId", in.RunID); err != nil {
		return kernel.Answer{}, err
	}
	if !kernel.Printable(in.RunID) {
		return kernel.Answer{}, fault.NotFound("no such run")
	}
	n, bytes, err := a.Files.DeleteRun(x.Context(), x.Caller, ids.Run(in.RunID))
	return kernel.Answer{Data: api.RunFilesDeleted{Deleted: true, RunID: in.RunID, Files: n, Bytes: bytes}}, err
}
