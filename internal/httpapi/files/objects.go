package files

import (
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// Transfers reads the signed addresses of objects that we serve ourselves.
// Anything but exactly what was signed is fault.KindForbidden.
type Transfers interface {
	Transfer(method string, u *url.URL, now time.Time) (files.Transfer, error)
}

func (a *API) transfer(x *kernel.Exchange) (files.Transfer, error) {
	if a.Transfers == nil {
		return files.Transfer{}, fault.NotFound("there is nothing at this address")
	}
	return a.Transfers.Transfer(x.Request.Method, x.Request.URL, a.Now())
}

// ReceiveObject takes an upload. One that began in time may finish.
func (a *API) ReceiveObject(x *kernel.Exchange) (kernel.Answer, error) {
	t, err := a.transfer(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if t.Part > 0 {
		return a.receivePart(x, t)
	}
	if x.Request.Header.Get("Content-Type") != t.ContentType || x.Request.ContentLength != t.Size {
		return kernel.Answer{}, fault.Forbidden("this address takes exactly %d bytes of %s", t.Size, t.ContentType)
	}
	if err := a.Files.Receive(x.Context(), t.Key, &kernel.IdleReader{Body: x.Request.Body, Conn: http.NewResponseController(x.Writer)}); err != nil {
		return kernel.Answer{}, err
	}
	return kernel.OK(map[string]any{"key": t.Key, "size": t.Size})
}

// userContent keeps what people uploaded from running on our origin.
const userContent = "sandbox; default-src 'none'"

// SendObject gives a download, whole or in ranges.
func (a *API) SendObject(x *kernel.Exchange) (kernel.Answer, error) {
	t, err := a.transfer(x)
	if err != nil {
		return kernel.Answer{}, err
	}
	content, err := a.Files.Content(x.Context(), t.Key)
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Stream: func(w http.ResponseWriter, r *http.Request) {
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
