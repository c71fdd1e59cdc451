package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
)

// broadcast is a run's stream that breaks off, and its events and log.
type broadcast struct {
	mu          sync.Mutex
	last        []string // Last-Event-ID of each connection
	connections []func(w io.Writer)
	log         string
	events      int
}

func (b *broadcast) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/stream"):
		b.last = append(b.last, r.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		if n := len(b.last); n <= len(b.connections) {
			b.connections[n-1](w)
		}
	case strings.HasSuffix(r.URL.Path, "/events"):
		var after int
		fmt.Sscan(r.FormValue("after_seq"), &after)
		var list []string
		for n := after + 1; n <= b.events; n++ {
			list = append(list, fmt.Sprintf(`{"seq":%d,"type":"node.started","at":"2026-03-02T09:15:00.000Z","message":"event %d","data":{}}`, n, n))
		}
		clitest.Answer(w, 200, fmt.Sprintf(`{"success":true,"data":{"events":[%s],"lastSeq":%d,"hasMore":false}}`, strings.Join(list, ","), b.events))
	case strings.HasSuffix(r.URL.Path, "/logs"):
		var offset int
		fmt.Sscan(r.FormValue("offset"), &offset)
		clitest.Answer(w, 200, fmt.Sprintf(`{"success":true,"data":{"text":%q,"offset":%d,"nextOffset":%d,"size":%d,"eof":true}}`, b.log[offset:], offset, len(b.log), len(b.log)))
	default:
		clitest.Answer(w, 200, `{"id":"run_1","status":"completed","creditsUsed":0,"nodes":[{"id":"a"}]}`)
	}
}

// send moves the run on, then says so.
func (b *broadcast) send(w io.Writer, kind string, events int, text string) {
	offset := len(b.log)
	b.events, b.log = events, b.log+text
	fmt.Fprintf(w, "id: %d:%d\ndata: {\"type\":%q,\"runId\":\"run_1\",\"status\":\"running\",\"seq\":%d,\"logOffset\":%d,\"logs\":%q,\"progressPercent\":10}\n\n",
		b.events, len(b.log), kind, b.events, offset, text)
}

func TestABrokenStreamLeavesNoGapAndSaysNothingTwice(t *testing.T) {
	t.Parallel()
	b := &broadcast{}
	b.connections = []func(io.Writer){
		func(w io.Writer) {
			fmt.Fprint(w, "retry: 50\n\n")
			b.send(w, "snapshot", 1, "one\n")
			b.send(w, "progress", 2, "two\n")
			fmt.Fprint(w, "id: 9:99\ndata: {\"type\":\"prog") // the wire is cut
		},
		func(w io.Writer) {}, // the server is restarting
		func(w io.Writer) {
			b.events, b.log = 3, b.log+"missed\n" // meanwhile
			b.send(w, "snapshot", 3, "")
			b.send(w, "progress", 4, "last\n")
			fmt.Fprint(w, "id: 4:22\ndata: {\"type\":\"done\",\"runId\":\"run_1\",\"status\":\"completed\"}\n\n")
		},
	}
	d := clitest.New(t)
	s := d.Session(t, clitest.Serve(t, b.ServeHTTP))
	if err := watch(s, "run_1", true); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if want := []string{"", "2:8", "2:8"}; !slices.Equal(b.last, want) {
		t.Errorf("connected after %q, want %q", b.last, want)
	}
	if want := []time.Duration{50 * time.Millisecond, 50 * time.Millisecond}; !slices.Equal(d.Slept, want) {
		t.Errorf("paused %v", d.Slept)
	}
	var events, log string
	for line := range strings.Lines(d.Printed.String()) {
		if _, event, ok := strings.Cut(line, "  event "); ok {
			events += event
		} else {
			log += line
		}
	}
	if events != "1\n2\n3\n4\n" || log != "one\ntwo\nmissed\nlast\ncompleted run_1  –  0 credits\n" {
		t.Errorf("events %q, log %q", events, log)
	}
}

