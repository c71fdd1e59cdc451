package collab_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/millrace/millrace/internal/collab"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/ydoc"
	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
	"github.com/millrace/millrace/internal/workflows"
)

// harness is a team with one workflow, and the rooms over a real database.
type harness struct {
	t         *testing.T
	db        *store.DB
	caller    access.Caller
	workflow  ids.Workflow
	workflows *workflows.Service
	sharing   *sharing.Service
	server    *collab.Server
	url       string
	drain     func() // begins to stop the server that was opened last
	stop      func() // and waits until it has

	mu    sync.Mutex
	role  access.Role
	ahead time.Duration
}

const drawing = `{"version":1,"nodes":[
	{"id":"trim","name":"Trim","type":"task","position":{"x":0,"y":0},"command":"cat","outputs":{"o":{"path":"o"}},"env":{"A":"b"},"x-n":{"deep":[1,null,"é"]}},
	{"id":"align","name":"Align","type":"task","position":{"x":320,"y":0},"command":"true"}],
	"edges":[{"id":"e1","source":"trim","sourceHandle":"o","target":"align","targetHandle":"i"}],
	"parameters":{"q":{"type":"integer","default":20}},"inputs":{},"outputs":{},"ui":{"zoom":1.5}}`

func (h *harness) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.ahead)
}

func (h *harness) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead += d
}

// RoleOf is the role that the test gives; none is a session that has ended.
func (h *harness) RoleOf(context.Context, ids.Session, ids.Team) (access.Role, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.role == "" {
		return "", fault.Unauthenticated("signed out")
	}
	return h.role, nil
}

func newHarness(t *testing.T, change ...func(*collab.Options)) *harness {
	t.Helper()
	return houseOn(t, storetest.SQLite(t), change...)
}

func houseOn(t *testing.T, url string, change ...func(*collab.Options)) *harness {
	t.Helper()
	h := &harness{t: t, db: storetest.Open(t, url), role: access.Owner}
	h.caller = access.Caller{User: ids.NewUser(), Name: "Ada", Team: ids.NewTeam(), Role: access.Owner}
	account := builtin.Account{User: identity.User{ID: h.caller.User, Name: "Ada", Email: "ada@example.org"}, PasswordHash: "x"}
	must(t, h.db.SignUp(t.Context(), builtin.NewAccount{Account: account, Team: identity.Team{ID: h.caller.Team, Name: "T", Plan: "free"}, CreatedAt: h.now()}))
	h.workflows = workflows.NewService(h.db.WorkflowStores(), h.now)
	h.sharing = sharing.NewService(sharing.Options{Store: h.db, Results: h.db, Rooms: h.db, Members: h, Key: []byte("a key"), Now: h.now})
	w, err := h.workflows.Create(t.Context(), h.caller, workflows.New{Name: "w", Definition: []byte(drawing)})
	must(t, err)
	h.workflow = w.ID
	h.open(change...)
	return h
}

// open starts a server on the harness's database; a harness may have several.
func (h *harness) open(change ...func(*collab.Options)) {
	h.t.Helper()
	o := collab.Options{
		Documents: h.db, Definitions: h.workflows, Passes: h.sharing, Bridge: h.db.Bridge(),
		Log: slog.New(slog.NewTextHandler(h.t.Output(), nil)), Now: h.now,
	}
	for _, c := range change {
		c(&o)
	}
	s := collab.New(o)
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve, err := s.Admit(r, strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			http.Error(w, string(fault.KindOf(err)), http.StatusForbidden)
			return
		}
		serve(w, r)
	}))
	stop := sync.OnceFunc(func() {
		cancel()
		must(h.t, <-done)
		web.Close()
	})
	h.t.Cleanup(stop)
	h.server, h.url, h.drain, h.stop = s, web.URL, cancel, stop
	h.workflows.GoLive(s)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// client is a small client of our own, which can also misbehave.
type client struct {
	t  *testing.T
	ws *websocket.Conn

	mu       sync.Mutex
	doc      *ydoc.Doc
	synced   bool
	sent     uint64 // changes
	stored   uint64 // of those, as the server says
	frames   int
	presence map[uint64]string
	settled  string
	renames  string // the answer to a rename
	closed   websocket.StatusCode
}

var clients atomic.Uint64

func (h *harness) token(change ...func(*sharing.Pass)) string {
	h.t.Helper()
	p, err := h.sharing.MemberPass(h.t.Context(), h.caller, "sess", h.workflow)
	must(h.t, err)
	for _, c := range change {
		c(&p)
	}
	text, err := h.sharing.Sign(p)
	must(h.t, err)
	return text
}

func asViewer(p *sharing.Pass) { p.Role = sharing.Viewer }

