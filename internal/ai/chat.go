package ai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// ChatLimits are how many chat requests a day may make.
type ChatLimits struct {
	PerUser, All int
}

// ChatUse is what a request took.
type ChatUse struct {
	PromptTokens, CompletionTokens int64
}

// ChatRequest is a request in the chat-completions format, field by field as
// it came.
type ChatRequest struct {
	Fields     []ChatField
	Stream     bool
	WantsUsage bool // the client asked for the usage at the end of the stream
}

// ChatField is one field and its JSON.
type ChatField struct {
	Name  string
	Value []byte
}

// Bounds of what one request may ask for, since each is counted once.
const (
	maxChoices      = 8
	maxAnswerTokens = 32768
)

// chatBounds are the most that the fields may ask for which have a bound.
var chatBounds = map[string]int64{
	"n": maxChoices, "best_of": maxChoices, "max_tokens": maxAnswerTokens, "max_completion_tokens": maxAnswerTokens, "min_tokens": maxAnswerTokens,
}

// chatNames are the fields that are checked or replaced here.
var chatNames = append(slices.Sorted(maps.Keys(chatBounds)), "model", "messages", "stream", "stream_options")

// check refuses a request that asks for more than one may.
func (r ChatRequest) check() error {
	for _, f := range r.Fields {
		// Some servers read a field by its name without regard to case. To them this one
		// would be a second field of that name, which nobody has checked.
		like := func(name string) bool { return name != f.Name && strings.EqualFold(name, f.Name) }
		if i := slices.IndexFunc(chatNames, like); i >= 0 {
			return fault.Invalid("there is no field %q: its name is %s", f.Name, chatNames[i])
		}
		most := chatBounds[f.Name]
		if most == 0 {
			continue
		}
		var n *int64 // nil: as if it were absent
		if err := json.Unmarshal(f.Value, &n); err != nil || n != nil && (*n < 0 || *n > most) {
			return fault.Invalid("%s must be a whole number of at most %d", f.Name, most)
		}
	}
	return nil
}

// ChatModel is the hosted model.
type ChatModel interface {
	Complete(ctx context.Context, r ChatRequest) (ChatReply, error)
}

// ChatReply is what the model answers.
type ChatReply interface {
	Stream() bool
	// Next is the next piece: the whole answer, or one event of a stream. After
	// the last it is io.EOF; every other failure is a fault.
	Next() ([]byte, error)
	// Use is what the request took, as far as it is known by now.
	Use() ChatUse
	Close() error
}

// ChatStore counts.
type ChatStore interface {
	// TakeChat counts a request of a user, within the limits, and says how many
	// they have made by now. Beyond the limits it is ErrFairUse or ErrAllUsed,
	// and nothing is counted.
	TakeChat(ctx context.Context, user ids.User, l ChatLimits, day time.Time) (used int, err error)
	ReturnChat(ctx context.Context, user ids.User, day time.Time) error
	// CountChat adds a request that was answered to what the team used.
	CountChat(ctx context.Context, team ids.Team, u ChatUse, day time.Time) error
}

// Why a request is not counted.
var (
	ErrFairUse = errors.New("the user's requests are used up")
	ErrAllUsed = errors.New("everybody's requests are used up")
)

// Chat lets people talk to the hosted model.
type Chat struct {
	Store  ChatStore
	Model  ChatModel // nil: none is configured
	Limits ChatLimits
	Log    *slog.Logger
	Now    func() time.Time
}

// Ready is nil, or why there is nobody to talk to.
func (c *Chat) Ready() error {
	if c.Model == nil {
		return fault.Unavailable("no model is configured on this server: its operator sets --ai-base-url and --ai-model").WithCode("model_unavailable")
	}
	return nil
}

// Ask counts a request and sends it. One that the model does not answer is
// given back, but not to a client that left: the model has worked for it.
func (c *Chat) Ask(ctx context.Context, caller access.Caller, r ChatRequest) (*Conversation, error) {
	if err := caller.Must(access.Chat); err != nil {
		return nil, err
	}
	if err := c.Ready(); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	day := DayOf(c.Now())
	used, err := c.take(ctx, caller.User, day)
	if err != nil {
		return nil, err
	}
	reply, err := c.Model.Complete(ctx, r)
	talk := &Conversation{Left: c.Limits.PerUser - used, chat: c, caller: caller, day: day, reply: reply}
	if err != nil {
		talk.giveBack(ctx)
		return nil, err
	}
	return talk, nil
}

func (c *Chat) take(ctx context.Context, user ids.User, day time.Time) (int, error) {
	wait := Tomorrow(day).Sub(c.Now())
	used, err := c.Store.TakeChat(ctx, user, c.Limits, day)
	switch {
	case errors.Is(err, ErrFairUse):
		err = fault.Limited(wait, "you've reached your daily limit of %d chat requests (--chat-per-day); it resets at 00:00 UTC", c.Limits.PerUser).WithCode("fair_use_exhausted")
	case errors.Is(err, ErrAllUsed):
		err = fault.Limited(wait, "this server's daily chat quota is used up (--chat-daily-quota); it resets at 00:00 UTC").WithCode("global_quota_exhausted")
	}
	return used, err
}

// Conversation is one answer on its way.
type Conversation struct {
	Left      int // requests that the user may still make today
	chat      *Chat
	caller    access.Caller
	day       time.Time
	reply     ChatReply
	delivered bool
}

// Stream reports whether the answer comes in events.
func (t *Conversation) Stream() bool { return t.reply.Stream() }

// Next is the next piece of the answer; io.EOF after the last.
func (t *Conversation) Next() ([]byte, error) {
	piece, err := t.reply.Next()
	t.delivered = t.delivered || err == nil || errors.Is(err, io.EOF)
	return piece, err
}

// Close ends it and counts it, or gives it back when nothing came. A client
// that has left is counted all the same.
func (t *Conversation) Close(ctx context.Context) {
	if err := t.reply.Close(); err != nil {
		t.chat.Log.DebugContext(ctx, "the model's answer did not close", slog.Any("error", err))
	}
	if !t.delivered {
		t.giveBack(ctx)
		return
	}
	ctx = context.WithoutCancel(ctx)
	t.log(ctx, t.chat.Store.CountChat(ctx, t.caller.Team, t.reply.Use(), t.day))
}

func (t *Conversation) giveBack(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	t.log(ctx, t.chat.Store.ReturnChat(ctx, t.caller.User, t.day))
}

func (t *Conversation) log(ctx context.Context, err error) {
	if err != nil {
		t.chat.Log.ErrorContext(ctx, "cannot count a chat request", slog.Any("error", err))
	}
}
