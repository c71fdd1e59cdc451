// Package llmtest stands in for a chat-completions server, in its wire format,
// with answers that a test gives.
package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Key is the only one that the server takes.
const Key = "sk-upstream-secret"

// Name is its only model.
const Name = "hosted-1"

// Request is what it was asked.
type Request struct {
	Raw      []byte `json:"-"`
	Model    string
	Messages []struct {
		Role    string
		Content any
	}
	Stream        bool
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools          []json.RawMessage
	ResponseFormat struct{ Type string } `json:"response_format"`
}

// Said is the text of the last message.
func (r Request) Said() string {
	text, _ := r.Messages[len(r.Messages)-1].Content.(string)
	return text
}

// Answer is what it says. The zero value greets.
type Answer struct {
	Text string
	Tool string           // calls this tool instead
	Do   http.HandlerFunc // anything else
}

// Server is a running one.
type Server struct {
	URL string

	mu     sync.Mutex
	answer func(Request) Answer
	asked  []Request
	left   chan struct{}
}

// New starts one that answers each request with what answer gives.
func New(t testing.TB, answer func(Request) Answer) *Server {
	t.Helper()
	s := &Server{answer: answer, left: make(chan struct{}, 100)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL + "/v1"
	return s
}

// Asked are the requests so far.
func (s *Server) Asked() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.asked...)
}

// Left receives once for each client that left before its answer was whole.
func (s *Server) Left() <-chan struct{} { return s.left }

// Refusal is an error in the server's own words, which nobody else must see.
func Refusal(status int) Answer {
	return Answer{Do: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":"org-upstream at 10.0.0.7 says no to %s","type":"upstream_error","param":null,"code":"upstream_code"}}`, Key)
	}}
}

// Never answers until the client has left.
func (s *Server) Never() Answer {
	return Answer{Do: func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		s.left <- struct{}{}
	}}
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	req := Request{Raw: body}
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	switch {
	case err != nil || len(req.Messages) == 0:
		Refusal(http.StatusBadRequest).Do(w, r)
		return
	case r.URL.Path != "/v1/chat/completions" || req.Model != Name:
		Refusal(http.StatusNotFound).Do(w, r)
		return
	case r.Header.Get("Authorization") != "Bearer "+Key:
		Refusal(http.StatusUnauthorized).Do(w, r)
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, req)
	s.mu.Unlock()
	a := s.answer(req)
	switch {
	case a.Do != nil:
		a.Do(w, r)
	case req.Stream:
		a.stream(w, req)
	default:
		a.whole(w)
	}
}

type object = map[string]any

var usage = object{"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}

func (a Answer) text() string {
	if a.Text == "" {
		return "Good day to you"
	}
	return a.Text
}

func (a Answer) call() []object {
	return []object{{"index": 0, "id": "call_1", "type": "function", "function": object{"name": a.Tool, "arguments": `{"river":"Leat"}`}}}
}

func (a Answer) whole(w http.ResponseWriter) {
	message, reason := object{"role": "assistant", "content": a.text(), "refusal": nil}, "stop"
	if a.Tool != "" {
		message, reason = object{"role": "assistant", "content": nil, "tool_calls": a.call()}, "tool_calls"
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Upstream-Organization", "org-upstream")
	send(w, object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": Name, "usage": usage, "x_server_field": 12345678901234567,
		"choices": []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": reason}},
	})
}

func send(w io.Writer, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return // the client has left
	}
}

// Chunk writes one event of a stream and flushes it.
func Chunk(w http.ResponseWriter, choices []map[string]any, use any) {
	fmt.Fprint(w, "data: ")
	send(w, object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": Name, "choices": choices, "usage": use})
	fmt.Fprint(w, "\n")
	_ = http.NewResponseController(w).Flush()
}

// Delta is a choice that adds some text.
func Delta(text string) []map[string]any {
	return []object{{"index": 0, "delta": object{"content": text}, "finish_reason": nil}}
}

func (a Answer) stream(w http.ResponseWriter, r Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	reason := "stop"
	if a.Tool != "" {
		reason = "tool_calls"
		Chunk(w, []object{{"index": 0, "delta": object{"role": "assistant", "tool_calls": a.call()}, "finish_reason": nil}}, nil)
	} else {
		for _, word := range strings.SplitAfter(a.text(), " ") {
			Chunk(w, Delta(word), nil)
		}
	}
	Chunk(w, []object{{"index": 0, "delta": object{}, "finish_reason": reason}}, nil)
	if r.StreamOptions.IncludeUsage {
		Chunk(w, []object{}, usage)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
