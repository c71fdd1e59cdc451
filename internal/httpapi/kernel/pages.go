package kernel

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/pages"
)

// DrawPage is a page for a browser; leadsTo are foreign addresses that its form
// may end at.
func (x *Exchange) DrawPage(name string, view any, leadsTo ...string) (Answer, error) {
	html, err := pages.Draw(name, view)
	if err != nil {
		return Answer{}, err
	}
	if to := x.publicAddress(); to != "" {
		return Answer{Status: http.StatusTemporaryRedirect, Media: "text/plain", Raw: []byte{}}.With("Location", to), nil
	}
	policy := "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action " +
		strings.Join(append([]string{"'self'"}, leadsTo...), " ")
	ans := Answer{Media: "text/html; charset=utf-8", Raw: html}.With("Content-Security-Policy", policy)
	if base := x.Base(); !strings.HasPrefix(base, "https:") && !Loopback(base) {
		// Without TLS browsers do not say Sec-Fetch-Site: the form's Origin must do.
		ans = ans.With("Referrer-Policy", "same-origin")
	}
	return ans, nil
}

// failOnPage tells a person what went wrong.
func (x *Exchange) failOnPage(e *fault.Error) {
	status := StatusOf[e.Kind]
	view := pages.Error{Title: pageTitle(status, e.Code), Message: SentenceCase(e.Message), RequestID: x.ID}
	if status == http.StatusUnauthorized {
		view.SignIn = x.signInPath()
	}
	ans, err := x.DrawPage("error", view)
	if err != nil { // an error page holds nothing that cannot be drawn
		panic(err)
	}
	if ans.Status == 0 {
		ans.Status = status
	}
	x.write(ans)
}

// SentenceCase makes a failure's words a sentence on a page.
func SentenceCase(text string) string {
	if text == "" {
		return ""
	}
	_, first := utf8.DecodeRuneInString(text)
	return strings.ToUpper(text[:first]) + strings.TrimSuffix(text[first:], ".") + "."
}

func pageTitle(status int, code string) string {
	if code == "link_invalid" {
		return "This link no longer works"
	}
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

// Form reads a form that was posted. Nothing may be said twice.
func (x *Exchange) Form() (url.Values, error) {
	media, _, _ := mime.ParseMediaType(x.Request.Header.Get("Content-Type"))
	if media != "application/x-www-form-urlencoded" {
		return nil, fault.Unsupported("send a form, as application/x-www-form-urlencoded").WithCode("invalid_request")
	}
	x.Request.Body = http.MaxBytesReader(x.Writer, x.Request.Body, SmallBody)
	if err := x.Request.ParseForm(); err != nil {
		if _, over := errors.AsType[*http.MaxBytesError](err); over {
			return nil, fault.TooLarge("a form has at most 1 MB").WithCode("invalid_request")
		}
		return nil, fault.Invalid("the form cannot be read").WithCode("invalid_request").WithCause(err)
	}
	return x.Request.PostForm, NotRepeated(x.Request.PostForm)
}

// NotRepeated refuses values that were sent twice, or that no database takes.
func NotRepeated(values url.Values) error {
	for name, all := range values {
		if len(all) > 1 || !Printable(all[0]) {
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

// SeeOther sends a browser on.
func SeeOther(location string) (Answer, error) {
	return Answer{Status: http.StatusSeeOther, Media: "text/plain", Raw: []byte{}}.With("Location", location), nil
}

// OwnPath is a path of ours to go on to, and never another site's.
func OwnPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || len(text) > 8000 || !Printable(text) ||
		!strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.Contains(text, `\`) {
		return "/"
	}
	return text
}

// ToSignIn sends a browser to sign in, and back here afterwards.
func (x *Exchange) ToSignIn() (Answer, error) { return SeeOther(x.signInPath()) }

func (x *Exchange) signInPath() string {
	return "/sign-in?next=" + url.QueryEscape(x.Request.URL.RequestURI())
}

// Person is who the page is for.
func (x *Exchange) Person() pages.Person {
	p := pages.Person{Name: x.Presence.User.Name, Email: x.Presence.User.Email}
	if safe(x.Request.Method) {
		p.Here = x.Request.URL.RequestURI()
	}
	return p
}

// HTML is HTML for a browser. One that came by another name of this machine
// is sent to the public one, where cookies and tokens work.
func (x *Exchange) HTML(html []byte) (Answer, error) {
	if base := x.Base(); hostOf(base) != x.Request.Host && Loopback(base) && Loopback("http://"+x.Request.Host) {
		return Answer{Status: http.StatusTemporaryRedirect, Media: "text/plain", Raw: []byte{}}.With("Location", base+x.Request.URL.RequestURI()), nil
	}
	return Answer{Media: "text/html; charset=utf-8", Raw: html}.
		With("Content-Security-Policy", pagePolicy).With("Cache-Control", "no-cache"), nil
}

// publicAddress is the same address under the public name of this machine, if a
// browser came by another of its names.
func (x *Exchange) publicAddress() string {
	base := x.Base()
	if !safe(x.Request.Method) || hostOf(base) == x.Request.Host || !Loopback(base) || !Loopback("http://"+x.Request.Host) {
		return ""
	}
	return base + x.Request.URL.RequestURI()
}
