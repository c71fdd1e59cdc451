package llm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/llm"
	"github.com/millrace/millrace/internal/llm/llmtest"
)

var hello = []ai.ChatField{{Name: "messages", Value: []byte(`[{"role":"user","content":"hi"}]`)}}

// sending is a model whose server sends this.
func sending(t *testing.T, media string, body func(w http.ResponseWriter, r *http.Request)) *llm.Client {
	t.Helper()
	c, _ := reads(t, llmtest.Answer{Do: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", media)
		body(w, r)
	}})
	return c
}

// pieces reads an answer until it ends, well or badly.
func pieces(t *testing.T, reply ai.ChatReply) (list []string, end error) {
	t.Helper()
	t.Cleanup(func() { _ = reply.Close() })
	for {
		piece, err := reply.Next()
		if errors.Is(err, io.EOF) {
			if _, again := reply.Next(); !errors.Is(again, io.EOF) {
				t.Errorf("after the end comes %v", again)
			}
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, string(piece))
	}
}

// What comes in a stream is passed on byte for byte, and how it ends is told.
func TestAStreamIsTakenAsItComes(t *testing.T) {
	t.Parallel()
	const (
		word  = `data: {"choices":[{"delta":{"content":"Good"},"finish_reason":null}]}`
		stop  = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`
		usage = `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}`
		mixed = `data: {"choices":[{"delta":{"content":"!"},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":-4}}`
		done  = "data: [DONE]"
	)
	events := func(list ...string) string { return strings.Join(list, "\n\n") + "\n\n" }
	for name, tt := range map[string]struct {
		body   string
		wants  bool // the usage
		pieces int
		broken bool
		use    ai.ChatUse
	}{
		"whole":                       {events(word, stop, usage, done), false, 3, false, ai.ChatUse{PromptTokens: 7, CompletionTokens: 3}},
		"with the usage":              {events(word, stop, usage, done), true, 4, false, ai.ChatUse{PromptTokens: 7, CompletionTokens: 3}},
		"usage beside the last word":  {events(word, mixed, done), false, 3, false, ai.ChatUse{PromptTokens: 8}},
		"without an end mark":         {events(word, stop), false, 2, false, ai.ChatUse{}},
		"cut off":                     {events(word), false, 1, true, ai.ChatUse{}},
		"cut off in an event":         {events(word) + "data: {", false, 1, true, ai.ChatUse{}},
		"nothing":                     {"", false, 0, true, ai.ChatUse{}},
		"an error in between":         {events(word, `data: {"error":{"message":"upstream"}}`, stop), false, 1, true, ai.ChatUse{}},
		"no error":                    {events(`data: {"error":null,"choices":[{"finish_reason":"stop"}]}`, done), false, 2, false, ai.ChatUse{}},
		"no JSON":                     {events("data: upstream"), false, 0, true, ai.ChatUse{}},
		"a comment to keep it open":   {events(": ping", word, stop, done), false, 4, false, ai.ChatUse{}},
		"lines that end in two bytes": {strings.ReplaceAll(events(word, stop, done), "\n", "\r\n"), false, 3, false, ai.ChatUse{}},
		"no blank after the colon":    {strings.ReplaceAll(events(word, stop, done), "data: ", "data:"), false, 3, false, ai.ChatUse{}},
		"an event of two lines":       {events("event: x\ndata: {\"choices\":\ndata: []}", stop, done), false, 3, false, ai.ChatUse{}},
		"more after the end":          {events(word, stop, done, word), false, 3, false, ai.ChatUse{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sending(t, "text/event-stream; charset=utf-8", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tt.body) })
			reply, err := c.Complete(t.Context(), ai.ChatRequest{Stream: true, WantsUsage: tt.wants, Fields: hello})
			if err != nil || !reply.Stream() {
				t.Fatal(err)
			}
			list, end := pieces(t, reply)
			if len(list) != tt.pieces || (end != nil) != tt.broken || reply.Use() != tt.use {
				t.Errorf("%d pieces, %v, %+v", len(list), end, reply.Use())
			}
			if end != nil && (!fault.Is(end, fault.KindUnavailable) || strings.Contains(fault.Unavailable("%v", end).Message, "upstream")) {
				t.Errorf("it breaks off with %v", end)
			}
			rest := tt.body
			for _, piece := range list { // in order, nothing changed, only the usage left out
				before, after, found := strings.Cut(rest, piece)
				if !found || before != "" && !strings.Contains(before, `"usage"`) {
					t.Fatalf("%q is not what came", piece)
				}
				rest = after
			}
		})
	}
}

