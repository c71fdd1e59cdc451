package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/workflows"
)

// export reads a whole one, which the contract has been held against.
func (h *harness) export(who someone) map[string]any {
	h.t.Helper()
	r := h.call("GET", "/api/account/data", "", bearer(who.token)).want(200)
	if !strings.HasSuffix(strings.TrimSpace(r.body), `,"complete":true}}`) {
		h.t.Errorf("complete does not come last: …%s", r.body[max(0, len(r.body)-80):])
	}
	return r.at("data").(map[string]any)
}

func TestAnExportHoldsEverythingOfTheTeamAndNothingElse(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		bob := h.signUp("Bob")
		h.join(bob, ada, access.Admin)
		h.upload(eve, "foreign.csv", "text/csv", "theirs")
		for _, who := range []someone{ada, bob} { // each has notifications of their own
			h.call("PUT", "/api/me/notifications", `{"topics":[{"topic":"allRuns","app":true,"mail":false}]}`, bearer(who.token)).want(200)
		}
		wf := h.runnable(ada)
		run := h.start(ada, `{"workflowId":"`+wf+`"}`)
		h.await(ada, run)
		file := h.upload(ada, "mine.csv", "text/csv", "ours")
		h.call("POST", "/api/collab/invites", `{"workflowId":"`+wf+`","role":"viewer"}`, bearer(ada.token)).want(201)
		h.call("POST", "/api/team/invite", `{"email":"carol@example.org","role":"member"}`, bearer(ada.token)).want(201)

		h.call("PUT", "/api/favorites/"+run, "", bearer(ada.token)).want(200)
		h.call("PUT", "/api/favorites/"+wf, "", bearer(bob.token), header("X-Team-Id", string(ada.team))).want(200)
		gone := h.start(ada, `{"workflowId":"`+wf+`","tags":["pilot"]}`)
		h.await(ada, gone)
		h.call("DELETE", "/api/runs/"+gone, "", bearer(ada.token)).want(200)

		d := h.export(ada)
		if marked := d["favorites"].(map[string]any); fmt.Sprint(marked["runs"]) != "["+run+"]" || len(marked["workflows"].([]any)) != 0 {
			t.Errorf("favorites are their own alone: %v", marked)
		}
		if list := d["deletedRuns"].([]any); len(list) != 1 || list[0].(map[string]any)["id"] != gone || list[0].(map[string]any)["deletedAt"] == nil {
			t.Errorf("deleted: %v", list)
		}
		for name, want := range map[string]int{"members": 2, "invitations": 1, "workflows": 1, "runs": 1, "files": 2, "notifications": 2, "invoices": 0, "analyses": 0, "invites": 1} {
			if got := len(d[name].([]any)); got != want {
				t.Errorf("%d %s, want %d", got, name, want)
			}
		}
		first := func(name string) map[string]any { return d[name].([]any)[0].(map[string]any) }
		if w := first("workflows"); w["id"] != wf || w["definition"] == nil {
			t.Errorf("%v", w)
		}
		if r := first("runs"); r["id"] != run || len(r["events"].([]any)) < 4 || !strings.Contains(r["logs"].(string), "hello") {
			t.Errorf("%v", r)
		}
		if f := first("files"); f["key"] != file.key || f["url"] == "" {
			t.Errorf("%v", f)
		}
		if len(d["usage"].([]any)) == 0 || d["team"].(map[string]any)["id"] != string(ada.team) {
			t.Errorf("%v %v", d["usage"], d["team"])
		}
		if text, _ := json.Marshal(d); strings.Contains(string(text), "foreign.csv") || strings.Contains(string(text), string(eve.team)) {
			t.Error("it holds something of another team")
		}
	})
}

// meter takes an answer in and looks how much memory is in use meanwhile.
type meter struct {
	header http.Header
	status int
	bytes  int64
	looked int64
	most   uint64
	last   []byte
}

func (m *meter) Header() http.Header    { return m.header }
func (m *meter) WriteHeader(status int) { m.status = status }
func (m *meter) Write(b []byte) (int, error) {
	m.bytes += int64(len(b))
	m.last = append([]byte(nil), b[max(0, len(b)-40):]...)
	if m.bytes-m.looked > 8<<20 {
		m.looked, m.most = m.bytes, max(m.most, inUse())
	}
	return len(b), nil
}

