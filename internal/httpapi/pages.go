package httpapi

import (
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/pages"
)

func (a *API) pageFile(x *exchange) (answer, error) {
	name := x.r.PathValue("file")
	text, err := fs.ReadFile(pages.Static, "static/"+name)
	if err != nil {
		return nowhere(x)
	}
	return answer{media: mime.TypeByExtension(path.Ext(name)), raw: text}.with("Cache-Control", "public, max-age=300"), nil
}

// draw is a page for a browser; leadsTo are foreign addresses that its form
// may end at.
func (x *exchange) draw(name string, view any, leadsTo ...string) (answer, error) {
	html, err := pages.Draw(name, view)
	if err != nil {
		return answer{}, err
	}
	if to := x.elsewhere(); to != "" {
		return answer{status: http.StatusTemporaryRedirect, media: "text/plain", raw: []byte{}}.with("Location", to), nil
	}
	policy := "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action " +
		strings.Join(append([]string{"'self'"}, leadsTo...), " ")
	ans := answer{media: "text/html; charset=utf-8", raw: html}.with("Content-Security-Policy", policy)
	if base := x.base(); !strings.HasPrefix(base, "https:") && !loopback(base) {
		// Without TLS browsers do not say Sec-Fetch-Site: the form's Origin must do.
		ans = ans.with("Referrer-Policy", "same-origin")
	}
	return ans, nil
}

// failOnPage tells a person what went wrong.
func (x *exchange) failOnPage(e *fault.Error) {
	status := statusOf[e.Kind]
	view := pages.Error{Title: pageTitle(status), Message: sentenceCase(e.Message), RequestID: x.id}
	if status == http.StatusUnauthorized {
		view.SignIn = x.signInPath()
	}
	ans, err := x.draw("error", view)
	if err != nil { // an error page holds nothing that cannot be drawn
		panic(err)
	}
	if ans.status == 0 {
		ans.status = status
	}
	x.write(ans)
}

// sentenceCase makes a failure's words a sentence on a page.
func sentenceCase(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

func pageTitle(status int) string {
	switch status {
	case http.StatusNotFound:
		return "Page not found"
	case http.StatusForbidden:
		return "Not allowed"
	case http.StatusUnauthorized:
		return "Please sign in"
	case http.StatusTooManyRequests:
		return "Too many requests"
	}
	if status >= http.StatusInternalServerError {
		return "Something went wrong"
	}
	return "The request failed"
}

// form reads a form that was posted. Nothing may be said twice.
func (x *exchange) form() (url.Values, error) {
	media, _, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if media != "application/x-www-form-urlencoded" {
		return nil, fault.Unsupported("send a form, as application/x-www-form-urlencoded").WithCode("invalid_request")
	}
	x.r.Body = http.MaxBytesReader(x.w, x.r.Body, smallBody)
	if err := x.r.ParseForm(); err != nil {
		if _, over := errors.AsType[*http.MaxBytesError](err); over {
			return nil, fault.TooLarge("a form has at most 1 MB").WithCode("invalid_request")
		}
		return nil, fault.Invalid("the form cannot be read").WithCode("invalid_request").WithCause(err)
	}
	return x.r.PostForm, saidOnce(x.r.PostForm)
}

func saidOnce(values url.Values) error {
	for name, all := range values {
		if len(all) > 1 || !printable(all[0]) {
			return fault.Invalid("%s is repeated or contains control characters", asciiName(name)).WithCode("invalid_request")
		}
	}
	return nil
}

// asciiName is a field's name, if it can stand in an OAuth error.
func asciiName(name string) string {
	if len(name) > 40 || strings.ContainsFunc(name, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return "a field"
	}
	return name
}

func seeOther(location string) (answer, error) {
	return answer{status: http.StatusSeeOther, media: "text/plain", raw: []byte{}}.with("Location", location), nil
}

// ownPath is a path of ours to go on to, and never another site's.
func ownPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || len(text) > 8000 || !printable(text) ||
		!strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.Contains(text, `\`) {
		return "/"
	}
	return text
}

// toSignIn sends a browser to sign in, and back here afterwards.
func (x *exchange) toSignIn() (answer, error) { return seeOther(x.signInPath()) }

func (x *exchange) signInPath() string {
	return "/sign-in?next=" + url.QueryEscape(x.r.URL.RequestURI())
}

func (x *exchange) person() pages.Person {
	p := pages.Person{Name: x.presence.User.Name, Email: x.presence.User.Email}
	if safe(x.r.Method) {
		p.Here = x.r.URL.RequestURI()
	}
	return p
}