func TestWhyARunWaitsIsSaidOnceForEachReason(t *testing.T) {
	t.Parallel()
	b := &broadcast{}
	turn := `{"reason":"turn","message":"2 runs are before it.","ahead":2}`
	waits := func(w io.Writer, kind, status, waiting string) {
		fmt.Fprintf(w, "id: 0:0\ndata: {\"type\":%q,\"runId\":\"run_1\",\"status\":%q,\"seq\":0,\"waiting\":%s}\n\n", kind, status, waiting)
	}
	b.connections = []func(io.Writer){
		func(w io.Writer) {
			waits(w, "snapshot", "queued", turn)
			waits(w, "progress", "queued", turn)
		},
		func(w io.Writer) {
			waits(w, "snapshot", "queued", turn) // after the connection broke
			waits(w, "progress", "queued", `{"reason":"disk_low","message":"The disk is full.","ahead":1}`)
			waits(w, "progress", "running", "null")
			waits(w, "progress", "queued", turn) // its worker was lost
			waits(w, "done", "completed", "null")
		},
	}
	d := clitest.New(t)
	if err := watch(d.Session(t, clitest.Serve(t, b.ServeHTTP)), "run_1", false); err != nil {
		t.Fatal(err)
	}
	var said []string
	for line := range strings.Lines(d.Printed.String()) {
		if _, why, ok := strings.Cut(line, "  Waiting: "); ok {
			said = append(said, strings.TrimSpace(why))
		}
	}
	if want := []string{"2 runs are before it.", "The disk is full. 1 run is before it.", "2 runs are before it."}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

func TestWatchingEnds(t *testing.T) {
	t.Parallel()
	t.Run("when the server refuses", func(t *testing.T) {
		t.Parallel()
		d := clitest.New(t)
		s := d.Session(t, clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) { clitest.Answer(w, 404, "") }))
		if err := watch(s, "run_1", false); err == nil || len(d.Slept) > 0 {
			t.Errorf("%v after %v", err, d.Slept)
		}
	})
	t.Run("when the server stays away", func(t *testing.T) {
		t.Parallel()
		d := clitest.New(t)
		s := d.Session(t, clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Type", "text/event-stream") }))
		if err := watch(s, "run_1", false); err == nil || !strings.Contains(err.Error(), "lost the connection") || len(d.Slept) != maxLost {
			t.Errorf("%v after %d tries", err, len(d.Slept))
		}
	})
	t.Run("when the person leaves", func(t *testing.T) {
		t.Parallel()
		d := clitest.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		d.Ctx = ctx
		s := d.Session(t, clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			cancel()
			<-r.Context().Done()
		}))
		err := watch(s, "run_1", false)
		if left, ok := errors.AsType[Left](err); !ok || left.ExitCode() != 130 {
			t.Errorf("got %v", err)
		}
	})
}

// A stream whose frames nobody can read, or whose logs cannot be fetched, is given up as one
// that says nothing: without that it would be asked for ever.
func TestAStreamThatCannotBeShownIsGivenUp(t *testing.T) {
	t.Parallel()
	frame := "id: 1:4\ndata: {\"type\":\"snapshot\",\"runId\":\"run_1\",\"status\":\"running\",\"seq\":1}\n\n"
	for name, tt := range map[string]struct {
		frame  string
		events int // the status of what is read behind a frame
		says   string
		pauses int
	}{
		"no JSON":             {"data: {\n\n", 200, "lost the connection to http://127.0.0.1", maxLost},
		"another kind of it":  {"data: [1]\n\n", 200, "lost the connection", maxLost},
		"events that fail":    {frame, 500, "lost the connection", maxLost},
		"events that are not": {frame, 404, "no such run (see millrace runs list)", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := clitest.New(t)
			ctx, cancel := context.WithCancel(t.Context())
			d.Ctx = ctx
			var mu sync.Mutex
			last := []string{}
			s := d.Session(t, clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "/stream") {
					clitest.Answer(w, tt.events, `{"success":false,"error":"no such run","code":"not_found","requestId":"r"}`)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if last = append(last, r.Header.Get("Last-Event-ID")); len(last) > 3*maxLost {
					cancel() // it is asked for ever
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, tt.frame)
			}))
			err := watch(s, "run_1", false)
			if err == nil || !strings.Contains(err.Error(), tt.says) || len(d.Slept) != tt.pauses {
				t.Errorf("%v after %d pauses", err, len(d.Slept))
			}
			mu.Lock()
			defer mu.Unlock()
			if slices.ContainsFunc(last, func(id string) bool { return id != "" }) {
				t.Errorf("it goes on behind what it has not shown: %q", last)
			}
		})
	}
}