func inUse() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// Not parallel: it looks at the memory of the whole process.
func TestAnExportNeedsNoMoreMemoryForALargeTeam(t *testing.T) {
	h := newHarness(t)
	ada := h.signUp("Ada")
	definition := []byte(`{"version":1,"nodes":[{"id":"a","command":"` + strings.Repeat("x", 64<<10) + `"}]}`)
	many := 1250
	if testing.Short() {
		many = 400 // still more than it may hold
	}
	for i := range many {
		w := workflows.Workflow{Row: workflows.Row{
			ID: ids.NewWorkflow(), Team: ada.team, Name: fmt.Sprint(i), Revision: 1, CreatedBy: ada.id, CreatedAt: h.clock(), UpdatedAt: h.clock(),
		}, Definition: definition, Version: 1}
		if err := h.db.InsertWorkflow(t.Context(), w, workflows.Revision{Number: 1, CreatedBy: ada.id, CreatedAt: h.clock(), UpdatedAt: h.clock()}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r := httptest.NewRequest("GET", base+"/api/account/data", nil)
	bearer(ada.token)(r)
	m := &meter{header: http.Header{}}
	before := inUse()
	h.mux.ServeHTTP(m, r)
	if m.bytes < int64(many)*64<<10 || !bytes.HasSuffix(m.last, []byte(`,"complete":true}}`+"\n")) {
		t.Fatalf("%d bytes that end in %s", m.bytes, m.last)
	}
	if grown := int64(m.most) - int64(before); grown > 16<<20 {
		t.Errorf("%d MB in use for an export of %d MB", grown>>20, m.bytes>>20)
	}
}

// thief signs the caller out as soon as the first bytes arrive.
type thief struct {
	*httptest.ResponseRecorder
	steal func()
}

func (w *thief) Write(b []byte) (int, error) {
	if w.steal != nil {
		w.steal()
		w.steal = nil
	}
	return w.ResponseRecorder.Write(b)
}

func TestAnExportThatBreaksOffIsNotComplete(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	h.runnable(ada)
	r := httptest.NewRequest("GET", base+"/api/account/data", nil)
	bearer(ada.token)(r)
	w := &thief{httptest.NewRecorder(), func() { h.call("POST", "/auth/sign-out", "", bearer(ada.token)).want(200) }}
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("the connection goes on: %v", p)
			}
		}()
		h.mux.ServeHTTP(w, r)
	}()
	body := w.Body.String()
	if json.Valid([]byte(body)) || strings.Contains(body, `"complete"`) || !strings.Contains(body, `"exportedAt"`) {
		t.Errorf("it looks complete: %s", body)
	}
}