func (h *harness) dial(token string) *client {
	h.t.Helper()
	ws, _, err := websocket.Dial(h.t.Context(), h.url+"/"+string(h.caller.Team)+"_"+string(h.workflow)+"?ack=1&token="+token, nil)
	must(h.t, err)
	ws.SetReadLimit(64 << 20)
	c := &client{t: h.t, ws: ws, doc: ydoc.New(100+clients.Add(1), ydoc.Limits{}), presence: map[uint64]string{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	var reading sync.WaitGroup
	reading.Go(func() { c.listen(ctx) })
	h.t.Cleanup(func() { cancel(); reading.Wait() })
	c.send(frame(0, 0, c.doc.StateVector()))
	return c
}

// frame is a sync message.
func frame(kind, part uint64, body []byte) []byte {
	var w lib0.Writer
	w.Uint(kind)
	w.Uint(part)
	w.Buffer(body)
	return w.Bytes()
}

func (c *client) send(b []byte) { _ = c.ws.Write(context.Background(), websocket.MessageBinary, b) }

func (c *client) listen(ctx context.Context) {
	for {
		_, b, err := c.ws.Read(ctx)
		if err != nil {
			c.mu.Lock()
			c.closed = websocket.CloseStatus(err)
			c.mu.Unlock()
			return
		}
		c.hear(b)
	}
}

func (c *client) hear(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames++
	r := lib0.NewReader(b)
	switch r.Uint() {
	case 0:
		part, body := r.Uint(), r.Bytes()
		if part == 0 {
			diff, err := c.doc.Diff(body)
			if err != nil {
				c.t.Error(err)
			}
			c.sent++
			c.send(frame(0, 1, diff))
			return
		}
		if err := c.doc.Apply(body); err != nil {
			c.t.Error(err)
		}
		c.synced = c.synced || part == 1
	case 1:
		r = lib0.NewReader(r.Bytes())
		for n := r.Uint(); n > 0; n-- {
			id, _, state := r.Uint(), r.Uint(), r.String()
			c.presence[id] = state
		}
	case 100:
		c.stored = r.Uint()
	case 101:
		c.settled = r.String()
	case 102:
		c.renames = r.String()
	}
}

// edit changes the client's copy and tells the server.
func (c *client) edit(edit func(tx *ydoc.Tx)) {
	c.t.Helper()
	c.mu.Lock()
	update, err := c.doc.Edit(func(tx *ydoc.Tx) error { edit(tx); return nil })
	c.sent++
	c.mu.Unlock()
	must(c.t, err)
	c.send(frame(0, 2, update))
}

// set gives an entry of a root a plain value.
func (c *client) set(root, key string, value any) {
	c.t.Helper()
	c.edit(func(tx *ydoc.Tx) { tx.Set(tx.Map(root), key, value) })
}

// until waits for something to become true of the client.
func (c *client) until(what string, is func() bool) {
	c.t.Helper()
	if !waittest.Until(func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return is()
	}) {
		c.t.Fatalf("never %s: closed %d, %v", what, c.closed, c.doc.JSON("extra"))
	}
}

func (c *client) value(root, key string) any {
	v, _ := c.doc.Map(root).Value(key)
	return v
}

func (c *client) sees(root, key string, want any) {
	c.t.Helper()
	c.until(fmt.Sprintf("saw %v at %s.%s", want, root, key), func() bool { return c.value(root, key) == want })
}

func (c *client) closesWith(code websocket.StatusCode) {
	c.t.Helper()
	c.until(fmt.Sprintf("was closed with %d", code), func() bool { return c.closed == code })
}

// saved waits until all that the client has sent is stored.
func (c *client) saved() {
	c.t.Helper()
	c.until("saved", func() bool { return c.stored >= c.sent })
}

func (c *client) isSynced() {
	c.t.Helper()
	c.until("synced", func() bool { return c.synced })
}

func (h *harness) read() workflows.Workflow {
	h.t.Helper()
	w, err := h.workflows.Workflow(h.t.Context(), h.caller, h.workflow)
	must(h.t, err)
	return w
}

func TestTheDocumentSaysTheDefinition(t *testing.T) {
	h := newHarness(t)
	before := h.read()
	c := h.dial(h.token())
	c.isSynced()
	c.set("extra", "x-note", "new")
	c.saved()
	w := h.read()
	var got, want map[string]any
	must(t, json.Unmarshal(w.Definition, &got))
	must(t, json.Unmarshal(before.Definition, &want))
	want["x-note"] = "new"
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("got  %s\nwant %s", a, b)
	}
}

func TestMovingNodesLeavesTheETagAlone(t *testing.T) {
	h := newHarness(t)
	c := h.dial(h.token())
	c.isSynced()
	before := h.read()
	c.edit(func(tx *ydoc.Tx) {
		node, _ := tx.Map("nodes").Map("trim")
		tx.Set(node, "position", []any{100, 50})
	})
	c.saved()
	after := h.read()
	if after.ETag() != before.ETag() || !strings.Contains(string(after.Definition), `"x":100`) {
		t.Errorf("%s and %s: %s", before.ETag(), after.ETag(), after.Definition)
	}
	c.edit(func(tx *ydoc.Tx) {
		node, _ := tx.Map("nodes").Map("trim")
		tx.Set(node, "name", "Cut")
	})
	c.saved()
	changed := h.read()
	if changed.ETag() == before.ETag() {
		t.Error("the ETag is blind")
	}
	if changed.Revision != before.Revision {
		t.Errorf("one author's edits are revisions %d and %d", before.Revision, changed.Revision)
	}
	// A script that read the workflow before somebody moved a node may still
	// write; one that read it before it was changed may not.
	edit := func(etag, name string) error {
		_, err := h.workflows.Update(t.Context(), h.caller, h.workflow, workflows.Edit{
			Definition: []byte(strings.Replace(drawing, `"Align"`, `"`+name+`"`, 1)), IfMatch: []string{etag},
		})
		return err
	}
	if err := edit(before.ETag(), "Stale"); !fault.Is(err, fault.KindStale) {
		t.Errorf("%v", err)
	}
	must(t, edit(changed.ETag(), "Map"))
	c.until("saw what the script wrote", func() bool {
		node, _ := c.doc.Map("nodes").Map("align")
		name, _ := node.Value("name")
		return name == "Map"
	})
}

