package runs

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/archive"
)

// DownloadOutputs gives all outputs of a run in one archive. Its length is not
// known before its end, and one that fails on the way is cut off.
func (a *API) DownloadOutputs(x *kernel.Exchange) (kernel.Answer, error) {
	list, _, err := a.Runs.Outputs(x.Context(), x.Caller, RunID(x), runs.OutputQuery{})
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Stream: func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // as long as it takes
		h := w.Header()
		h.Set("Content-Type", "application/zip")
		h.Set("Content-Disposition", `attachment; filename="`+string(RunID(x))+`.zip"`)
		h.Set("Cache-Control", "no-store")
		if err := (archive.Archive{Outputs: list, Open: a.Runs.OpenOutput, At: a.Now()}).WriteZip(r.Context(), w); err != nil {
			if r.Context().Err() == nil {
				a.Log.ErrorContext(r.Context(), "cannot write the archive of a run's outputs", slog.Any("error", err))
			}
			panic(http.ErrAbortHandler)
		}
	}}, nil
}
