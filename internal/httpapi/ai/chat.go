package ai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/events"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// CompleteChat passes a conversation on to the hosted model.
func (a *API) CompleteChat(x *kernel.Exchange) (kernel.Answer, error) {
	if err := a.Chat.Ready(); err != nil {
		return kernel.Answer{}, err
	}
	req, err := chatRequest(x.Body)
	if err != nil {
		return kernel.Answer{}, err
	}
	conn := http.NewResponseController(x.Writer)
	_ = conn.SetReadDeadline(time.Time{})  // past it, the server would take the client for gone
	_ = conn.SetWriteDeadline(time.Time{}) // the model has limits of its own
	talk, err := a.Chat.Ask(x.Context(), x.Caller, req)
	if err != nil {
		if fault.Is(err, fault.KindLimited) {
			a.chatStanding(x, 0)
			x.Writer.Header().Set("x-should-retry", "false") // or the usual clients try again and again
		}
		return kernel.Answer{}, err
	}
	a.chatStanding(x, talk.Left)
	if talk.Stream() {
		return kernel.Answer{Stream: func(w http.ResponseWriter, _ *http.Request) { streamChat(x, w, talk) }}, nil
	}
	defer talk.Close(x.Context())
	whole, err := talk.Next()
	return kernel.Answer{Raw: whole, Media: kernel.JSONMedia}, err
}

func (a *API) chatStanding(x *kernel.Exchange, left int) {
	now := a.Now()
	x.RateLimit("chat", limits.Window{Most: a.Chat.Limits.PerUser, Per: 24 * time.Hour}, limits.Result{Remaining: left, Reset: ai.Tomorrow(now).Sub(now)})
}

// streamChat passes each event on as soon as it comes. A client that leaves
// ends the request, and that ends the model's answer.
func streamChat(x *kernel.Exchange, w http.ResponseWriter, talk *ai.Conversation) {
	defer talk.Close(x.Context())
	f := events.Open(w)
	for {
		event, err := talk.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			_ = f.Line("data: " + chatFailure(x, err) + "\n\n")
			return
		}
		if f.Write(event) != nil {
			return
		}
	}
}

// chatFailure is a failure in the middle of a stream.
func chatFailure(x *kernel.Exchange, err error) string {
	e, foreseen := errors.AsType[*fault.Error](err)
	if !foreseen {
		e = fault.Unavailable("the answer was cut off; try again").WithCode("model_unavailable")
	}
	text, err := json.Marshal(x.Failure(e))
	if err != nil { // a failure holds nothing that cannot be encoded
		panic(err)
	}
	return string(text)
}

// chatRequest takes a request apart, field by field, and looks only at what we
// must know; the rest stays as it is, byte for byte.
func chatRequest(body []byte) (req ai.ChatRequest, err error) {
	if req.Fields, err = chatFields(body); err != nil {
		return req, fault.Invalid("the body must be one JSON object: %s", kernel.Problem(err).Message).WithCause(err)
	}
	var messages []json.RawMessage
	for _, f := range req.Fields {
		switch f.Name {
		case "messages":
			err = json.Unmarshal(f.Value, &messages)
		case "stream":
			err = json.Unmarshal(f.Value, &req.Stream)
		case "stream_options":
			var options struct {
				IncludeUsage bool `json:"include_usage"`
			}
			err = json.Unmarshal(f.Value, &options)
			req.WantsUsage = options.IncludeUsage
		}
		if err != nil {
			return req, fault.Invalid("%s has the wrong type", f.Name).WithCause(err)
		}
	}
	if len(messages) == 0 {
		return req, fault.Invalid("messages must be a list of at least one message")
	}
	return req, nil
}

func chatFields(body []byte) ([]ai.ChatField, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, errors.Join(err, errors.New("no object"))
	}
	var fields []ai.ChatField
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		fields = append(fields, ai.ChatField{Name: key, Value: slices.Clone(value)})
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, errors.New("more than one value"))
	}
	return fields, nil
}
