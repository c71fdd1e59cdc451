package httpapi

import (
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
)

const maxFiles = 2000

func (a *API) listFiles(x *exchange) (answer, error) {
	limit, err := number(x.r, "limit", 1, maxFiles, maxFiles)
	if err != nil {
		return answer{}, err
	}
	place, err := cursor(x.r)
	if err != nil {
		return answer{}, err
	}
	source, id, _ := strings.Cut(place, " ")
	list, more, err := a.Files.Files(x.ctx(), x.caller, files.Place{Source: files.Source(source), ID: id}, limit, x.base())
	if err != nil {
		return answer{}, err
	}
	out := make([]api.File, len(list))
	for i, f := range list {
		out[i] = fileOut(f)
	}
	page := &api.Page{HasMore: more}
	if more {
		last := list[len(list)-1]
		page.NextCursor = asCursor(string(last.Source) + " " + last.ID)
	}
	return answer{data: out, page: page}, nil
}

func fileOut(f files.Listed) api.File {
	return api.File{
		Key: f.Key, Name: f.Name, Source: api.FileSource(f.Source), Size: f.Size, ContentType: f.ContentType,
		Sha256: orNull(f.SHA256), RunID: orNull(string(f.Run)), CreatedAt: api.At(f.CreatedAt), URL: f.URL, ExpiresAt: api.At(f.ExpiresAt),
	}
}

// orEmpty is a text that may be left out.
func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// orNull is null where there is no text.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (a *API) presignUpload(x *exchange) (answer, error) {
	in, err := decode[api.Presign](x)
	if err != nil {
		return answer{}, err
	}
	p, err := a.Files.Presign(x.ctx(), x.caller, files.Presign{Name: in.Filename, ContentType: in.ContentType, Size: in.Size, Base: x.base()})
	return answer{data: api.PresignedUpload{URL: p.URL, Key: p.Key, Method: "PUT", ExpiresAt: api.At(p.ExpiresAt)}}, err
}

func (a *API) deleteFile(x *exchange) (answer, error) {
	in, err := decode[api.DeleteFile](x)
	if err != nil {
		return answer{}, err
	}
	source := files.Source(in.Source)
	if source != files.FromUpload && source != files.FromRun {
		d := fault.Detail{Path: "source", Message: "is neither upload nor output"}
		return answer{}, fault.Problems([]fault.Detail{d}, "%s", sentence(d))
	}
	if err := named("key", in.Key); err != nil {
		return answer{}, err
	}
	if !printable(in.Key) {
		return answer{}, fault.NotFound("no such file")
	}
	err = a.Files.Delete(x.ctx(), x.caller, source, in.Key)
	return answer{data: api.FileDeleted{Deleted: true, Key: in.Key, Source: in.Source}}, err
}

func (a *API) deleteRunFiles(x *exchange) (answer, error) {
	in, err := decode[api.DeleteRunFiles](x)
	if err != nil {
		return answer{}, err
	}
	if err := named("runId", in.RunID); err != nil {
		return answer{}, err
	}
	if !printable(in.RunID) {
		return answer{}, fault.NotFound("no such run")
	}
	n, bytes, err := a.Files.DeleteRun(x.ctx(), x.caller, ids.Run(in.RunID))
	return answer{data: api.RunFilesDeleted{Deleted: true, RunID: in.RunID, Files: n, Bytes: bytes}}, err
}
