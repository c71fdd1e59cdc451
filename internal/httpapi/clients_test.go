package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/llm/llmtest"
)

// obliging is a model that does as it is told.
func obliging(t *testing.T) *llmtest.Server {
	var mu sync.Mutex
	stumbled := false
	return llmtest.New(t, func(r llmtest.Request) llmtest.Answer {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Said() == "tool" && len(r.Tools) == 1:
			return llmtest.Answer{Tool: "flow"}
		case r.Said() == "stumble" && !stumbled:
			stumbled = true
			return llmtest.Refusal(429)
		case r.Said() == "refuse":
			return llmtest.Refusal(400)
		case r.Said() == "break":
			return llmtest.Answer{Do: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				llmtest.Chunk(w, llmtest.Delta("one"), nil)
			}}
		}
		return llmtest.Answer{}
	})
}

// proxy is a served harness with a model, and the requests that came by token.
type proxy struct {
	url, token, spent string

	mu    sync.Mutex
	tries map[string]int
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	h := newHarness(t, withModel(obliging(t)), func(o *httpapi.Options, _ *builtin.Options) { o.Chat.Limits = ai.ChatLimits{PerUser: 100, All: 1000} })
	poor := h.signUp("Poor")
	for range 100 {
		if _, err := h.db.TakeChat(t.Context(), poor.id, ai.ChatLimits{PerUser: 100, All: 1000}, ai.DayOf(h.clock())); err != nil {
			t.Fatal(err)
		}
	}
	p := &proxy{token: h.signUp("Ada").token, spent: poor.token, tries: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.tries[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]++
		p.mu.Unlock()
		h.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	p.url = s.URL + "/api/ai/proxy/v1"
	return p
}

func (p *proxy) triesOf(token string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries[token]
}

func TestTheOfficialNodeClientWorksUnmodified(t *testing.T) {
	if testing.Short() {
		t.Skip("it installs packages of npm")
	}
	t.Parallel()
	const folder = "testdata/openai"
	if _, err := exec.LookPath("npm"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("npm is not there: `make test` installs it")
		}
		t.Skip("npm is not there: `make test` installs it")
	}
	if out, err := exec.Command("npm", "ci", "--prefix", folder, "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error").CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	p := newProxy(t)
	out, err := exec.Command("node", folder+"/try.mjs", p.url, p.token, p.spent).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "done") {
		t.Errorf("%v\n%s", err, out)
	}
	if n := p.triesOf(p.spent); n != 1 {
		t.Errorf("a client without quota tried %d times", n)
	}
}

func TestTheOfficialGoClientWorksUnmodified(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	client := openai.NewClient(option.WithBaseURL(p.url), option.WithAPIKey(p.token))
	params := func(said string) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{Model: "any of them", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(said)}}
	}
	plain, err := client.Chat.Completions.New(t.Context(), params("hi"))
	if err != nil || plain.Choices[0].Message.Content != "Good day to you" || plain.Usage.CompletionTokens != 5 {
		t.Fatalf("plain: %+v, %v", plain, err)
	}

	stream := client.Chat.Completions.NewStreaming(t.Context(), params("hi"))
	whole := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		whole.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil || whole.Choices[0].Message.Content != "Good day to you" || whole.Usage.TotalTokens != 0 {
		t.Errorf("streamed: %+v, %v", whole.ChatCompletion, err)
	}

	withTools := params("tool")
	withTools.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "flow"})}
	called, err := client.Chat.Completions.New(t.Context(), withTools)
	if err != nil || called.Choices[0].Message.ToolCalls[0].Function.Arguments != `{"river":"Leat"}` {
		t.Errorf("tools: %+v, %v", called, err)
	}

	if again, err := client.Chat.Completions.New(t.Context(), params("stumble")); err != nil || again.Choices[0].Message.Content == "" {
		t.Errorf("a stumble was not tried again: %v", err)
	}

	for said, want := range map[string]string{"refuse": "400 model_refused"} {
		_, err := client.Chat.Completions.New(t.Context(), params(said))
		if e, ok := errors.AsType[*openai.Error](err); !ok || fmt.Sprintf("%d %s", e.StatusCode, e.Code) != want {
			t.Errorf("%s: %v", said, err)
		}
	}
	broken := client.Chat.Completions.NewStreaming(t.Context(), params("break"))
	for broken.Next() {
		continue
	}
	if broken.Err() == nil {
		t.Error("a stream that breaks ends as if it were whole")
	}

	poor := openai.NewClient(option.WithBaseURL(p.url), option.WithAPIKey(p.spent))
	_, err = poor.Chat.Completions.New(t.Context(), params("hi"))
	if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != 429 || e.Code != "fair_use_exhausted" || p.triesOf(p.spent) != 1 {
		t.Errorf("without quota, after %d tries: %v", p.triesOf(p.spent), err)
	}
}
