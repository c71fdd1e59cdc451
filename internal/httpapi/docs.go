package httpapi

import (
	"net/http"
	"sync"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/api/reference"
)

// renderReference makes the page when somebody first reads it: it takes as
// long as the rest of starting up.
var renderReference = sync.OnceValues(func() ([]byte, error) { return reference.Page(api.JSON) })

func (a *API) openAPI(*exchange) (answer, error) {
	return answer{media: jsonMedia, raw: api.JSON}.with("Cache-Control", "public, max-age=300"), nil
}

func (a *API) reference(x *exchange) (answer, error) {
	html, err := renderReference()
	if err != nil {
		return answer{}, err
	}
	return x.page(html)
}

func (a *API) referenceCSS(*exchange) (answer, error) {
	return answer{media: "text/css; charset=utf-8", raw: reference.CSS}.with("Cache-Control", "public, max-age=300"), nil
}

// page is HTML for a browser. One that came by another name of this machine
// is sent to the public one, where cookies and tokens work.
func (x *exchange) page(html []byte) (answer, error) {
	if base := x.base(); hostOf(base) != x.r.Host && loopback(base) && loopback("http://"+x.r.Host) {
		return answer{status: http.StatusTemporaryRedirect, media: "text/plain", raw: []byte{}}.with("Location", base+x.r.URL.RequestURI()), nil
	}
	return answer{media: "text/html; charset=utf-8", raw: html}.
		with("Content-Security-Policy", pagePolicy).with("Cache-Control", "no-cache"), nil
}

// elsewhere is the same address under the public name of this machine, if a
// browser came by another of its names.
func (x *exchange) elsewhere() string {
	base := x.base()
	if !safe(x.r.Method) || hostOf(base) == x.r.Host || !loopback(base) || !loopback("http://"+x.r.Host) {
		return ""
	}
	return base + x.r.URL.RequestURI()
}