func TestWhatSavingWouldRefuseBecomesAProblem(t *testing.T) {
	h := newHarness(t)
	c := h.dial(h.token())
	c.isSynced()
	c.set("edges", "lost", map[string]any{"source": "trim", "target": "nowhere"})
	c.set("nodes", "odd", "no node at all")
	c.set("edges", "back", map[string]any{"source": "align", "target": "trim"})
	c.saved()
	w := h.read()
	text := fmt.Sprint(w.Problems)
	for _, want := range []string{"nowhere", "a step is an object", "cycle"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	c.until("was told of the problems", func() bool { return strings.Contains(c.settled, "nowhere") })
	if strings.Contains(string(w.Definition), `"lost"`) || !strings.Contains(string(w.Definition), `"back"`) {
		t.Errorf("%s", w.Definition)
	}
}

// Validating, saving and editing together find the same problems.
func TestProblemsAreTheSameHoweverADefinitionIsChecked(t *testing.T) {
	h := newHarness(t)
	const definition = `{"version":1,"nodes":[
		{"id":"trim","name":"Trim","type":"task","position":{"x":0,"y":0},"command":"","inputs":{"reads":{}},"secrets":["KEY"]},
		{"id":"align","name":"Align","type":"task","position":{"x":320,"y":0},"command":"true","when":"inputs.birds > 1"}],
		"edges":[],"parameters":{},"inputs":{"unused":{"type":"file"}},"outputs":{}}`
	problems, warnings, err := h.workflows.Validate(t.Context(), h.caller, []byte(definition))
	must(t, err)
	var codes []string
	for _, p := range problems {
		codes = append(codes, p.Code)
	}
	if got := strings.Join(codes, " "); got != "no_such_input no_command not_connected no_such_secret" || len(warnings) != 1 {
		t.Errorf("%s, and %d warnings", got, len(warnings))
	}
	_, err = h.workflows.Update(t.Context(), h.caller, h.workflow, workflows.Edit{Definition: []byte(definition)})
	refusal, _ := errors.AsType[*fault.Error](err)
	if refusal == nil || refusal.Kind != fault.KindInvalid || !reflect.DeepEqual(refusal.Details, problems) {
		t.Errorf("PUT refuses with %v\nwant %v", err, problems)
	}
	c := h.dial(h.token())
	c.isSynced()
	c.edit(func(tx *ydoc.Tx) {
		tx.Delete(tx.Map("edges"), "e1")
		tx.Delete(tx.Map("parameters"), "q")
		tx.Set(tx.Map("inputs"), "unused", map[string]any{"type": "file"})
		trim, _ := tx.Map("nodes").Map("trim")
		align, _ := tx.Map("nodes").Map("align")
		tx.Set(trim, "command", "")
		tx.Set(trim, "inputs", map[string]any{"reads": map[string]any{}})
		tx.Set(trim, "secrets", []any{"KEY"})
		tx.Delete(trim, "outputs")
		tx.Set(align, "when", "inputs.birds > 1")
	})
	c.saved()
	h.read()
	for _, list := range [][]fault.Detail{problems, warnings} {
		for i := range list {
			list[i].Subject = "" // it is not sent
		}
	}
	c.until("was told of the same problems", func() bool {
		var told struct{ Problems, Warnings []fault.Detail }
		must(t, json.Unmarshal([]byte(cmp.Or(c.settled, "{}")), &told))
		for i := range told.Warnings {
			told.Warnings[i].Warning = true // which the list says of all of them
		}
		return reflect.DeepEqual(told.Problems, problems) && reflect.DeepEqual(told.Warnings, warnings)
	})
}

// Who joins learns what is wrong with the definition without editing it.
func TestJoiningTellsTheProblems(t *testing.T) {
	h := newHarness(t)
	c := h.dial(h.token())
	c.isSynced()
	c.set("edges", "lost", map[string]any{"source": "trim", "target": "nowhere"})
	c.saved()
	h.read()
	for _, later := range []*client{h.dial(h.token()), h.dial(h.token(asViewer))} {
		later.until("was told of the problems", func() bool { return strings.Contains(later.settled, "nowhere") })
	}
}

func TestAuthorsHaveRevisionsOfTheirOwn(t *testing.T) {
	h := newHarness(t)
	c := h.dial(h.token())
	c.isSynced()
	g := h.dial(h.token(func(p *sharing.Pass) { p.Guest, p.Name = "guest_g", "Grace" }))
	g.isSynced()
	c.set("extra", "ui", 1)
	c.saved()
	h.read()
	g.set("extra", "ui", 2)
	g.saved()
	h.read()
	g.set("extra", "ui", 3)
	g.saved()
	h.read()
	list, _, err := h.workflows.Revisions(t.Context(), h.caller, h.workflow, 100, 100)
	must(t, err)
	if len(list) != 2 || list[0].GuestName != "Grace" || list[1].Guest != "" {
		t.Errorf("%+v", list)
	}
}

func TestAViewersWritesReachNobody(t *testing.T) {
	h := newHarness(t)
	c, v := h.dial(h.token()), h.dial(h.token(asViewer))
	c.isSynced()
	v.isSynced()
	v.set("extra", "x-viewer", true)
	c.set("extra", "x-editor", true)
	v.sees("extra", "x-editor", true)
	c.saved()
	if h.server.Measure().Refused == 0 || c.value("extra", "x-viewer") != nil || strings.Contains(string(h.read().Definition), "x-viewer") {
		t.Error("it was heard")
	}
}

func TestNobodyWearsAnothersName(t *testing.T) {
	h := newHarness(t)
	a, b := h.dial(h.token()), h.dial(h.token(asViewer))
	say := func(c *client, id uint64, clock uint64, state string) {
		var body, w lib0.Writer
		body.Uint(1)
		body.Uint(id)
		body.Uint(clock)
		body.String(state)
		w.Uint(1)
		w.Buffer(body.Bytes())
		c.send(w.Bytes())
	}
	say(a, 7, 1, `{"user":{"name":"Root","role":"owner"},"cursor":1}`)
	b.until("saw a", func() bool { return strings.Contains(b.presence[7], `"cursor":1`) })
	if s := b.presence[7]; !strings.Contains(s, `"name":"Ada"`) || !strings.Contains(s, `"role":"editor"`) || strings.Contains(s, "Root") {
		t.Error(s)
	}
	say(b, 7, 9, `null`) // speaks for somebody else
	say(b, 8, 1, `{"cursor":2}`)
	a.until("saw b", func() bool { return strings.Contains(a.presence[8], `"role":"viewer"`) })
	late := h.dial(h.token())
	late.until("saw both", func() bool {
		return strings.Contains(late.presence[7], "cursor") && strings.Contains(late.presence[8], "cursor")
	})
	must(t, a.ws.Close(websocket.StatusNormalClosure, ""))
	b.until("saw a leave", func() bool { return b.presence[7] == "null" })
}

func TestWhatNoClientSendsEndsTheSocket(t *testing.T) {
	h := newHarness(t)
	for name, bad := range map[string][]byte{
		"an empty message":          {},
		"an unknown kind":           {9},
		"half an update":            {0, 2, 5, 1},
		"an update that is none":    frame(0, 2, []byte{1, 1, 1, 1}),
		"a root of one's own":       frame(0, 2, rootOfOnesOwn(t)),
		"no state vector":           frame(0, 0, []byte{200}),
		"more after the end":        append(frame(0, 0, []byte{0}), 1),
		"presence that is no JSON":  {1, 5, 1, 7, 1, 1, 'x'},
		"presence that is no state": {1, 6, 1, 7, 1, 2, '[', ']'},
		"a rename that is no JSON":  renameFrame("{"),
		"a rename to no name":       renameFrame(`{"kind":"step","name":"trim","to":"a b"}`),
		"a rename that is too long": renameFrame(`{"to":"a","name":"` + strings.Repeat("x", 5<<10) + `"}`),
	} {
		t.Run(name, func(t *testing.T) {
			c := h.dial(h.token())
			c.isSynced()
			c.send(bad)
			c.closesWith(4400)
		})
	}
	c := h.dial(h.token())
	c.send(make([]byte, 2<<20))
	c.closesWith(websocket.StatusMessageTooBig)
	if strings.Contains(string(h.read().Definition), "mine") {
		t.Error("it was kept")
	}
}

func rootOfOnesOwn(t *testing.T) []byte {
	update, err := ydoc.New(5, ydoc.Limits{}).Edit(func(tx *ydoc.Tx) error { tx.Set(tx.Map("mine"), "a", 1); return nil })
	must(t, err)
	return update
}

func TestADocumentHasABound(t *testing.T) {
	h := newHarness(t, func(o *collab.Options) { o.Limits.Bytes = 10_000 })
	c := h.dial(h.token())
	c.isSynced()
	c.set("extra", "x-large", strings.Repeat("x", 20_000))
	c.closesWith(4413)
	if len(h.read().Definition) > 10_000 {
		t.Error("it was kept")
	}
}

func TestASocketEndsWithWhatAllowedIt(t *testing.T) {
	h := newHarness(t)
	demoted := h.dial(h.token())
	demoted.isSynced()
	reader := h.dial(h.token(asViewer))
	reader.isSynced()
	h.mu.Lock()
	h.role = access.Viewer
	h.mu.Unlock()
	demoted.closesWith(4403)
	h.mu.Lock()
	h.role = ""
	h.mu.Unlock()
	reader.closesWith(4403)
	if _, _, err := websocket.Dial(t.Context(), h.url+"/"+string(h.caller.Team)+"_"+string(h.workflow)+"?token="+h.token(), nil); err == nil {
		t.Error("somebody who has signed out came in")
	}
	h.mu.Lock()
	h.role = access.Member
	h.mu.Unlock()
	old := h.dial(h.token())
	old.isSynced()
	h.pass(61 * time.Minute)
	old.closesWith(4500)
	last := h.dial(h.token())
	last.isSynced()
	must(t, h.workflows.Delete(t.Context(), h.caller, h.workflow))
	last.closesWith(4404)
}

// empties waits until nobody's room is open.
func (h *harness) empties() {
	h.t.Helper()
	if !waittest.Until(func() bool { return h.server.Measure().Rooms == 0 }) {
		h.t.Fatal("a room stays open")
	}
}

func TestAnEmptyRoomLeavesASnapshotAndNoGrowth(t *testing.T) {
	h := newHarness(t, func(o *collab.Options) { o.Times.KeepEmpty = 10 * time.Millisecond })
	old := h.token()
	c := h.dial(old)
	c.isSynced()
	// Two keys in turn leave traces that never merge.
	c.edit(func(tx *ydoc.Tx) {
		for i := range 20_000 {
			tx.Set(tx.Map("extra"), fmt.Sprintf("x-%d", i%2), i)
		}
	})
	c.saved()
	must(t, c.ws.Close(websocket.StatusNormalClosure, ""))
	h.empties()
	d, err := h.db.Document(t.Context(), h.workflow, 0)
	must(t, err)
	if len(d.Updates) != 0 || d.Synced != d.Seq || len(d.Snapshot) > 20_000 {
		t.Errorf("%d updates, %d of %d settled, %d bytes", len(d.Updates), d.Synced, d.Seq, len(d.Snapshot))
	}
	if d.Epoch != 2 {
		t.Fatalf("the document did not start afresh: epoch %d", d.Epoch)
	}
	h.dial(old).closesWith(4409)
	again := h.dial(h.token())
	again.isSynced()
	if again.value("extra", "x-1") != 19_999.0 {
		t.Errorf("%v", again.doc.JSON("extra"))
	}
}

// People go on typing while a snapshot is taken; what it says and what is
// stored after it come to the same document.
func TestASnapshotIsTakenWhilePeopleType(t *testing.T) {
	h := newHarness(t)
	a, b := h.dial(h.token()), h.dial(h.token())
	a.isSynced()
	b.isSynced()
	text := strings.Repeat("t", 4<<10)
	n, last, snapshots := 0, int64(0), 0
	for ; snapshots < 3; n++ {
		if n > 1000 {
			t.Fatalf("%d snapshots were taken", snapshots)
		}
		a.set("extra", fmt.Sprintf("x-a%d", n%7), fmt.Sprint(n, text))
		b.set("extra", fmt.Sprintf("x-b%d", n%5), fmt.Sprint(n, text))
		a.saved()
		b.saved()
		d, err := h.db.Document(t.Context(), h.workflow, 0)
		must(t, err)
		if d.SnapshotSeq > last {
			last, snapshots = d.SnapshotSeq, snapshots+1
		}
	}
	a.sees("extra", fmt.Sprintf("x-b%d", (n-1)%5), fmt.Sprint(n-1, text))
	h.open() // reads what is stored
	again := h.dial(h.token())
	again.isSynced()
	a.mu.Lock()
	defer a.mu.Unlock()
	again.mu.Lock()
	defer again.mu.Unlock()
	if got, want := fmt.Sprint(again.doc.JSON("extra")), fmt.Sprint(a.doc.JSON("extra")); got != want {
		t.Errorf("stored: %.200s…\nseen: %.200s…", got, want)
	}
}

// unsettled is a harness whose definitions cannot be written.
type unsettled struct {
	collab.Definitions
	tried chan struct{}
}

func (u unsettled) SaveFromDocument(context.Context, workflows.LiveDefinition) (workflows.Workflow, error) {
	u.tried <- struct{}{}
	return workflows.Workflow{}, errors.New("the disk is full")
}

// What cannot be written is tried again after a while, not all the time.
func TestADefinitionThatCannotBeWrittenIsTriedAfterAWhile(t *testing.T) {
	u := unsettled{tried: make(chan struct{}, 10_000)}
	h := newHarness(t, func(o *collab.Options) {
		u.Definitions = o.Definitions
		o.Definitions = u
	})
	c := h.dial(h.token())
	c.isSynced()
	begun := time.Now()
	c.set("extra", "x-large", strings.Repeat("t", 300<<10)) // a snapshot is due
	<-u.tried
	for i := range 50 {
		c.set("extra", "x-small", i)
		c.saved()
	}
	if most := 3 + int(time.Since(begun).Seconds()); len(u.tried) > most {
		t.Errorf("tried %d times more", len(u.tried))
	}
}

// panicking has definitions that nobody can read or write for a while.
type panicking struct {
	collab.Definitions
	reading, writing *atomic.Bool
	panicked         chan struct{}
}

func (d panicking) Stored(ctx context.Context, team ids.Team, id ids.Workflow) (workflows.Workflow, error) {
	if d.reading.Load() {
		panic("out of order")
	}
	return d.Definitions.Stored(ctx, team, id)
}

func (d panicking) SaveFromDocument(ctx context.Context, l workflows.LiveDefinition) (workflows.Workflow, error) {
	if d.writing.Swap(false) {
		close(d.panicked)
		panic("out of order")
	}
	return d.Definitions.SaveFromDocument(ctx, l)
}

// Rooms work in goroutines of their own, in which a panic would end the server.
func TestPanicOverADocumentEndsNoServer(t *testing.T) {
	d := panicking{reading: &atomic.Bool{}, writing: &atomic.Bool{}, panicked: make(chan struct{})}
	h := newHarness(t, func(o *collab.Options) {
		d.Definitions = o.Definitions
		o.Definitions = d
	})
	d.reading.Store(true)
	if _, err := h.server.ApplyDefinition(t.Context(), workflows.LiveDefinition{Team: h.caller.Team, Workflow: h.workflow}); !panics.Is(err) {
		t.Errorf("opening a document that cannot be read: %v", err)
	}
	d.reading.Store(false)
	d.writing.Store(true)
	c := h.dial(h.token())
	c.isSynced()
	c.set("extra", "x-note", "new")
	<-d.panicked
	if !waittest.Until(func() bool { return strings.Contains(string(h.read().Definition), "x-note") }) {
		t.Error("the definition is not written later")
	}
}

// unreadable has definitions that cannot be read, and counts how often somebody tried.
type unreadable struct {
	collab.Definitions
	tries *atomic.Int64
}

func (d unreadable) Stored(context.Context, ids.Team, ids.Workflow) (workflows.Workflow, error) {
	d.tries.Add(1)
	return workflows.Workflow{}, errors.New("out of order")
}

// A request that comes after a document failed to open does not get the old failure.
func TestEveryRequestTriesToOpenTheDocument(t *testing.T) {
	var tries atomic.Int64
	h := newHarness(t, func(o *collab.Options) { o.Definitions = unreadable{o.Definitions, &tries} })
	const documents, times = 8, 2000
	var all sync.WaitGroup
	for range documents {
		all.Go(func() {
			d := workflows.LiveDefinition{Team: h.caller.Team, Workflow: ids.NewWorkflow()}
			for range times {
				if _, err := h.server.ApplyDefinition(t.Context(), d); err == nil {
					t.Error("a document was opened that cannot be read")
				}
			}
		})
	}
	all.Wait()
	if tries.Load() != documents*times {
		t.Errorf("%d requests tried %d times", documents*times, tries.Load())
	}
}

// failsOnce panics at the first update that is stored.
type failsOnce struct {
	sharing.Documents
	panicked *atomic.Bool
}

func (d failsOnce) AppendUpdate(ctx context.Context, id ids.Workflow, epoch int64, u sharing.Update, now time.Time) (int64, error) {
	if d.panicked.CompareAndSwap(false, true) {
		panic("out of order")
	}
	return d.Documents.AppendUpdate(ctx, id, epoch, u, now)
}

// failsToSend is a bridge that panics at the first message.
type failsToSend struct {
	quiet
	panicked *atomic.Bool
}

func (b failsToSend) Send(context.Context, string) error {
	if b.panicked.CompareAndSwap(false, true) {
		panic("out of order")
	}
	return nil
}

// A panic in what a room does closes the room. Its clients come back to one that works, and
// other rooms and requests hear nothing of it.
func TestPanicClosesTheRoomAlone(t *testing.T) {
	panicked := &atomic.Bool{}
	for name, broken := range map[string]func(*collab.Options){
		"storing an edit":             func(o *collab.Options) { o.Documents = failsOnce{o.Documents, panicked} },
		"notifying the other servers": func(o *collab.Options) { o.Bridge = failsToSend{panicked: panicked} },
	} {
		t.Run(name, func(t *testing.T) {
			panicked.Store(false)
			h := newHarness(t, broken)
			c := h.dial(h.token())
			c.set("extra", "x-note", "lost")
			// Who comes as the room closes may be let into the next one.
			c.until("sent away, or in another room", func() bool { return c.closed != 0 || c.stored >= c.sent })
			again := h.dial(h.token())
			again.isSynced()
			again.set("extra", "x-note", "kept")
			again.saved()
			h.dial(h.token(asViewer)).sees("extra", "x-note", "kept")
		})
	}
	t.Run("storing for a request", func(t *testing.T) {
		panicked.Store(false)
		h := newHarness(t, func(o *collab.Options) { o.Documents = failsOnce{o.Documents, panicked} })
		d := workflows.LiveDefinition{Team: h.caller.Team, Workflow: h.workflow, Definition: []byte(`{"nodes":[{"id":"a","command":"true"}]}`), Author: access.Author{User: h.caller.User}}
		if _, err := h.server.ApplyDefinition(t.Context(), d); !panics.Is(err) {
			t.Fatal(err)
		}
		if done, err := h.server.ApplyDefinition(t.Context(), d); err != nil || !done {
			t.Errorf("in a room that is loaded anew: %v, %v", done, err)
		}
	})
}

// A definition that a server which shuts down could not write is not taken for the newest.
func TestServerThatShutsDownRefusesWhatItCannotSync(t *testing.T) {
	u := unsettled{tried: make(chan struct{}, 10_000)}
	h := newHarness(t, func(o *collab.Options) {
		u.Definitions = o.Definitions
		o.Definitions = u
	})
	c := h.dial(h.token())
	c.isSynced()
	c.set("extra", "x-last", 1)
	c.saved()
	h.stop()
	if _, err := h.server.SyncDefinition(t.Context(), h.caller.Team, h.workflow); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("%v", err)
	}
}