// A line without an end is no reason to keep all of it.
func TestAnEventIsNoLargerThanItMayBe(t *testing.T) {
	t.Parallel()
	sent := make(chan int, 1)
	c := sending(t, "text/event-stream", func(w http.ResponseWriter, _ *http.Request) {
		block, all := []byte(strings.Repeat("x", 1<<20)), 0
		for n := len(block); all < 64<<20 && n == len(block); all += n {
			n, _ = w.Write(block) // until the client has left
		}
		sent <- all
	})
	reply, err := c.Complete(t.Context(), ai.ChatRequest{Stream: true, Fields: hello})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reply.Next(); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("got %v", err)
	}
	if err := reply.Close(); err != nil {
		t.Error(err)
	}
	if n := <-sent; n >= 64<<20 {
		t.Errorf("%d bytes were read", n)
	}
}

func TestAWholeAnswerIsOnePiece(t *testing.T) {
	t.Parallel()
	const answer = `{"choices":[{"message":{"content":"Good day"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2},"x":1e400}`
	c := sending(t, "application/json", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
	reply, err := c.Complete(t.Context(), ai.ChatRequest{Fields: hello})
	if err != nil || reply.Stream() {
		t.Fatal(err)
	}
	if list, end := pieces(t, reply); end != nil || len(list) != 1 || list[0] != answer || reply.Use() != (ai.ChatUse{PromptTokens: 1, CompletionTokens: 2}) {
		t.Errorf("%q, %v, %+v", list, end, reply.Use())
	}
	c = sending(t, "application/json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, answer[:50])
	})
	if _, err := c.Complete(t.Context(), ai.ChatRequest{Fields: hello}); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("half an answer: %v", err)
	}
}

// way is a server that is reached without a network.
type way func(*http.Request) (*http.Response, error)

func (w way) RoundTrip(r *http.Request) (*http.Response, error) { return w(r) }

// A model may take its time between two words, but not longer than it may pause.
func TestAModelThatPausesForTooLongIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const idle, pause, words = time.Minute, 59 * time.Second, 3
		body, server := io.Pipe()
		c := llm.Through(llm.New(llm.Options{BaseURL: "http://model", Model: llmtest.Name, IdleTime: idle}), way(func(r *http.Request) (*http.Response, error) {
			context.AfterFunc(r.Context(), func() { server.CloseWithError(context.Cause(r.Context())) })
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r}, nil
		}))
		began := time.Now()
		reply, err := c.Complete(t.Context(), ai.ChatRequest{Stream: true, Fields: hello})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range words {
				time.Sleep(pause)
				fmt.Fprint(server, `data: {"choices":[{"delta":{"content":"Good"},"finish_reason":null}]}`+"\n\n")
			}
		}()
		list, end := pieces(t, reply)
		if took := time.Since(began); len(list) != words || !fault.Is(end, fault.KindUnavailable) || took != words*pause+idle {
			t.Errorf("%q, %v after %s", list, end, took)
		}
	})
}

