package runs

import (
	"context"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"regexp"
	"time"

	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/archive"
)

// DownloadOutputs gives all outputs of a run in one archive.
func (a *API) DownloadOutputs(x *kernel.Exchange) (kernel.Answer, error) {
	list, _, err := a.Runs.Outputs(x.Context(), x.Caller, RunID(x), runs.OutputQuery{})
	if err != nil {
		return kernel.Answer{}, err
	}
	return a.download(string(RunID(x))+".zip", zipMedia, archive.Archive{Outputs: list, Open: a.Runs.OpenOutput, At: a.Now()}.WriteZip), nil
}

// SendArchive gives one folder of a run's as an archive.
func (a *API) SendArchive(x *kernel.Exchange) (kernel.Answer, error) {
	o, err := a.Runs.ArchivedFolder(x.Context(), x.Request.PathValue("token"))
	if err != nil {
		return kernel.Answer{}, err
	}
	file := archive.Archive{Open: a.Runs.OpenOutput, At: a.Now()}
	return a.download(o.Name+".zip", zipMedia, func(ctx context.Context, w io.Writer) error { return file.WriteFolder(ctx, w, o) }), nil
}

// DownloadCrate gives a run with its outputs as a Workflow Run RO-Crate.
func (a *API) DownloadCrate(x *kernel.Exchange) (kernel.Answer, error) {
	c, err := a.Crates.Crate(x.Context(), x.Caller, RunID(x), x.Base())
	if err != nil {
		return kernel.Answer{}, err
	}
	return a.download(string(RunID(x))+".crate.zip", zipMedia, c.WriteZip), nil
}

const zipMedia = "application/zip"

// download streams a file. Its length is not known before its end, and one that
// fails on the way is cut off.
func (a *API) download(name, media string, write func(context.Context, io.Writer) error) kernel.Answer {
	return kernel.Answer{Stream: func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // as long as it takes
		h := w.Header()
		h.Set("Content-Type", media)
		h.Set("Content-Disposition", attachment(name))
		h.Set("Cache-Control", "no-store")
		if err := write(r.Context(), w); err != nil {
			if r.Context().Err() == nil {
				a.Log.ErrorContext(r.Context(), "cannot write a download of a run", slog.Any("error", err))
			}
			panic(http.ErrAbortHandler)
		}
	}}
}

// attachment saves a download under a name, which may be one that a command gave.
func attachment(name string) string {
	if plainName.MatchString(name) {
		return `attachment; filename="` + name + `"`
	}
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}

var plainName = regexp.MustCompile(`^[\w .-]+$`)