// held writes definitions only once they are released.
type held struct {
	collab.Definitions
	tried, released chan struct{}
}

func (d held) SaveFromDocument(ctx context.Context, l workflows.LiveDefinition) (workflows.Workflow, error) {
	d.tried <- struct{}{}
	<-d.released
	return d.Definitions.SaveFromDocument(ctx, l)
}

type asking struct{}

// noted calls asked when it is asked for heads by a context that says asking.
type noted struct {
	sharing.Documents
	asked func()
}

func (d noted) Heads(ctx context.Context, list []ids.Workflow) (map[ids.Workflow]sharing.Head, error) {
	if ctx.Value(asking{}) != nil {
		d.asked()
	}
	return d.Documents.Heads(ctx, list)
}

// quiet is a bridge to other servers that say nothing.
type quiet struct{}

func (quiet) Send(context.Context, string) error { return nil }

func (quiet) Listen(ctx context.Context, _ func(string), _ func()) error {
	<-ctx.Done()
	return nil
}

// Who asks a server that shuts down for the newest definition gets it, though its room is
// only being closed.
func TestServerThatShutsDownSyncsTheLastEdits(t *testing.T) {
	d := held{tried: make(chan struct{}, 10), released: make(chan struct{})}
	release := sync.OnceFunc(func() { close(d.released) })
	h := newHarness(t, func(o *collab.Options) {
		d.Definitions = o.Definitions
		o.Definitions, o.Documents, o.Bridge = d, noted{o.Documents, release}, quiet{}
		o.Times.SyncQuiet, o.Times.SyncMax = time.Hour, time.Hour
	})
	t.Cleanup(release)
	c := h.dial(h.token())
	c.isSynced()
	c.set("extra", "x-last", 1)
	c.saved()
	h.drain()
	<-d.tried // the room is being closed
	_, err := h.server.SyncDefinition(context.WithValue(t.Context(), asking{}, true), h.caller.Team, h.workflow)
	must(t, err)
	w, err := h.workflows.Stored(t.Context(), h.caller.Team, h.workflow)
	must(t, err)
	if !strings.Contains(string(w.Definition), `"x-last":1`) {
		t.Errorf("%s", w.Definition)
	}
}

