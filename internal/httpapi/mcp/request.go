package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// most is how much of an answer a model is given: what it cannot read at once
// it can ask for in parts.
const most = 256 << 10

// tools are what one message may use.
type tools struct {
	server  *sdk.Server
	api     http.Handler
	message *http.Request // as the kernel let it in
}

// request is one to the API, made of a tool's arguments.
type request struct {
	method string
	path   string   // below /api/
	ids    []string // in place of its {}
	query  url.Values
	body   any
}

// add adds a tool that is one request to the API.
func add[In any](t tools, about sdk.Tool, of func(In) request) {
	sdk.AddTool(t.server, &about, func(_ context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		text, err := t.send(of(in))
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
	})
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// send makes the request as the caller: with the token, team and address of the
// message that brought it, and nothing else of it.
func (t tools) send(q request) (string, error) {
	path := "/api/" + q.path
	for _, id := range q.ids {
		if !plain.MatchString(id) {
			return "", fmt.Errorf("%.100q is no id", id)
		}
		path = strings.Replace(path, "{}", id, 1)
	}
	var body []byte
	if q.body != nil {
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			return "", err
		}
	}
	r, err := http.NewRequestWithContext(t.message.Context(), q.method, path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.URL.RawQuery = q.query.Encode()
	r.RemoteAddr, r.Host = t.message.RemoteAddr, t.message.Host
	for _, name := range []string{"Authorization", "X-Team-Id", "X-Forwarded-For"} {
		if values := t.message.Header.Values(name); len(values) > 0 {
			r.Header[name] = values
		}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	w := &answer{header: http.Header{}}
	t.api.ServeHTTP(w, r)
	return w.text()
}

// answer keeps what the API answers, up to most.
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
	if w.body.Len()+len(p) > most {
		w.cut = true
		return 0, errors.New("the answer is too long")
	}
	return w.body.Write(p)
}

// text is the answer for a model: the API's own, also where it refuses.
func (w *answer) text() (string, error) {
	text := strings.TrimSpace(w.body.String())
	switch {
	case w.cut:
		return "", fmt.Errorf("the answer is longer than %d KB: ask for less of it, by filters or a smaller limit", most>>10)
	case w.status >= http.StatusBadRequest:
		return "", errors.New(text)
	}
	return text, nil
}
