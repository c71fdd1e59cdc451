package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
)

// gated runs until somebody opens its gate.
const gated = `{"nodes":[{"id":"a","command":"# dummy: print=before await=go print=after"}]}`

// unblock opens the gate of the node a of a run, once it is there.
func (h *harness) unblock(run string) {
	h.t.Helper()
	k := executor.Key{Run: ids.Run(run), Node: "a", Attempt: 1}
	at := executor.Spec{Dir: filepath.Join(h.attempts, k.Folder())}
	eventually(h.t, "the task began", func() bool { return os.WriteFile(filepath.Join(at.Work(), "go"), nil, 0o600) == nil })
}

// line is one stream over a bare connection.
type line struct {
	net.Conn
	r *bufio.Reader
}

func (h *harness) dial(server *httptest.Server, who someone, run, last string) *line {
	h.t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	fmt.Fprintf(conn, "GET /api/runs/%s/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nLast-Event-ID: %s\r\n\r\n", run, who.token, last)
	return &line{conn, bufio.NewReader(conn)}
}

// next is the next message with its id, or nothing at the end.
func (l *line) next(t *testing.T) (id string, m map[string]any) {
	for {
		text, err := l.r.ReadString('\n')
		if err != nil {
			return "", nil
		}
		if after, ok := strings.CutPrefix(text, "id: "); ok {
			id = strings.TrimSpace(after)
		}
		if data, ok := strings.CutPrefix(text, "data: "); ok {
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				t.Fatal(err)
			}
			return id, m
		}
	}
}

// until reads up to a message of a type, and returns its id and what was
// logged on the way.
func (l *line) until(t *testing.T, kind string) (id, log string) {
	t.Helper()
	for {
		at, m := l.next(t)
		if m == nil {
			t.Fatalf("the stream ended before %q", kind)
		}
		if text, ok := m["logs"].(string); ok && m["type"] == "progress" {
			log += text
		}
		if m["type"] == kind {
			return at, log
		}
	}
}

func TestAThousandClientsHearTheEndAndASlowOneSlowsNobody(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	id := h.start(ada, `{"workflowId":"`+h.workflow(ada, gated)+`"}`)
	server := httptest.NewServer(h.mux)
	defer server.Close()
	h.dial(server, ada, id, "") // it never reads
	var ready, done sync.WaitGroup
	for range 1000 {
		l := h.dial(server, ada, id, "")
		ready.Add(1)
		done.Go(func() {
			l.until(t, "snapshot")
			ready.Done()
			l.until(t, "done")
			if _, m := l.next(t); m != nil {
				t.Error("the stream goes on after done")
			}
		})
	}
	ready.Wait()
	h.unblock(id)
	done.Wait()
}

func TestAStreamGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	id := h.start(ada, `{"workflowId":"`+h.workflow(ada, gated)+`"}`)
	server := httptest.NewServer(h.mux)
	defer server.Close()
	first := h.dial(server, ada, id, "")
	last := ""
	for log := ""; log != "before\n"; { // it may stand in the snapshot already
		at, m := first.next(t)
		last = at
		if text, ok := m["logs"].(string); ok {
			log += text
		}
	}
	first.Close()
	h.unblock(id)
	h.await(ada, id)

	again := h.dial(server, ada, id, last)
	if at, _ := again.until(t, "snapshot"); at != last {
		t.Errorf("who leaves before the replay would go on at %s, and not at %s", at, last)
	}
	seen, log := map[float64]bool{}, ""
	for {
		_, m := again.next(t)
		if m == nil {
			t.Fatal("the stream ended without done")
		}
		if m["type"] == "done" {
			break
		}
		if seq := m["seq"].(float64); seen[seq] && m["logs"] == "" {
			t.Errorf("%v is told twice", seq)
		} else {
			seen[seq] = true
		}
		log += m["logs"].(string)
	}
	if log != "after\n" || len(seen) == 0 {
		t.Errorf("it was told %q and %v", log, seen)
	}
	// What makes no sense is as good as nothing.
	for _, odd := range []string{"x", "9:9:9", "-1:-1", "999999:0", "0:999999"} {
		if _, log := h.dial(server, ada, id, odd).until(t, "done"); log != "" {
			t.Errorf("after %q: %q", odd, log)
		}
	}
}