// early is a harness that reads a document a moment before another server's last
// change to it, and how far it is settled a moment after.
type early struct{ sharing.Documents }

func (e early) Document(ctx context.Context, id ids.Workflow, after int64) (sharing.Document, error) {
	d, err := e.Documents.Document(ctx, id, after)
	if n := len(d.Updates); n > 0 {
		d.Updates = d.Updates[:n-1]
		d.Seq--
	}
	return d, err
}

// A snapshot covers nothing that this server has not seen, though others have
// settled it.
func TestASnapshotHoldsAllThatItReplaces(t *testing.T) {
	h := newHarness(t)
	c := h.dial(h.token())
	c.isSynced()
	for i := range 3 {
		c.set("extra", fmt.Sprintf("x-%d", i), i)
		c.saved()
	}
	c.until("settled", func() bool { return c.settled != "" })
	h.open(func(o *collab.Options) {
		o.Documents = early{o.Documents}
		o.Times.KeepEmpty, o.Times.Watch = 10*time.Millisecond, time.Hour
	})
	other := h.dial(h.token(asViewer))
	other.isSynced()
	must(t, other.ws.Close(websocket.StatusNormalClosure, ""))
	h.empties() // and leaves a snapshot
	h.open()
	again := h.dial(h.token(asViewer))
	again.isSynced()
	again.sees("extra", "x-2", 2.0)
}

