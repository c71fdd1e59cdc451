package httpapi

import (
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
)

// Transfers reads the signed addresses of objects that we serve ourselves.
// Anything but exactly what was signed is fault.KindForbidden.
type Transfers interface {
	Transfer(method string, u *url.URL, now time.Time) (files.Transfer, error)
}

func (x *exchange) transfer() (files.Transfer, error) {
	if x.api.Transfers == nil {
		return files.Transfer{}, fault.NotFound("there is nothing at this address")
	}
	return x.api.Transfers.Transfer(x.r.Method, x.r.URL, x.api.Now())
}

// idle is how long bytes may fail to move before we hang up.
const idle = time.Minute

// receiveObject takes an upload. One that began in time may finish.
func (a *API) receiveObject(x *exchange) (answer, error) {
	t, err := x.transfer()
	if err != nil {
		return answer{}, err
	}
	if x.r.Header.Get("Content-Type") != t.ContentType || x.r.ContentLength != t.Size {
		return answer{}, fault.Forbidden("this address takes exactly %d bytes of %s", t.Size, t.ContentType)
	}
	if err := a.Files.Receive(x.ctx(), t.Key, &moving{x.r.Body, http.NewResponseController(x.w)}); err != nil {
		return answer{}, err
	}
	return ok(map[string]any{"key": t.Key, "size": t.Size})
}

// moving pushes the deadline on as long as bytes come.
type moving struct {
	body io.Reader
	conn *http.ResponseController
}

func (m *moving) Read(p []byte) (int, error) {
	deadline := time.Now().Add(idle)
	_ = m.conn.SetReadDeadline(deadline) // not every connection has one
	_ = m.conn.SetWriteDeadline(deadline.Add(idle))
	return m.body.Read(p)
}

// userContent keeps what people uploaded from running on our origin.
const userContent = "sandbox; default-src 'none'"

// sendObject gives a download, whole or in ranges.
func (a *API) sendObject(x *exchange) (answer, error) {
	t, err := x.transfer()
	if err != nil {
		return answer{}, err
	}
	content, err := a.Files.Content(x.ctx(), t.Key)
	if err != nil {
		return answer{}, err
	}
	return answer{stream: func(w http.ResponseWriter, r *http.Request) {
		defer content.Close()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // as long as it takes
		h := w.Header()
		h.Set("Content-Type", t.ContentType)
		h.Set("Content-Disposition", t.Disposition)
		h.Set("Content-Security-Policy", userContent)
		h.Set("Cache-Control", "private, max-age=900")
		h.Set("ETag", `"`+content.Mark+`"`)
		// The file itself, not what wraps it: only that goes out with sendfile.
		http.ServeContent(w, r, "", content.ModifiedAt, content.ReadSeekCloser)
	}}, nil
}
