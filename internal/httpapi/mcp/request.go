package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/millrace/millrace/internal/domain/access"
)

// The most that a model is given at once, and the most that is read for that.
// What it cannot read at once it can ask for in parts.
const (
	most     = 256 << 10
	mostRead = 4 << 20
)

// message is one message of a program, as the kernel let it in.
type message struct {
	api    http.Handler
	asked  *http.Request
	caller access.Caller
	base   string // our own address, as the program sees it
}

// request is one to the API.
type request struct {
	id      string // in place of {id}
	query   url.Values
	body    any
	shorten func([]byte) ([]byte, error) // the answer, where some of it is to be had otherwise
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// refused is what the API answers where it does not do what was asked.
type refused struct {
	status int
	text   string
}

func (e refused) Error() string { return e.text }

// send makes a request to an operation of the API, such as "GET /api/runs/{id}",
// as the caller: with the token, team and address of the message, and nothing
// else of it.
func (m message) send(operation string, q request) ([]byte, error) {
	method, path, _ := strings.Cut(operation, " ")
	if strings.Contains(path, "{id}") {
		if !plain.MatchString(q.id) {
			return nil, fmt.Errorf("%.100q is no id", q.id)
		}
		path = strings.Replace(path, "{id}", q.id, 1)
	}
	var body []byte
	if q.body != nil {
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(m.asked.Context(), method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.URL.RawQuery = q.query.Encode()
	r.RemoteAddr, r.Host = m.asked.RemoteAddr, m.asked.Host
	for _, name := range []string{"Authorization", "X-Team-Id", "X-Forwarded-For"} {
		if values := m.asked.Header.Values(name); len(values) > 0 {
			r.Header[name] = values
		}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	w := &answer{header: http.Header{}}
	m.api.ServeHTTP(w, r)
	return w.result()
}

// answer keeps what the API answers, up to mostRead.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
	cut    bool
}

func (w *answer) Header() http.Header { return w.header }

func (w *answer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *answer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len()+len(p) > mostRead {
		w.cut = true
		return 0, errTooLong
	}
	return w.body.Write(p)
}

var errTooLong = fmt.Errorf("the answer is longer than %d KB: ask for less of it, by filters or a smaller limit", most>>10)

// result is the body of a success. A refusal is an error with the API's own text.
func (w *answer) result() ([]byte, error) {
	body := bytes.TrimSpace(w.body.Bytes())
	switch {
	case w.cut:
		return nil, errTooLong
	case w.status >= http.StatusBadRequest:
		return nil, refused{w.status, string(body)}
	}
	return body, nil
}