func TestOneTickIsOneMessage(t *testing.T) {
	h := newHarness(t)
	a, b := h.dial(h.token()), h.dial(h.token())
	a.isSynced()
	b.isSynced()
	b.mu.Lock()
	before := b.frames
	b.mu.Unlock()
	const n = 500
	for i := range n {
		a.set("extra", "x-n", i)
	}
	b.sees("extra", "x-n", float64(n-1))
	a.saved()
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := b.frames - before; got >= n {
		t.Errorf("%d changes came in %d messages", n, got)
	}
}

func TestASilentClientHearsSomething(t *testing.T) {
	h := newHarness(t, func(o *collab.Options) { o.Times.KeepAlive = 20 * time.Millisecond })
	c := h.dial(h.token(asViewer))
	c.isSynced()
	c.mu.Lock()
	before := c.frames
	c.mu.Unlock()
	c.until("heard something", func() bool { return c.frames > before+3 })
}

func TestServersOnOneDatabaseShareARoom(t *testing.T) {
	h := houseOn(t, storetest.Postgres(t))
	a := h.dial(h.token())
	a.isSynced()
	h.open()
	b := h.dial(h.token())
	b.isSynced()
	for i := range 300 {
		a.set("extra", fmt.Sprintf("x-a%d", i%7), i)
		b.set("extra", fmt.Sprintf("x-b%d", i%7), i)
	}
	for _, c := range []*client{a, b} {
		c.sees("extra", "x-a5", 299.0)
		c.sees("extra", "x-b5", 299.0)
	}
	if w := h.read(); !strings.Contains(string(w.Definition), `"x-a5":299`) || !strings.Contains(string(w.Definition), `"x-b5":299`) {
		t.Errorf("%s", w.Definition)
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for _, k := range a.doc.Map("extra").Keys() {
			if !yield(k) {
				return
			}
		}
	})
	if len(names) != 15 {
		t.Errorf("%v", names)
	}
}

