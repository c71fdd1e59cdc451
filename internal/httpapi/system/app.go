package system

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// App is the web app, as it was built.
type App struct {
	Files    fs.FS    // index.html, and under assets/ what is named after its content
	Unbuilt  []byte   // the page of a binary that was made without it
	Connects []string // the origins, beside our own, that its pages talk to
}

// appPaths are the app's own pages; whatever lies under one is the app's too.
// The router in web/src/app/router.tsx has the same.
var appPaths = []string{
	"/workflows", "/templates", "/runs", "/files", "/papers", "/chat", "/billing", "/notifications", "/team", "/secrets", "/audit", "/operator", "/connections", "/account", "/launch", "/join", "/results",
}

// AppRoutes are the app's pages. They are no operations of the contract: a
// browser asks for them, and gets one page for all.
func (a *API) AppRoutes() []kernel.Route {
	var all []kernel.Route
	for _, p := range appPaths {
		all = append(all, kernel.Route{Pattern: "GET " + p, Handle: a.Home}, kernel.Route{Pattern: "GET " + p + "/{rest...}", Handle: a.Home})
	}
	for _, p := range []string{"GET /assets/{file}", "GET /favicon.svg", "GET /theme.js"} {
		all = append(all, kernel.Route{Pattern: p, Handle: a.asset})
	}
	return all
}

// Home is the app, whichever of its pages was asked for.
func (a *API) Home(x *kernel.Exchange) (kernel.Answer, error) {
	body, encoding, err := a.App.read("index.html", x.Request.Header.Get("Accept-Encoding"))
	if errors.Is(err, fs.ErrNotExist) { // it was not built
		return x.HTML(a.App.Unbuilt)
	} else if err != nil {
		return kernel.Answer{}, err
	}
	ans, err := x.HTML(body)
	if err != nil || ans.Status == http.StatusTemporaryRedirect {
		return ans, err
	}
	return unlessKnown(x, ans.With("Content-Security-Policy", a.App.policy()), encoding), nil
}

// policy lets the app do what it needs and nothing else: no script but ours,
// no origin but ours and the object store's. Styles may be inline, because
// the canvas and the code editor position things that way.
func (app App) policy() string {
	others := strings.Join(append([]string{""}, app.Connects...), " ")
	return "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:" + others +
		"; connect-src 'self'" + others + "; frame-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}

// asset is a file of the app. One that is named after its content never
// changes, so that a browser need not ask twice.
func (a *API) asset(x *kernel.Exchange) (kernel.Answer, error) {
	name := strings.TrimPrefix(x.Request.URL.Path, "/")
	body, encoding, err := a.App.read(name, x.Request.Header.Get("Accept-Encoding"))
	if err != nil {
		return kernel.NotFound(x)
	}
	ans := kernel.Answer{Media: mime.TypeByExtension(path.Ext(name)), Raw: body}
	if strings.HasPrefix(name, "assets/") {
		ans = ans.With("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		ans = ans.With("Cache-Control", "no-cache")
	}
	return unlessKnown(x, ans, encoding), nil
}

// read is a file in the first encoding that is accepted. The build compresses what
// becomes smaller, and keeps only the copies: whoever accepts neither gets one that
// is unpacked.
func (app App) read(name, accept string) (body []byte, encoding string, err error) {
	for _, each := range []struct{ encoding, ending string }{{"br", ".br"}, {"gzip", ".gz"}} {
		if !accepts(accept, each.encoding) {
			continue
		}
		if body, err = fs.ReadFile(app.Files, name+each.ending); err == nil {
			return body, each.encoding, nil
		}
	}
	if body, err = fs.ReadFile(app.Files, name); !errors.Is(err, fs.ErrNotExist) {
		return body, "", err
	}
	packed, err := app.Files.Open(name + ".gz")
	if err != nil {
		return nil, "", err
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return nil, "", err
	}
	body, err = io.ReadAll(plain)
	return body, "", err
}

// unlessKnown is the answer, or one without content if the browser has it.
func unlessKnown(x *kernel.Exchange, ans kernel.Answer, encoding string) kernel.Answer {
	sum := sha256.Sum256(ans.Raw)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	ans = ans.With("ETag", tag).With("Vary", "Origin, Accept-Encoding")
	if encoding != "" {
		ans = ans.With("Content-Encoding", encoding)
	}
	if x.Request.Header.Get("If-None-Match") == tag {
		ans.Status, ans.Raw = http.StatusNotModified, nil
	}
	return ans
}

// accepts reads an Accept-Encoding as far as we need it: named, and not with
// a weight of nothing.
func accepts(header, encoding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == encoding {
			w := strings.ReplaceAll(weight, " ", "")
			return w != "q=0" && w != "q=0.0" && w != "q=0.00" && w != "q=0.000"
		}
	}
	return false
}
