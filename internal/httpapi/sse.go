package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// Feed tells when a run has moved.
type Feed interface {
	Watch(id ids.Run) (moved <-chan struct{}, stop func())
}

// The rhythm of a stream.
const (
	heartbeat    = 25 * time.Second
	framePause   = 250 * time.Millisecond // at most four frames a second
	presenceLook = 2 * time.Second        // at whether the caller may still watch, and for what other servers did
	frameTime    = 20 * time.Second       // in which a client must take a frame
)

// streamRun follows a run until it ends, or until the caller may not watch any
// more.
func (a *API) streamRun(x *exchange) (answer, error) {
	d, err := a.Runs.Detailed(x.ctx(), x.caller, x.runID())
	if err != nil {
		return answer{}, err
	}
	s := &stream{x: x, seq: d.Seq, log: d.Log.Offset + int64(len(d.Log.Text))}
	s.honour(x.r.Header.Get("Last-Event-ID"))
	return answer{stream: func(w http.ResponseWriter, r *http.Request) { s.serve(w, d) }}, nil
}

// stream is one client of one run, and how far it has been told.
type stream struct {
	x   *exchange
	out *http.ResponseController
	w   http.ResponseWriter
	seq int64
	log int64
}

// honour goes on where an earlier stream of this client ended.
func (s *stream) honour(last string) {
	seq, log, _ := strings.Cut(last, ":")
	n, seqErr := strconv.ParseInt(seq, 10, 64)
	o, logErr := strconv.ParseInt(log, 10, 64)
	if seqErr == nil && logErr == nil && n >= 0 && o >= 0 && n <= s.seq && o <= s.log {
		s.seq, s.log = n, o
	}
}

func (s *stream) serve(w http.ResponseWriter, d runs.Detailed) {
	s.w, s.out = w, http.NewResponseController(w)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	// Subscribed before the first look, so that nothing falls in between.
	moved, stop := s.x.api.Feed.Watch(d.ID)
	defer stop()
	if s.line("retry: 3000\n\n") != nil || s.frame(map[string]any{"type": "connected", "runId": d.ID}) != nil || s.snapshot(d) != nil {
		return
	}
	s.follow(s.x.ctx(), moved, d.Run)
}

// follow sends what is new until the run has ended.
func (s *stream) follow(ctx context.Context, moved <-chan struct{}, r runs.Run) {
	beat, look := time.NewTicker(heartbeat), time.NewTicker(presenceLook)
	defer beat.Stop()
	defer look.Stop()
	for {
		if s.progress(ctx, &r) != nil {
			return
		}
		if r.Status.Terminal() {
			_ = s.frame(map[string]any{"type": "done", "runId": r.ID, "status": r.Status})
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			if s.line(": heartbeat\n\n") != nil {
				return
			}
		case <-look.C:
			if !s.allowed(ctx) {
				return
			}
		case <-moved:
			pause := time.NewTimer(framePause)
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			pause.Stop()
		}
	}
}

// allowed asks again who is watching: signing out, losing the membership or
// the role ends a stream; a token that has run out does not.
func (s *stream) allowed(ctx context.Context) bool {
	p, err := s.x.api.Accounts.Present(ctx, s.x.presence.Session)
	if err != nil {
		return false
	}
	m, err := p.In(s.x.caller.Team)
	return err == nil && m.Role.May(s.x.rt.may)
}

func (s *stream) snapshot(d runs.Detailed) error {
	a := s.x.api
	return s.frame(map[string]any{
		"type": "snapshot", "runId": d.ID, "status": d.Status, "logs": logText(d.Log.Text), "durationMs": a.duration(d.Run),
		"creditsUsed": a.creditsUsed(d.Run).Float(), "errorMessage": errorMessage(d.Run), "outputLocation": outputLocation(d.Run),
		"progressPercent": d.Progress, "completedNodes": d.DoneNodes, "totalNodes": d.TotalNodes, "seq": d.Seq,
	})
}

// progress sends what has happened since the client was last told.
func (s *stream) progress(ctx context.Context, r *runs.Run) error {
	a := s.x.api
	now, err := a.Runs.Run(ctx, s.x.caller, r.ID)
	if err != nil {
		return err
	}
	*r = now
	events, _, err := a.Runs.Events(ctx, s.x.caller, r.ID, s.seq, usageMost)
	if err != nil {
		return err
	}
	page, err := a.Runs.Log(ctx, s.x.caller, r.ID, "", 0, s.log, logDefault)
	if err != nil || (len(events) == 0 && len(page.Text) == 0) {
		return err
	}
	frame := map[string]any{
		"type": "progress", "runId": r.ID, "status": r.Status, "progressPercent": r.Progress, "completedNodes": r.DoneNodes, "totalNodes": r.TotalNodes,
		"durationMs": a.duration(*r), "creditsUsed": a.creditsUsed(*r).Float(), "logs": logText(page.Text), "logOffset": s.log,
	}
	if n := len(events); n > 0 {
		last := events[n-1]
		frame["currentStep"] = last.Message
		if last.Node != "" {
			frame["nodeId"], frame["nodeName"], frame["attempt"] = last.Node, last.NodeName, last.Attempt
			frame["nodeStatus"] = strings.TrimPrefix(string(last.Type), "node.")
		}
		s.seq = last.Seq
	}
	s.log += int64(len(page.Text))
	frame["seq"] = s.seq
	return s.frame(frame)
}

// frame sends one message; a client that does not take it in time is gone.
func (s *stream) frame(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.line(fmt.Sprintf("id: %d:%d\ndata: %s\n\n", s.seq, s.log, text))
}

func (s *stream) line(text string) error {
	_ = s.out.SetWriteDeadline(s.x.api.Now().Add(frameTime))
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.out.Flush()
}
