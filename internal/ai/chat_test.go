package ai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/llm"
	"github.com/millrace/millrace/internal/llm/llmtest"
	"github.com/millrace/millrace/internal/store/storetest"
)

// chatting lets the team talk to a model that answers so.
func (b *bench) chatting(answer func(llmtest.Request) llmtest.Answer) (*ai.Chat, *llmtest.Server) {
	server := llmtest.New(b.t, answer)
	quiet := slog.New(slog.DiscardHandler)
	model := llm.New(llm.Options{BaseURL: server.URL, Model: llmtest.Name, Key: llmtest.Key, Log: quiet})
	return &ai.Chat{Store: b.db, Model: model, Limits: ai.ChatLimits{PerUser: 3, All: 4}, Log: quiet, Now: b.clock.Now}, server
}

func greets(llmtest.Request) llmtest.Answer { return llmtest.Answer{} }

var (
	hello   = ai.ChatRequest{Fields: []ai.ChatField{{Name: "messages", Value: []byte(`[{"role":"user","content":"hi"}]`)}}}
	streams = ai.ChatRequest{Stream: true, Fields: append([]ai.ChatField{{Name: "stream", Value: []byte("true")}}, hello.Fields...)}
)

// heard reads an answer to its end.
func heard(t *testing.T, talk *ai.Conversation) string {
	t.Helper()
	var all strings.Builder
	for {
		piece, err := talk.Next()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		all.Write(piece)
	}
}

// used is what the team has used, of all days.
func (b *bench) used() ai.Day {
	b.t.Helper()
	list, err := b.Days(b.t.Context(), b.ada, time.Time{})
	if err != nil || len(list) > 1 {
		b.t.Fatalf("%+v, %v", list, err)
	}
	if len(list) == 0 {
		return ai.Day{}
	}
	return list[0]
}

func TestWhoMayChatAndHowOften(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		chat, server := b.chatting(greets)
		guest := b.ada
		guest.Role = access.GuestEditor
		_, err := chat.Ask(t.Context(), guest, hello)
		storetest.Refused(t, "a guest", err, fault.KindForbidden)
		ask := func(as access.Caller, left int, code string) {
			t.Helper()
			talk, err := chat.Ask(t.Context(), as, hello)
			if code != "" {
				e, ok := errors.AsType[*fault.Error](err)
				if !ok || e.Kind != fault.KindLimited || e.Code != code || e.RetryAfter <= 11*time.Hour || e.RetryAfter > 12*time.Hour {
					t.Errorf("%v, want %s", err, code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(heard(t, talk), "Good day") || talk.Left != left || talk.Stream() {
				t.Errorf("%d are left, want %d", talk.Left, left)
			}
			talk.Close(t.Context())
		}
		for left := range 3 {
			ask(b.ada, 2-left, "")
		}
		ask(b.ada, 0, "fair_use_exhausted")
		eve := storetest.Owner(t, b.db, "eve")
		ask(eve, 2, "")
		ask(eve, 0, "global_quota_exhausted")
		if n := len(server.Asked()); n != 4 {
			t.Errorf("the model was asked %d times", n)
		}
		if d := b.used(); d.Requests != 3 || d.PromptTokens != 33 || d.CompletionTokens != 15 {
			t.Errorf("the team has used %+v", d)
		}
		b.clock.Pass(12 * time.Hour)
		ask(b.ada, 2, "")
		chat.Model = nil
		_, err = chat.Ask(t.Context(), b.ada, hello)
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "model_unavailable" {
			t.Error(err)
		}
	})
}

// What the model does not answer is given back, except to a client that left.
func TestAnAnswerThatNeverCameCostsNothing(t *testing.T) {
	broken := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": nothing comes\n")
	}
	once := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		llmtest.Chunk(w, llmtest.Delta("Good"), nil)
	}
	for name, tt := range map[string]struct {
		answer llmtest.Answer
		stream bool
		left   int // after it
		counts int
	}{
		"it refuses":                {llmtest.Refusal(500), false, 3, 0},
		"it answers with an error":  {llmtest.Answer{Do: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"error":{"message":"no"}}`) }}, false, 3, 0},
		"a stream of nothing":       {llmtest.Answer{Do: broken}, true, 3, 0},
		"a stream that breaks off":  {llmtest.Answer{Do: once}, true, 2, 1},
		"a stream that is answered": {llmtest.Answer{}, true, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bench) {
				chat, _ := b.chatting(func(llmtest.Request) llmtest.Answer { return tt.answer })
				request := hello
				if tt.stream {
					request = streams
				}
				talk, err := chat.Ask(t.Context(), b.ada, request)
				if tt.stream != (err == nil) {
					t.Fatal(err)
				}
				if err == nil {
					for err == nil {
						_, err = talk.Next()
					}
					talk.Close(t.Context())
				}
				if got := b.used().Requests; got != tt.counts {
					t.Errorf("%d are counted", got)
				}
				used, err := b.db.TakeChat(t.Context(), b.ada.User, chat.Limits, ai.DayOf(b.clock.Now()))
				if err != nil || 3-used+1 != tt.left {
					t.Errorf("%d are left, want %d, %v", 3-used+1, tt.left, err)
				}
			})
		})
	}
}

func TestWhoLeavesHasHadTheirRequest(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		asked := make(chan struct{})
		chat, _ := b.chatting(func(llmtest.Request) llmtest.Answer {
			return llmtest.Answer{Do: func(_ http.ResponseWriter, r *http.Request) {
				close(asked)
				<-r.Context().Done()
			}}
		})
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			<-asked
			leave()
		}()
		if _, err := chat.Ask(ctx, b.ada, hello); err == nil {
			t.Fatal("it was answered")
		}
		if used, err := b.db.TakeChat(t.Context(), b.ada.User, chat.Limits, ai.DayOf(b.clock.Now())); err != nil || used != 2 {
			t.Errorf("%d are used, %v", used, err)
		}
		// One that has heard something is counted, and after midnight on the day it asked.
		chat, _ = b.chatting(greets)
		ctx, leave = context.WithCancel(t.Context())
		talk, err := chat.Ask(ctx, b.ada, hello)
		if err != nil {
			t.Fatal(err)
		}
		heard(t, talk)
		leave()
		day := ai.DayOf(b.clock.Now())
		b.clock.Pass(24 * time.Hour)
		talk.Close(ctx)
		if d := b.used(); d.Requests != 1 || !d.Date.Equal(day) {
			t.Errorf("%+v", d)
		}
	})
}