// What is followed is printed once, whatever breaks on the way.
func TestALogIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"of the run": {"logs", "run_1", "-f"}, "of a node": {"logs", "run_1", "--node", "a", "-f"}} {
		b := &broadcast{log: "zero\n"}
		b.connections = []func(io.Writer){
			func(w io.Writer) {
				b.send(w, "snapshot", 1, "")
				b.send(w, "progress", 2, "one\n")
				fmt.Fprint(w, "id: 9:99\ndata: {\"type\":\"prog")
			},
			func(io.Writer) { b.log += "missed\n" },
			func(w io.Writer) {
				b.send(w, "snapshot", 3, "")
				b.log += "last\n"
				fmt.Fprintf(w, "id: 4:%d\ndata: {\"type\":\"done\",\"runId\":\"run_1\",\"status\":\"failed\"}\n\n", len(b.log))
			},
		}
		d := clitest.New(t)
		d.SignedIn(t, clitest.Serve(t, b.ServeHTTP), line.Grant{Token: "oat_1"})
		var commands struct {
			Logs Logs `cmd:""`
		}
		if status := d.Type(&commands, "", args...); status != 0 || d.Printed.String() != "zero\none\nmissed\nlast\n" || d.Errors.Len() > 0 {
			t.Errorf("%s: %d, printed %q, told %q", name, status, d.Printed, d.Errors)
		}
	}
}

// What a failed step wrote is shown below it, the end of it, unless all of it is.
func TestAFailureIsShownWithTheEndOfItsLog(t *testing.T) {
	t.Parallel()
	var lines []string
	for n := range 12 {
		lines = append(lines, fmt.Sprint("line ", n))
	}
	for name, tt := range map[string]struct {
		logs bool
		data string
		want []string
	}{
		"its last ten lines":  {false, fmt.Sprintf(`{"log":%q}`, strings.Join(lines, "\n")+"\n\n"), lines[2:]},
		"all of a few":        {false, `{"log":"a\nb"}`, []string{"a", "b"}},
		"nothing":             {false, `{"log":""}`, nil},
		"no log":              {false, `{}`, nil},
		"no words":            {false, `{"log":7}`, nil},
		"what is read anyway": {true, `{"log":"a"}`, nil},
	} {
		d := clitest.New(t)
		v := &view{Session: d.Session(t, "http://127.0.0.1:1"), logs: tt.logs}
		v.showEvent(api.RunEvent{Type: "node.failed", Message: "Trim\x1b[2J failed", Data: []byte(tt.data)})
		v.showEvent(api.RunEvent{Type: "node.retrying", Message: "again", Data: []byte(`{"log":"x"}`)})
		var got []string
		for line := range strings.Lines(d.Printed.String()) {
			if _, text, below := strings.Cut(line, "          | "); below {
				got = append(got, strings.TrimSuffix(text, "\n"))
			}
		}
		if !slices.Equal(got, tt.want) || !strings.Contains(d.Printed.String(), "  Trim[2J failed\n") || !strings.HasSuffix(d.Printed.String(), "  again\n") {
			t.Errorf("%s: %q", name, d.Printed)
		}
	}
}
