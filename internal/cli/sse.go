package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
)

// How a stream is kept alive.
const (
	firstPause = 3 * time.Second  // before connecting again, until the server names another
	silence    = 80 * time.Second // three missed heartbeats
	maxLost    = 40               // tries in a row without a frame: some minutes
	maxFrame   = 16 << 20
)

// frame is one event of a stream.
type frame struct {
	id   string
	data []byte
}

// frames reads Server-Sent Events until the stream ends. retry is told when
// the server asks for another pause, alive at every line.
func frames(in io.Reader, alive func(), retry func(time.Duration), each func(frame) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxFrame)
	lines.Split(scanLines)
	var f frame
	for lines.Scan() {
		alive()
		line := lines.Text()
		if line == "" {
			if len(f.data) > 0 {
				if err := each(frame{f.id, bytes.TrimSuffix(f.data, []byte("\n"))}); err != nil {
					return err
				}
			}
			f.data = nil
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name { // a comment has no name
		case "data":
			f.data = append(append(f.data, value...), '\n')
		case "id":
			f.id = value // holds until there is another
		case "retry":
			if ms, err := strconv.Atoi(value); err == nil && ms >= 0 {
				retry(time.Duration(ms) * time.Millisecond)
			}
		}
	}
	return lines.Err()
}

// scanLines splits at LF, CRLF or CR, as the format allows.
func scanLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0:
		return 0, nil, nil // what is not ended by a line's end was cut off
	case data[i] == '\n':
		return i + 1, data[:i], nil
	case i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i], nil
	case i+1 < len(data) || atEOF:
		return i + 1, data[:i], nil
	default:
		return 0, nil, nil
	}
}

// errDone ends a stream that has said everything.
var errDone = errors.New("done")

// message is what a run's stream says, and where it stands.
type message struct {
	api.RunMessage
	logEnd int64 // bytes of log up to and including this message
}

// follow gives each message of a run's stream, over as many connections as it
// takes, until the run has ended.
func (s *session) follow(run string, each func(message) error) error {
	last, pause := "", firstPause
	for lost := 0; ; lost++ {
		err := s.stream(run, last, func(d time.Duration) { pause = d }, func(f frame) error {
			lost, last = 0, f.id
			return s.deliver(f, each)
		})
		if errors.Is(err, errDone) {
			return nil
		}
		if s.Ctx.Err() != nil {
			return Left{run}
		}
		if refusal, final := errors.AsType[*client.Error](err); final && (refusal.Status < http.StatusInternalServerError || refusal.Status == http.StatusNotImplemented) {
			return s.explain(err)
		}
		if lost >= maxLost {
			return fmt.Errorf("lost contact with %s; the run goes on there, see millrace runs view %s", s.server, run)
		}
		if s.Sleep(s.Ctx, pause) != nil {
			return Left{run}
		}
	}
}

func (s *session) deliver(f frame, each func(message) error) error {
	var m message
	if err := json.Unmarshal(f.data, &m.RunMessage); err != nil {
		return fmt.Errorf("the server sent a frame that is no JSON: %w", err)
	}
	if _, end, ok := strings.Cut(f.id, ":"); ok {
		m.logEnd, _ = strconv.ParseInt(end, 10, 64)
	}
	if err := each(m); err != nil {
		return err
	}
	if m.Type == "done" {
		return errDone
	}
	return nil
}

// stream is one connection. It is given up when nothing comes for longer than
// heartbeats take: a connection can die without a word.
func (s *session) stream(run, last string, retry func(time.Duration), each func(frame) error) error {
	ctx, cancel := context.WithCancel(s.Ctx)
	defer cancel()
	params := &api.StreamRunParams{}
	if last != "" {
		params.LastEventID = &last
	}
	resp, err := s.api.StreamRun(ctx, run, params)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	idle := time.AfterFunc(silence, cancel)
	defer idle.Stop()
	return frames(resp.Body, func() { idle.Reset(silence) }, retry, each)
}
