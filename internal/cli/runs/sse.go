package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/session"
)

// How a stream is kept alive.
const (
	firstPause = 3 * time.Second  // before connecting again, until the server names another
	silence    = 80 * time.Second // three missed heartbeats
	maxLost    = 40               // tries in a row without a frame that could be shown: some minutes
)

// ErrDone ends a stream that has said everything.
var ErrDone = errors.New("done")

// message is what a run's stream says, and where it stands.
type message struct {
	api.RunMessage
	logEnd int64 // bytes of log up to and including this message
}

// follow gives each message of a run's stream, over as many connections as it
// takes, until the run has ended.
func follow(s *session.Session, run string, each func(message) error) error {
	last, pause := "", firstPause
	for lost := 0; ; lost++ {
		err := stream(s, run, last, func(d time.Duration) { pause = d }, func(f line.Frame) error {
			err := deliver(s, f, each)
			if err == nil || errors.Is(err, ErrDone) {
				lost, last = 0, f.ID
			}
			return err
		})
		if errors.Is(err, ErrDone) {
			return nil
		}
		if s.Ctx.Err() != nil {
			return Left{run}
		}
		if refusal, final := errors.AsType[*client.Error](err); final && (refusal.Status < http.StatusInternalServerError || refusal.Status == http.StatusNotImplemented) {
			return s.Explain(err)
		}
		if lost >= maxLost {
			return fmt.Errorf("lost the connection to %s; the run continues there, see millrace runs view %s", s.Server, run)
		}
		if s.Sleep(s.Ctx, pause) != nil {
			return Left{run}
		}
	}
}

func deliver(s *session.Session, f line.Frame, each func(message) error) error {
	var m message
	if err := json.Unmarshal(f.Data, &m.RunMessage); err != nil {
		return fmt.Errorf("the server sent an event that isn't JSON: %w", err)
	}
	if _, end, ok := strings.Cut(f.ID, ":"); ok {
		m.logEnd, _ = strconv.ParseInt(end, 10, 64)
	}
	if err := each(m); err != nil {
		return err
	}
	if m.Type == "done" {
		return ErrDone
	}
	return nil
}

// stream is one connection. It is given up when nothing comes for longer than
// heartbeats take: a connection can die without a word.
func stream(s *session.Session, run, last string, retry func(time.Duration), each func(line.Frame) error) error {
	ctx, cancel := context.WithCancel(s.Ctx)
	defer cancel()
	params := &api.StreamRunParams{}
	if last != "" {
		params.LastEventID = &last
	}
	resp, err := s.API.StreamRun(ctx, run, params)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	idle := time.AfterFunc(silence, cancel)
	defer idle.Stop()
	return line.Frames(resp.Body, func() { idle.Reset(silence) }, retry, each)
}
