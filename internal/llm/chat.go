package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/ai"
)

var _ ai.ChatModel = (*Client)(nil)

const (
	largestAnswer = 32 << 20 // bytes
	largestEvent  = 8 << 20
)

// Complete passes a conversation on and returns the answer as it comes.
func (c *Client) Complete(ctx context.Context, r ai.ChatRequest) (ai.ChatReply, error) {
	body, err := c.passedOn(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	res, err := c.send(ctx, body)
	if err != nil {
		cancel()
		return nil, err
	}
	watched := &watched{body: res.Body, timer: time.AfterFunc(c.IdleTime, cancel), idle: c.IdleTime}
	rep := &reply{res: res, in: bufio.NewReader(watched), watch: watched, cancel: cancel, wantsUsage: r.WantsUsage}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if rep.stream = media == "text/event-stream"; rep.stream {
		return rep, nil
	}
	// Read at once, so that a bad answer is still a plain failure.
	return rep, rep.readWhole()
}

// passedOn is the request as the model's server gets it: every field as it
// came, but for the model, and for the usage at the end of a stream.
func (c *Client) passedOn(r ai.ChatRequest) ([]byte, error) {
	model, err := json.Marshal(c.Model)
	if err != nil {
		return nil, err
	}
	fields := []ai.ChatField{{Name: "model", Value: model}}
	options := []byte(`{"include_usage":true}`)
	for _, f := range r.Fields {
		switch {
		case f.Name == "model":
		case f.Name == "stream_options" && r.Stream:
			if options, err = withUsage(f.Value); err != nil {
				return nil, err
			}
		default:
			fields = append(fields, f)
		}
	}
	if r.Stream {
		fields = append(fields, ai.ChatField{Name: "stream_options", Value: options})
	}
	return object(fields)
}

// withUsage adds to the client's own options.
func withUsage(value []byte) ([]byte, error) {
	var options map[string]json.RawMessage
	if err := json.Unmarshal(value, &options); err != nil {
		return value, nil // the server says what is wrong with it
	}
	if options == nil {
		options = map[string]json.RawMessage{}
	}
	maps.DeleteFunc(options, func(name string, _ json.RawMessage) bool { return strings.EqualFold(name, "include_usage") })
	options["include_usage"] = json.RawMessage("true")
	return json.Marshal(options)
}

func object(fields []ai.ChatField) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(f.Value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// watched hangs up on a server that has nothing more to say.
type watched struct {
	body  io.Reader
	timer *time.Timer
	idle  time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	w.timer.Reset(w.idle)
	return n, err
}

// reply is one answer on its way.
type reply struct {
	res        *http.Response
	in         *bufio.Reader
	watch      *watched
	cancel     func()
	stream     bool
	wantsUsage bool

	whole    []byte
	finished bool // a reason to stop was given
	done     bool
	use      ai.ChatUse
}

func (r *reply) Stream() bool { return r.stream }

func (r *reply) Use() ai.ChatUse { return r.use }

func (r *reply) Close() error {
	r.watch.timer.Stop()
	r.cancel()
	return r.res.Body.Close()
}

func (r *reply) readWhole() error {
	body, err := io.ReadAll(io.LimitReader(r.in, largestAnswer+1))
	if err == nil && len(body) > largestAnswer {
		err = errors.New("too large")
	}
	if err != nil {
		return errors.Join(brokenOff(err), r.Close())
	}
	if err := r.look(body); err != nil {
		return errors.Join(err, r.Close())
	}
	r.whole = body
	return nil
}

// chunk is what we look at in an answer or an event.
type chunk struct {
	Choices []struct {
		FinishReason *string `json:"finish_reason"`
	}
	Usage *usage
	Error json.RawMessage
}

func (c chunk) onlyUsage() bool { return c.Usage != nil && len(c.Choices) == 0 }

// look notes the usage, and takes an error for what it is.
func (r *reply) look(data []byte) error {
	var c chunk
	if err := unmarshal(data, &c); err != nil {
		return err
	}
	return r.note(c)
}

func (r *reply) note(c chunk) error {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return unavailable("the model stopped with an error; try again")
	}
	if c.Usage != nil {
		r.use = ai.ChatUse{PromptTokens: max(0, c.Usage.PromptTokens), CompletionTokens: max(0, c.Usage.CompletionTokens)}
	}
	for _, choice := range c.Choices {
		r.finished = r.finished || choice.FinishReason != nil
	}
	return nil
}

// Next is the whole answer, or the next event exactly as it came. The usage
// that we asked for ourselves is kept back.
func (r *reply) Next() ([]byte, error) {
	if !r.stream {
		whole := r.whole
		if r.whole = nil; whole == nil {
			return nil, io.EOF
		}
		return whole, nil
	}
	for !r.done {
		raw, data, err := r.event()
		if err != nil {
			if errors.Is(err, io.EOF) {
				if r.finished { // some servers leave out the end mark
					return nil, io.EOF
				}
				err = io.ErrUnexpectedEOF
			}
			return nil, brokenOff(err)
		}
		if len(data) == 0 {
			return raw, nil // a comment, to keep the line open
		}
		if r.done = string(data) == "[DONE]"; r.done {
			return raw, nil
		}
		var c chunk
		if err := unmarshal(data, &c); err != nil {
			return nil, err
		}
		if err := r.note(c); err != nil {
			return nil, err
		}
		if c.onlyUsage() && !r.wantsUsage {
			continue
		}
		return raw, nil
	}
	return nil, io.EOF
}

// event reads up to the empty line that ends an event.
func (r *reply) event() (raw, data []byte, err error) {
	for {
		before := len(raw)
		if raw, err = r.line(raw); err != nil {
			return nil, nil, err
		}
		line := bytes.TrimRight(raw[before:], "\r\n")
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
		}
		if len(line) == 0 {
			return raw, data, nil
		}
	}
}

// line adds the next line to an event, which is never larger than it may be,
// even where a line has no end.
func (r *reply) line(event []byte) ([]byte, error) {
	for {
		piece, err := r.in.ReadSlice('\n')
		if event = append(event, piece...); len(event) > largestEvent {
			return nil, errors.New("an event is too large")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return event, err
		}
	}
}
