package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
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
	"/workflows", "/templates", "/runs", "/files", "/papers", "/chat", "/billing", "/team", "/secrets", "/audit", "/account", "/launch", "/join", "/results",
}

// serveApp adds the app's pages to the mux. They are no operations of the
// contract: a browser asks for them, and gets one page for all.
func (a *API) serveApp(mux *http.ServeMux) {
	serve := func(pattern string, handle handler) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			a.serve(route{pattern: pattern, handle: handle}, w, r)
		})
	}
	for _, p := range appPaths {
		serve("GET "+p, a.home)
		serve("GET "+p+"/{rest...}", a.home)
	}
	serve("GET /assets/{file}", a.asset)
	serve("GET /favicon.svg", a.asset)
	serve("GET /theme.js", a.asset)
}

// home is the app, whichever of its pages was asked for.
func (a *API) home(x *exchange) (answer, error) {
	html, err := fs.ReadFile(a.App.Files, "index.html")
	if err != nil { // it was not built
		return x.page(a.App.Unbuilt)
	}
	ans, err := x.page(html)
	if err != nil || ans.status == http.StatusTemporaryRedirect {
		return ans, err
	}
	return x.packed(ans.with("Content-Security-Policy", a.App.policy()), "index.html"), nil
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
func (a *API) asset(x *exchange) (answer, error) {
	name := strings.TrimPrefix(x.r.URL.Path, "/")
	body, err := fs.ReadFile(a.App.Files, name)
	if err != nil {
		return nowhere(x)
	}
	ans := answer{media: mime.TypeByExtension(path.Ext(name)), raw: body}
	if strings.HasPrefix(name, "assets/") {
		ans = ans.with("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		ans = ans.with("Cache-Control", "no-cache")
	}
	return x.packed(ans, name), nil
}

// packed swaps a file's bytes for the copy that was compressed when it was
// built, if the browser takes it, and for nothing if the browser has it.
func (x *exchange) packed(ans answer, name string) answer {
	encoding, ending := "", ""
	for _, each := range []struct{ encoding, ending string }{{"br", ".br"}, {"gzip", ".gz"}} {
		if !accepts(x.r.Header.Get("Accept-Encoding"), each.encoding) {
			continue
		}
		if smaller, err := fs.ReadFile(x.api.App.Files, name+each.ending); err == nil {
			ans.raw, encoding, ending = smaller, each.encoding, each.ending
			break
		}
	}
	sum := sha256.Sum256(ans.raw)
	tag := `"` + hex.EncodeToString(sum[:8]) + ending + `"`
	ans = ans.with("ETag", tag).with("Vary", "Origin, Accept-Encoding")
	if encoding != "" {
		ans = ans.with("Content-Encoding", encoding)
	}
	if x.r.Header.Get("If-None-Match") == tag {
		ans.status, ans.raw = http.StatusNotModified, nil
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