func TestWhoComesAtTheEndHearsIt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	id := h.start(ada, `{"workflowId":"`+h.workflow(ada, gated)+`"}`)
	server := httptest.NewServer(h.mux)
	defer server.Close()
	first := h.dial(server, ada, id, "")
	first.until(t, "snapshot")
	over := make(chan struct{})
	var comers sync.WaitGroup
	for range 8 {
		comers.Go(func() {
			for {
				l := h.dial(server, ada, id, "")
				l.until(t, "done")
				l.Close()
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	h.unblock(id)
	first.until(t, "done")
	close(over)
	comers.Wait()
}

// steps is a run of many short tasks, one after the other.
func steps(n int) string {
	var nodes, edges []string
	for i := range n {
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%d","command":"# dummy: print=%d sleep=10ms"}`, i, i))
		if i > 0 {
			edges = append(edges, fmt.Sprintf(`{"id":"e%d","source":"n%d","target":"n%d"}`, i, i-1, i))
		}
	}
	return `{"nodes":[` + strings.Join(nodes, ",") + `],"edges":[` + strings.Join(edges, ",") + `]}`
}

func TestNobodyIsToldMoreOftenBecauseOthersCome(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	workflow := h.workflow(ada, steps(60))
	server := httptest.NewServer(h.mux)
	defer server.Close()
	begun := time.Now()
	id := h.start(ada, `{"workflowId":"`+workflow+`"}`)
	watcher := h.dial(server, ada, id, "")
	over := make(chan struct{})
	var comers sync.WaitGroup
	for range 4 {
		comers.Go(func() {
			for {
				l := h.dial(server, ada, id, "")
				l.until(t, "snapshot")
				l.Close()
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	frames, log := 0, ""
	for m := map[string]any{}; m["type"] != "done"; {
		if _, m = watcher.next(t); m == nil {
			t.Fatal("the stream ended without done")
		}
		if m["type"] == "progress" {
			frames++
		}
		if text, ok := m["logs"].(string); ok {
			log += text
		}
	}
	most := 4*time.Since(begun).Seconds() + 2
	close(over)
	comers.Wait()
	if float64(frames) > most {
		t.Errorf("%d frames came, where %.0f may", frames, most)
	}
	var want strings.Builder
	for i := range 60 {
		fmt.Fprintln(&want, i)
	}
	if log != want.String() {
		t.Errorf("it was told %q", log)
	}
}

func TestAStreamOverTLS(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP %d", version), func(t *testing.T) {
			id := h.start(ada, `{"workflowId":"`+h.workflow(ada, gated)+`"}`)
			server := httptest.NewUnstartedServer(h.mux)
			server.EnableHTTP2 = version == 2
			server.StartTLS()
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/api/runs/"+id+"/stream", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+ada.token)
			resp, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.ProtoMajor != version {
				t.Fatalf("it speaks %s", resp.Proto)
			}
			l := &line{r: bufio.NewReader(resp.Body)}
			l.until(t, "snapshot")
			h.unblock(id)
			l.until(t, "done")
		})
	}
}

// Some clients, httpx-sse among them, hand on an event at every empty line,
// whether data came before it or not.
func TestNoEventIsWithoutData(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	body := h.call("GET", "/api/runs/"+h.finished(ada)+"/stream", "", bearer(ada.token)).want(200).body
	events := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
	if !strings.HasPrefix(events[0], "retry: 3000\n") || !strings.Contains(events[0], `"connected"`) {
		t.Errorf("the first event is %q", events[0])
	}
	for _, e := range events {
		if !strings.Contains("\n"+e, "\ndata: ") {
			t.Errorf("an event without data: %q", e)
		}
	}
}

// timed is an answer whose deadlines the server has set.
type timed struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (w *timed) SetReadDeadline(t time.Time) error  { w.read = t; return nil }
func (w *timed) SetWriteDeadline(t time.Time) error { w.write = t; return nil }

// HTTP/2 ends a stream at its deadlines, whether anybody writes or not.
func TestNoDeadlineOutlivesAFrame(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	r := httptest.NewRequest("GET", "/api/runs/"+h.finished(ada)+"/stream", nil)
	r.ProtoMajor = 2
	r.Header.Set("Authorization", "Bearer "+ada.token)
	w := &timed{httptest.NewRecorder(), time.Now(), time.Now()}
	h.mux.ServeHTTP(w, r)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"done"`) {
		t.Fatalf("it was answered %d %s", w.Code, w.Body)
	}
	if !w.read.IsZero() || !w.write.IsZero() {
		t.Errorf("a silent stream ends: reading at %s, writing at %s", w.read, w.write)
	}
}