func TestAnErasedTeamIsGoneAndItsPeopleStay(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.verified("Ada"), h.signUp("Bob")
		h.join(bob, ada, access.Admin)
		wf := h.runnable(ada)
		h.await(ada, h.start(ada, `{"workflowId":"`+wf+`"}`))
		file := h.upload(ada, "mine.csv", "text/csv", "ours")
		waiting := h.presign(ada, "late.csv", "text/csv", 4).want(200)
		link := h.call("POST", "/api/collab/invites", `{"workflowId":"`+wf+`","role":"editor"}`, bearer(ada.token)).want(201).text("data", "token")
		h.call("POST", "/api/team/invite", `{"email":"carol@example.org","role":"member"}`, bearer(ada.token)).want(201)
		mail := h.invitationToken("carol@example.org")
		endless := h.start(ada, `{"workflowId":"`+h.workflow(ada, `{"nodes":[{"id":"a","command":"# dummy: sleep=1h"}]}`)+`"}`)

		h.call("DELETE", "/api/account/data", `{}`, bearer(ada.token)).want(400)
		h.call("DELETE", "/api/account/data", `{"confirm":"`+string(bob.team)+`"}`, bearer(ada.token)).wantCode(400, "invalid")
		h.call("GET", "/api/runs/"+endless, "", bearer(ada.token)).want(200)

		r := h.call("DELETE", "/api/account/data", `{"confirm":"`+string(ada.team)+`"}`, bearer(ada.token)).want(200)
		counts := r.at("data", "counts").(map[string]any)
		for kind, want := range map[string]float64{"workflows": 2, "runs": 2, "files": 2, "invites": 1, "invitations": 2, "members": 2} {
			if counts[kind] != want {
				t.Errorf("%v %s are gone, want %v", counts[kind], kind, want)
			}
		}
		h.call("GET", "/api/me", "", bearer(ada.token)).wantCode(403, "no_team")
		h.call("GET", "/api/me", "", bearer(ada.token), header("X-Team-Id", string(ada.team))).wantCode(403, "not_a_member")
		h.call("DELETE", "/api/account/data", `{"confirm":"`+string(ada.team)+`"}`, bearer(ada.token)).wantCode(403, "no_team")
		h.call("GET", "/auth/teams/"+string(ada.team)+"/members", "", bearer(ada.token)).want(404)
		if me := h.call("GET", "/api/me", "", bearer(bob.token)).want(200); me.text("data", "team", "id") != string(bob.team) {
			t.Errorf("%s", me.body)
		}
		h.call("GET", "/auth/invitations/"+mail, "").want(404)
		h.call("POST", "/api/collab/join", `{"invite":"`+link+`"}`).want(404)
		h.call("POST", "/api/runs", `{"workflowId":"`+wf+`"}`, bearer(link)).want(401)
		h.put(waiting.text("data", "url"), "text/csv", "late").want(409)
		if got := h.call("GET", strings.TrimPrefix(file.url, base), ""); got.status != 403 && got.status != 404 {
			t.Errorf("%d", got.status)
		}
		kept, err := h.keeper.List(t.Context(), "teams/"+string(ada.team)+"/", "", 10)
		if err != nil || len(kept) > 0 {
			t.Errorf("%v %v", kept, err)
		}
		h.call("POST", "/auth/teams", `{"name":"again"}`, bearer(ada.token)).want(201)
		h.call("GET", "/api/me", "", bearer(ada.token)).want(200)
		if e, err := h.db.Erasure(t.Context(), ada.team); err != nil || !e.Erased {
			t.Errorf("no tombstone: %+v %v", e, err)
		}
	})
}

// An upload that was under way when its team was erased is thrown away; what
// reaches the store past us is swept when no address can be open any more.
func TestWhatArrivesForAnErasedTeamGoesToo(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	p := h.presign(ada, "late.csv", "text/csv", 8).want(200)
	reached := make(chan struct{})
	body := &halting{first: []byte("half"), then: []byte("rest"), reached: reached, open: make(chan struct{})}
	r := httptest.NewRequest("PUT", p.text("data", "url"), body)
	r.ContentLength = 8
	r.Header.Set("Content-Type", "text/csv")
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() { defer close(done); h.mux.ServeHTTP(w, r) }()
	<-reached
	h.call("DELETE", "/api/account/data", `{"confirm":"`+string(ada.team)+`"}`, bearer(ada.token)).want(200)
	close(body.open)
	<-done
	if w.Code != 404 && w.Code != 409 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	prefix := "teams/" + string(ada.team) + "/"
	left := func() int {
		list, err := h.keeper.List(t.Context(), prefix, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if left() != 0 {
		t.Error("the late upload is kept")
	}
	if _, err := h.keeper.Put(t.Context(), prefix+"uploads/x/past-us", "text/csv", strings.NewReader("late"), 4); err != nil {
		t.Fatal(err)
	}
	h.pass(7 * time.Minute)
	eventually(t, "the sweep", func() bool { return left() == 0 })
	if _, err := h.db.Erasure(t.Context(), ada.team); err != nil {
		t.Errorf("no tombstone while an upload may go on: %v", err)
	}
	h.pass(7 * time.Hour)
	eventually(t, "the end of the tombstone", func() bool { _, err := h.db.Erasure(t.Context(), ada.team); return err != nil })
}

// halting is a body whose second half waits.
type halting struct {
	first, then   []byte
	reached, open chan struct{}
}

func (g *halting) Read(b []byte) (int, error) {
	if len(g.first) > 0 {
		n := copy(b, g.first)
		g.first = g.first[n:]
		return n, nil
	}
	if g.reached != nil {
		close(g.reached)
		g.reached = nil
		<-g.open
	}
	if len(g.then) == 0 {
		return 0, io.EOF
	}
	n := copy(b, g.then)
	g.then = g.then[n:]
	return n, nil
}
