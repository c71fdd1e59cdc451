package runs

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// reportPolicy lets a report run its own scripts in an opaque origin: without
// our cookies and storage, without any connection, pop-ups or forms.
const reportPolicy = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: data:; " +
	"style-src 'unsafe-inline' data:; img-src data: blob:; font-src data:; connect-src 'none'; form-action 'none'"

// SendReport gives an HTML output as a page. The bytes pass through us wherever
// they are kept: no object store sends these headers.
func (a *API) SendReport(x *kernel.Exchange) (kernel.Answer, error) {
	body, size, err := a.Runs.Report(x.Context(), x.Request.PathValue("token"), x.Request.PathValue("path"))
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Stream: func(w http.ResponseWriter, _ *http.Request) {
		defer body.Close()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // as long as it takes
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Length", strconv.FormatInt(size, 10))
		h.Set("Content-Security-Policy", reportPolicy)
		h.Set("X-Frame-Options", "SAMEORIGIN") // the run's page shows it in a frame
		// What no policy forbids, some browsers do by this: a page may send its
		// reader elsewhere, WebRTC asks servers for its address, and a name that is
		// looked up tells something, too.
		h.Set("Connection-Allowlist", "()")
		h.Set("X-DNS-Prefetch-Control", "off")
		_, _ = io.Copy(w, body) // the reader has gone; nothing to do
	}}, nil
}
