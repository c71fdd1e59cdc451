package clitest

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// API answers calls by their lines, such as "GET /api/runs?limit=5" with the names of the
// query in their order, or without the query. An answer may begin with its status. Whatever it has
// no answer to is not there.
type API struct {
	URL     string
	Answers map[string]string // SERVER in them stands for the address
	Before  func(line string) // each call; nil: nothing

	mu    sync.Mutex
	asked []string // line and body
}

// ServeAPI has one for as long as a test lasts.
func ServeAPI(t *testing.T, answers map[string]string) *API {
	t.Helper()
	a := &API{Answers: answers}
	a.URL = Serve(t, a.ServeHTTP)
	return a
}

// ServeHTTP answers one call.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	line := r.Method + " " + r.URL.Path
	if query := r.URL.Query().Encode(); query != "" {
		line += "?" + query
	}
	text := a.answer(line, r.Method+" "+r.URL.Path, strings.TrimSpace(string(body)))
	status := http.StatusOK
	if first, rest, _ := strings.Cut(text, " "); len(first) == 3 {
		if n, err := strconv.Atoi(first); err == nil {
			status, text = n, rest
		}
	}
	text = strings.ReplaceAll(text, "SERVER", a.URL)
	if strings.HasPrefix(text, "{") {
		Answer(w, status, text)
		return
	}
	w.Header().Set("Content-Type", "text/csv") // which a client takes for an answer, too
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func (a *API) answer(line, path, body string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, strings.TrimSpace(line+" "+body))
	if a.Before != nil {
		a.Before(line)
	}
	for _, key := range []string{line, path} {
		if text, known := a.Answers[key]; known {
			return text
		}
	}
	return `404 {"success":false,"error":"no such run","code":"not_found","requestId":"r"}`
}

// Calls are the lines that were asked since the last time, with their bodies.
func (a *API) Calls() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	got := a.asked
	a.asked = nil
	return got
}

// Data is an answer in its envelope, and the last page of a list.
func Data(text string) string {
	return `{"success":true,"data":` + text + `,"page":{"hasMore":false}}`
}