// A guest whose link has nothing to do with secrets may draw what they like, but
// not lay hands on a step that gets one, nor on what decides what it does.
func TestAGuestCannotChangeWhatUsesSecrets(t *testing.T) {
	const definition = `{"version":1,
		"parameters":{"url":{"type":"string","default":"https://a"},"free":{"type":"string","default":"x"}},
		"nodes":[{"id":"send","secrets":["TOKEN"],"command":"curl $PARAM_url","position":{"x":0,"y":0}},{"id":"other","command":"true"},{"id":"first","command":"true"},{"id":"after","command":"true"}],
		"edges":[{"id":"e0","source":"first","target":"other"},{"id":"e1","source":"other","target":"send"},{"id":"e2","source":"send","target":"after"}]}`
	asGuest := func(p *sharing.Pass) { p.Guest, p.Name = "guest_g", "Grace" }
	trusted := func(p *sharing.Pass) { asGuest(p); p.Secrets = true }
	node := func(id, key string, value any) func(*ydoc.Tx) {
		return func(tx *ydoc.Tx) {
			if m, ok := tx.Map("nodes").Map(id); ok {
				tx.Set(m, key, value)
			}
		}
	}
	root := func(name, key string, value any) func(*ydoc.Tx) {
		return func(tx *ydoc.Tx) { tx.Set(tx.Map(name), key, value) }
	}
	drop := func(name, key string) func(*ydoc.Tx) { return func(tx *ydoc.Tx) { tx.Delete(tx.Map(name), key) } }
	command := func(tx *ydoc.Tx) {
		m, _ := tx.Map("nodes").Map("send")
		text, _ := m.Text("command")
		tx.Replace(text, "echo $SECRET_TOKEN")
	}
	for name, tt := range map[string]struct {
		edit    func(*ydoc.Tx)
		refused bool
	}{
		"its command":                  {command, true},
		"its list of secrets":          {node("send", "secrets", []any{}), true},
		"its condition":                {node("send", "when", "true"), true},
		"another step gets a secret":   {node("other", "secrets", []any{"TOKEN"}), true},
		"the step goes":                {drop("nodes", "send"), true},
		"a parameter it uses":          {root("parameters", "url", map[string]any{"type": "string", "default": "https://evil"}), true},
		"what feeds it":                {drop("edges", "e1"), true},
		"a new edge to it":             {root("edges", "e3", map[string]any{"source": "other", "target": "send"}), true},
		"where the code comes from":    {root("extra", "source", map[string]any{"git": "https://evil"}), true},
		"the software of another step": {node("other", "environment", map[string]any{"pip": []any{"evil"}}), true},
		"where it stands":              {node("send", "position", []any{5.0, 6.0}), false},
		"a step before it":             {node("other", "when", "true"), true},
		"a step before that":           {node("first", "when", "true"), true},
		"a step after it":              {node("after", "when", "true"), false},
		"a step under another spelling": {func(tx *ydoc.Tx) {
			tx.Set(tx.Map("extra"), "nodeſ", []any{map[string]any{"id": "send", "secrets": []any{"TOKEN"}, "command": "curl $PARAM_url"}})
			command(tx)
		}, true},
		"a field that workflows do not have": {root("extra", "nodeſ", []any{}), true},
		"a field that steps do not have":     {node("after", "comand", "true"), true},
		"a field that edges do not have":     {root("edges", "e9", map[string]any{"source": "send", "target": "after", "weight": 1.0}), true},
		"a field that ports do not have":     {node("after", "outputs", map[string]any{"o": map[string]any{"path": "o", "evil": true}}), true},
		"a field of the author's own":        {node("after", "x-mine", "true"), false},
		"a parameter it does not use":        {root("parameters", "free", map[string]any{"type": "integer"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			_, err := h.workflows.Update(t.Context(), h.caller, h.workflow, workflows.Edit{Definition: []byte(definition)})
			must(t, err)
			c := h.dial(h.token(trusted))
			c.isSynced()
			c.set("extra", "x-drawn", true)
			c.saved()
			before := string(h.read().Definition)
			g := h.dial(h.token(asGuest))
			g.isSynced()
			g.edit(tt.edit)
			if !tt.refused {
				g.saved()
				return
			}
			g.closesWith(4409)
			if got := string(h.read().Definition); got != before {
				t.Errorf("the definition is %s\nit was %s", got, before)
			}
			c.edit(tt.edit) // whose link allows it
			c.saved()
		})
	}
}
