package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/llm"
	"github.com/millrace/millrace/internal/llm/llmtest"
)

const (
	chatPath = "/api/ai/proxy/v1/chat/completions"
	hello    = `{"model":"anything","messages":[{"role":"user","content":"hi"}]}`
	streamed = `{"model":"anything","stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

func greets(llmtest.Request) llmtest.Answer { return llmtest.Answer{} }

// chatted is what the dashboard says a team used of the chat.
func (h *harness) chatted(who someone) (requests, prompt, completion float64) {
	h.t.Helper()
	use := h.call("GET", "/api/dashboard/usage?days=7", "", bearer(who.token)).want(200).at("data", "ai").(map[string]any)
	today := use["series"].([]any)[6].(map[string]any)
	if today["requests"] != use["requests"] || today["tokens"] != use["promptTokens"].(float64)+use["completionTokens"].(float64) {
		h.t.Errorf("the dashboard does not add up: %v", use)
	}
	return use["requests"].(float64), use["promptTokens"].(float64), use["completionTokens"].(float64)
}

func TestAChatIsPassedOn(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		model := llmtest.New(t, greets)
		h = houseOver(t, h, withModel(model))
		ada := h.signUp("Ada")
		got := h.call("POST", chatPath, `{"messages":[{"role":"user","content":"hi","x":1.0}],"model":"theirs","seed":12345678901234567890}`, bearer(ada.token)).want(200)
		if got.text("model") != llmtest.Name || !strings.Contains(got.body, `"x_server_field":12345678901234567`) || got.header.Get("X-Upstream-Organization") != "" {
			t.Errorf("the answer is %v %s", got.header, got.body)
		}
		raw := string(model.Asked()[0].Raw)
		if !strings.Contains(raw, `"seed":12345678901234567890`) || !strings.Contains(raw, `"x":1.0`) || strings.Contains(raw, "stream_options") {
			t.Errorf("passed on: %s", raw)
		}
		if r, p, c := h.chatted(ada); r != 1 || p != 11 || c != 5 {
			t.Errorf("counted %v requests, %v and %v tokens", r, p, c)
		}
	})
}

// houseOver is another harness on the same database, with other options.
func houseOver(t *testing.T, h *harness, change ...func(*httpapi.Options, *builtin.Options)) *harness {
	t.Helper()
	return houseOn(t, h.url, change...)
}

func TestAStreamHidesTheUsageThatOnlyWeAskedFor(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t, greets)
	h := newHarness(t, withModel(model))
	ada := h.signUp("Ada")
	got := h.call("POST", chatPath, streamed, bearer(ada.token)).want(200)
	if !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") || strings.Contains(got.body, "prompt_tokens") ||
		strings.Count(got.body, "data: ") != 6 || !strings.HasSuffix(got.body, "data: [DONE]\n\n") {
		t.Errorf("the stream is %s", got.body)
	}
	asked := strings.Replace(streamed, "{", `{"stream_options":{"include_usage":true},`, 1)
	if got := h.call("POST", chatPath, asked, bearer(ada.token)).want(200); strings.Count(got.body, `"prompt_tokens":11`) != 1 {
		t.Errorf("who asks for the usage gets %s", got.body)
	}
	if r, p, c := h.chatted(ada); r != 2 || p != 22 || c != 10 {
		t.Errorf("counted %v requests, %v and %v tokens", r, p, c)
	}
}

// served is the harness on a real connection.
func served(t *testing.T, h *harness) string {
	t.Helper()
	s := httptest.NewServer(h.mux)
	t.Cleanup(s.Close)
	return s.URL
}

func post(t *testing.T, ctx context.Context, url, token, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", url+chatPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func TestEachPieceArrivesBeforeTheNextIsSent(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	model := llmtest.New(t, func(llmtest.Request) llmtest.Answer {
		return llmtest.Answer{Do: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, word := range []string{"one", "two", "three"} {
				llmtest.Chunk(w, llmtest.Delta(word), nil)
				select {
				case <-gate:
				case <-r.Context().Done():
					return
				}
			}
			fmt.Fprint(w, "data: [DONE]\n\n")
		}}
	})
	h := newHarness(t, withModel(model))
	ada := h.signUp("Ada")
	in := bufio.NewReader(post(t, t.Context(), served(t, h), ada.token, streamed).Body)
	for _, word := range []string{"one", "two", "three"} {
		line, err := in.ReadString('\n')
		if err != nil || !strings.Contains(line, word) {
			t.Fatalf("got %q, %v", line, err)
		}
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		gate <- struct{}{} // only now the next is sent
	}
	if rest, err := io.ReadAll(in); err != nil || string(rest) != "data: [DONE]\n\n" {
		t.Errorf("it ends in %q, %v", rest, err)
	}
}

func TestAClientThatLeavesEndsTheModelsWork(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"plain": hello, "streamed": streamed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var model *llmtest.Server
			model = llmtest.New(t, func(llmtest.Request) llmtest.Answer {
				return llmtest.Answer{Do: func(w http.ResponseWriter, r *http.Request) {
					if body == streamed {
						w.Header().Set("Content-Type", "text/event-stream")
						llmtest.Chunk(w, llmtest.Delta("one"), nil)
					}
					model.Never().Do(w, r)
				}}
			})
			h := newHarness(t, withModel(model))
			ada := h.signUp("Ada")
			url := served(t, h)
			ctx, leave := context.WithCancel(t.Context())
			if body == streamed {
				if _, err := bufio.NewReader(post(t, ctx, url, ada.token, body).Body).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			} else {
				go func() {
					req, err := http.NewRequestWithContext(ctx, "POST", url+chatPath, strings.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					req.Header.Set("Authorization", "Bearer "+ada.token)
					if res, err := http.DefaultClient.Do(req); err == nil {
						res.Body.Close()
					}
				}()
				eventually(t, "the model is asked", func() bool { return len(model.Asked()) == 1 })
			}
			leave()
			select {
			case <-model.Left():
			case <-time.After(time.Minute):
				t.Fatal("the model still works")
			}
			want := 0.0 // nothing came
			if body == streamed {
				want = 1
			}
			eventually(t, "it is counted", func() bool { r, _, _ := h.chatted(ada); return r == want })
		})
	}
}

func TestChatFailuresAreInItsOwnFormat(t *testing.T) {
	t.Parallel()
	status := 500
	model := llmtest.New(t, func(llmtest.Request) llmtest.Answer { return llmtest.Refusal(status) })
	h := newHarness(t, withModel(model))
	ada := h.signUp("Ada")
	fails := func(body string, want int, code string, changes ...change) {
		t.Helper()
		got := h.call("POST", chatPath, body, append([]change{bearer(ada.token)}, changes...)...).want(want)
		if got.at("error", "code") != code || got.text("error", "message") == "" || strings.Contains(got.body, "upstream") || strings.Contains(got.body, llmtest.Key) {
			t.Errorf("got %s, want %s", got.body, code)
		}
	}
	fails(hello, 503, "model_unavailable")
	fails(streamed, 503, "model_unavailable")
	status = 429
	fails(hello, 503, "model_busy")
	status = 400
	fails(hello, 400, "model_refused")
	asked := len(model.Asked())
	for _, bad := range []string{"", "[]", "null", "{", hello + "{}", `{"messages":[]}`, `{"messages":"hi"}`, `{"messages":[{}],"stream":"yes"}`, `{"messages":[{}],"messages":[{}]}`, `{"messages":[{}],"x":"` + "\xff" + `"}`, `{}`} {
		fails(bad, 400, "invalid")
	}
	fails(`{"messages":["`+strings.Repeat("x", 20<<20)+`"]}`, 413, "too_large")
	fails(hello, 415, "unsupported_type", header("Content-Type", "text/plain"))
	fails(hello, 401, "invalid_token", bearer("nonsense"))
	fails(hello, 403, "not_a_member", header("X-Team-Id", "team_other"))
	if len(model.Asked()) != asked {
		t.Error("the model was asked what is no question")
	}
	if r, _, _ := h.chatted(ada); r != 0 {
		t.Errorf("%v failures were counted", r)
	}
}

// A request counts once, so what it may ask for is bounded.
func TestChatRequestIsBounded(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t, greets)
	h := newHarness(t, withModel(model))
	ada := h.signUp("Ada")
	ask := func(field string) reply {
		return h.call("POST", chatPath, `{`+field+`,"messages":[{"role":"user","content":"hi"}]}`, bearer(ada.token))
	}
	for _, field := range []string{
		`"n":9`, `"n":1000000`, `"n":-1`, `"n":"2"`, `"n":1e9`, `"n":12345678901234567890`, `"best_of":9`, `"n":1,"n":9`, `"\u006e":9`,
		`"max_tokens":32769`, `"max_completion_tokens":1000000`, `"min_tokens":32769`, `"max_tokens":[]`,
	} {
		ask(field).want(400)
	}
	// Servers that compare names without regard to case would take these for the fields.
	for _, name := range []string{"N", "MAX_TOKENS", "Max_Tokens", "max_token\u017f", "max_to\u212Aens", `max_token\u017f`, "MODEL", "Best_Of", "Stream", "MESSAGES", "Stream_options"} {
		var plain string
		if err := json.Unmarshal([]byte(`"`+name+`"`), &plain); err != nil {
			t.Fatal(err)
		}
		if got := ask(`"` + name + `":1`).want(400); !strings.Contains(got.text("error", "message"), strconv.Quote(plain)) {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	if asked := model.Asked(); len(asked) > 0 {
		t.Errorf("the model was asked %s", asked[0].Raw)
	}
	for _, field := range []string{`"n":8`, `"n":null`, `"max_tokens":32768`, `"max_completion_tokens":1`} {
		ask(field).want(200)
	}
	if r, _, _ := h.chatted(ada); r != 4 {
		t.Errorf("counted %v requests", r)
	}
}

func TestAStreamThatBreaksSaysSo(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(http.ResponseWriter){
		"it ends too early":   func(http.ResponseWriter) {},
		"it reports an error": func(w http.ResponseWriter) { fmt.Fprint(w, "data: {\"error\":{\"message\":\"upstream secret\"}}\n\n") },
		"it talks nonsense":   func(w http.ResponseWriter) { fmt.Fprint(w, "data: upstream secret\n\n") },
		"it is cut off":       func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := llmtest.New(t, func(llmtest.Request) llmtest.Answer {
				return llmtest.Answer{Do: func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					llmtest.Chunk(w, llmtest.Delta("one"), nil)
					trouble(w)
				}}
			})
			h := newHarness(t, withModel(model))
			ada := h.signUp("Ada")
			got := h.call("POST", chatPath, streamed, bearer(ada.token)).want(200)
			if !strings.Contains(got.body, `"one"`) || !strings.Contains(got.body, `"code":"model_unavailable"`) || strings.Contains(got.body, "upstream") || strings.Contains(got.body, "[DONE]") {
				t.Errorf("the stream is %s", got.body)
			}
		})
	}
}

func TestAModelThatFallsSilentIsGivenUp(t *testing.T) {
	t.Parallel()
	var model *llmtest.Server
	model = llmtest.New(t, func(llmtest.Request) llmtest.Answer {
		return llmtest.Answer{Do: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			llmtest.Chunk(w, llmtest.Delta("one"), nil)
			model.Never().Do(w, r)
		}}
	})
	h := newHarness(t, withModel(model), func(o *httpapi.Options, _ *builtin.Options) {
		o.Chat.Model.(*llm.Client).IdleTime = 200 * time.Millisecond
	})
	ada := h.signUp("Ada")
	if got := h.call("POST", chatPath, streamed, bearer(ada.token)).want(200); !strings.Contains(got.body, "model_unavailable") {
		t.Errorf("the stream is %s", got.body)
	}
}

func TestFairUseAndTheSharedQuota(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t, greets)
	h := newHarness(t, withModel(model), func(o *httpapi.Options, _ *builtin.Options) { o.Chat.Limits = ai.ChatLimits{PerUser: 2, All: 3} })
	ada, bob := h.signUp("Ada"), h.signUp("Bob")
	over := func(who someone, code string) {
		t.Helper()
		got := h.call("POST", chatPath, hello, bearer(who.token)).want(429)
		var wait int
		if _, err := fmt.Sscan(got.header.Get("Retry-After"), &wait); err != nil || wait < 1 || wait > 24*60*60 || got.header.Get("X-Should-Retry") != "false" || got.text("error", "code") != code {
			t.Errorf("got %v %s, want %s", got.header, got.body, code)
		}
	}
	h.call("POST", chatPath, hello, bearer(ada.token)).want(200)
	h.call("POST", chatPath, streamed, bearer(ada.token)).want(200)
	over(ada, "fair_use_exhausted")
	h.call("POST", chatPath, hello, bearer(bob.token)).want(200)
	over(bob, "global_quota_exhausted")
	h.pass(24 * time.Hour)
	fresh := h.call("POST", "/auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`).want(200).text("data", "token")
	h.call("POST", chatPath, hello, bearer(fresh)).want(200)
}