// The key goes to the server that the operator named and to no other.
func TestTheKeyStaysWithItsServer(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("asked with %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 307, 308} {
		c := sending(t, "", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, status) })
		if _, err := c.Complete(t.Context(), ai.ChatRequest{Fields: hello}); !fault.Is(err, fault.KindUnavailable) {
			t.Errorf("%d: %v", status, err)
		}
	}
	gone := llm.New(llm.Options{BaseURL: "http://127.0.0.1:1", Model: "m", Log: slog.New(slog.DiscardHandler)})
	_, err := gone.Complete(t.Context(), ai.ChatRequest{Fields: hello})
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "model_unavailable" || strings.Contains(e.Message, "127.0.0.1") {
		t.Errorf("nobody there: %v", err)
	}
}

// Options of a stream that the client gave stay, whatever they are.
func TestWhatAStreamIsAskedFor(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                          `"stream_options":{"include_usage":true}`,
		`null`:                      `"stream_options":{"include_usage":true}`,
		`{"include_usage":false}`:   `"stream_options":{"include_usage":true}`,
		`{"a":1,"include_usage":0}`: `"stream_options":{"a":1,"include_usage":true}`,
		`{"include_u\u017fage":false,"Include_Usage":false}`: `"stream_options":{"include_usage":true}`,
		`[1]`: `"stream_options":[1]`,
	} {
		var body string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			body = string(text)
			w.WriteHeader(http.StatusBadRequest)
		}))
		fields := hello
		if given != "" {
			fields = append([]ai.ChatField{{Name: "stream_options", Value: []byte(given)}}, hello...)
		}
		c := llm.New(llm.Options{BaseURL: s.URL, Model: `m"x`, Log: slog.New(slog.DiscardHandler)})
		if _, err := c.Complete(t.Context(), ai.ChatRequest{Stream: true, Fields: fields}); !fault.Is(err, fault.KindInvalid) {
			t.Error(err)
		}
		s.Close()
		if !strings.Contains(body, want) || !strings.HasPrefix(body, `{"model":"m\"x",`) || strings.Count(body, "stream_options") != 1 {
			t.Errorf("%s becomes %s", given, body)
		}
	}
}

func TestWhatOfALongPaperIsLeftOutIsSaid(t *testing.T) {
	t.Parallel()
	page := func(n, size int) reader.Page { return reader.Page{Number: n, Text: strings.Repeat("ä", size/2)} }
	const part = 100_000
	for name, tt := range map[string]struct {
		pages []reader.Page
		asked int
		left  bool
	}{
		"none":                    {nil, 1, false},
		"one of a part's size":    {[]reader.Page{page(1, part)}, 1, false},
		"one that is larger":      {[]reader.Page{page(1, part+2)}, 1, true},
		"as many parts as may be": {[]reader.Page{page(1, part), page(2, part), page(3, part), page(4, part), page(5, part), page(6, part)}, 7, false},
		"one part more": {
			[]reader.Page{page(1, part), page(2, part), page(3, part), page(4, part), page(5, part), page(6, part), page(7, 10)}, 7, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := reads(t, llmtest.Answer{Text: good})
			got, err := c.Read(t.Context(), ai.Paper{}, tt.pages)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(s.Asked()); n != tt.asked || strings.Contains(strings.Join(got.Notes, " "), "very long") != tt.left {
				t.Errorf("asked %d times; %q", n, got.Notes)
			}
		})
	}
}

// When one part of a long paper cannot be read, the paper is not read in part.
func TestAPaperIsReadWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	pages := []reader.Page{{Number: 1, Text: strings.Repeat("x", 90_000)}, {Number: 2, Text: strings.Repeat("y", 90_000)}}
	c, s := reads(t, llmtest.Answer{Text: good}, llmtest.Refusal(http.StatusTooManyRequests))
	_, err := c.Read(t.Context(), ai.Paper{}, pages)
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "model_busy" || len(s.Asked()) != 2 {
		t.Errorf("%v after %d questions", err, len(s.Asked()))
	}
	for name, body := range map[string]string{"no choices": `{"choices":[]}`, "no JSON": `<html>`, "no words": `{"choices":[{"message":{"content":null}}]}`} {
		c := sending(t, "application/json", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
		if got, err := c.Read(t.Context(), ai.Paper{}, pages[:1]); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
