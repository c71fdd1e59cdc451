package system

import (
	"io/fs"
	"mime"
	"path"
	"sync"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/api/reference"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/httpapi/pages"
)

// renderReference makes the page when somebody first reads it: it takes as
// long as the rest of starting up.
var renderReference = sync.OnceValues(func() ([]byte, error) { return reference.Page(api.JSON) })

// OpenAPI answers GET /api/openapi.json.
func (a *API) OpenAPI(*kernel.Exchange) (kernel.Answer, error) {
	return kernel.Answer{Media: kernel.JSONMedia, Raw: api.JSON}.With("Cache-Control", "public, max-age=300"), nil
}

// Reference answers GET /docs.
func (a *API) Reference(x *kernel.Exchange) (kernel.Answer, error) {
	html, err := renderReference()
	if err != nil {
		return kernel.Answer{}, err
	}
	return x.HTML(html)
}

// ReferenceCSS answers GET /docs/reference.css.
func (a *API) ReferenceCSS(*kernel.Exchange) (kernel.Answer, error) {
	return kernel.Answer{Media: "text/css; charset=utf-8", Raw: reference.CSS}.With("Cache-Control", "public, max-age=300"), nil
}

// PageFile answers GET /pages/{file}.
func (a *API) PageFile(x *kernel.Exchange) (kernel.Answer, error) {
	name := x.Request.PathValue("file")
	text, err := fs.ReadFile(pages.Static, "static/"+name)
	if err != nil {
		return kernel.NotFound(x)
	}
	return kernel.Answer{Media: mime.TypeByExtension(path.Ext(name)), Raw: text}.With("Cache-Control", "public, max-age=300"), nil
}
