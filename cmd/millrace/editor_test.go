package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/collab/nodetest"
	"github.com/millrace/millrace/internal/sizetest"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// editors are real y-websocket clients in one Node process.
type editors struct {
	*nodetest.Script
	t *testing.T
}

func newEditors(t *testing.T) *editors {
	t.Helper()
	return &editors{nodetest.Start(t, "../../internal/collab/clients", "clients.mjs"), t}
}

func (c *editors) command(v map[string]any) any {
	c.t.Helper()
	var answer struct {
		Value any
		Error string
	}
	if c.Ask(c.t, v, &answer); answer.Error != "" {
		c.t.Fatal(answer.Error)
	}
	return answer.Value
}

// meet brings the owner, a guest who edits and one who looks into one room.
func (c *editors) meet(s *server, w shared) {
	c.t.Helper()
	c.open("ada", s, s.roomToken(w))
	c.open("bob", s, s.join(w.editor, "Bob"))
	c.open("eve", s, s.join(w.viewer, "Eve"))
	for _, who := range []string{"ada", "bob", "eve"} {
		c.wait(who, "provider.synced && doc.getMap('nodes').has('seed')")
	}
}

// run gives a client a piece of code; wait runs one until it is true.
func (c *editors) run(name, code string) any {
	c.t.Helper()
	return c.command(map[string]any{"do": "run", "name": name, "code": code})
}

const patience = 5 * time.Minute

func (c *editors) wait(name, code string) {
	c.t.Helper()
	if v := c.command(map[string]any{"do": "wait", "name": name, "code": "return " + code, "within": patience.Milliseconds()}); v == nil || v == false {
		c.t.Fatalf("%s never saw %s; it has %v", name, code, c.run(name, "return {json: doc.toJSON(), opened: me.opened, closed: me.closed, shut: me.shut, sent: me.sent, stored: me.stored, errors: me.errors.slice(-3)}"))
	}
}

// open connects a client with what a join or a room token gave.
func (c *editors) open(name string, s *server, data map[string]any) {
	c.t.Helper()
	token, ok := data["roomToken"].(string)
	if !ok {
		token = data["token"].(string)
	}
	c.command(map[string]any{
		"do": "open", "name": name, "url": strings.Replace(s.base, "http", "ws", 1) + "/editor",
		"room": data["room"], "token": token, "ack": true,
	})
}

const addNode = `const n = new Y.Map(); doc.transact(() => { doc.getMap('nodes').set(%q, n); n.set('type', 'task'); n.set('name', %q); n.set('position', [0, 0]);
	const t = new Y.Text(); t.insert(0, %q); n.set('command', t) })`

func (c *editors) add(name, id string) {
	c.t.Helper()
	c.run(name, fmt.Sprintf(addNode, id, id, "echo "+id))
}

// shared is a workflow with its links.
type shared struct {
	id             string
	token          string // of its owner
	editor, viewer string // invite tokens
	editorID       string
}

func (s *server) share(token string) shared {
	s.t.Helper()
	w := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"version":1,"nodes":[{"id":"seed","name":"Seed","type":"task","command":"true"}]}}`, "Authorization", bearer(token))
	out := shared{id: w["id"].(string), token: token}
	for _, role := range []string{"editor", "viewer"} {
		i := s.want(201, "POST", "/api/collab/invites", fmt.Sprintf(`{"workflowId":%q,"role":%q}`, out.id, role), "Authorization", bearer(token))
		if role == "editor" {
			out.editor, out.editorID = i["token"].(string), i["id"].(string)
		} else {
			out.viewer = i["token"].(string)
		}
	}
	return out
}

func (s *server) join(invite, name string) map[string]any {
	s.t.Helper()
	return s.want(200, "POST", "/api/collab/join", fmt.Sprintf(`{"invite":%q,"name":%q}`, invite, name))
}

func (s *server) roomToken(w shared) map[string]any {
	s.t.Helper()
	return s.want(200, "POST", "/api/collab/token", fmt.Sprintf(`{"workflowId":%q}`, w.id), "Authorization", bearer(w.token))
}

func nodesOf(w map[string]any) string {
	var names []string
	definition, _ := w["definition"].(map[string]any)
	list, _ := definition["nodes"].([]any)
	for _, n := range list {
		names = append(names, n.(map[string]any)["id"].(string))
	}
	return strings.Join(names, " ")
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Two editors and a viewer, with the unmodified client: all see the same, cut
// connections and a power cut lose nothing that was acknowledged, and what the
// viewer writes reaches nobody.
func TestPeopleEditTogetherThroughCutsAndAPowerCut(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data)
	token, _, _ := s.signUp("ada")
	w := s.share(token)
	c := newEditors(t)
	c.meet(s, w)
	c.add("ada", "fromAda")
	c.add("bob", "fromBob")
	c.wait("bob", "doc.getMap('nodes').has('fromAda')")
	c.wait("eve", "doc.getMap('nodes').has('fromAda') && doc.getMap('nodes').has('fromBob')")
	c.add("eve", "fromEve")

	// Presence carries the name of the token, whatever the client says.
	c.run("bob", "awareness.setLocalStateField('user', {name: 'Ada', role: 'owner'}); awareness.setLocalStateField('cursor', {x: 1, y: 2})")
	c.wait("ada", "[...awareness.getStates().values()].some((s) => s.cursor?.x === 1 && s.user.name === 'Bob' && s.user.role === 'editor')")

	// A cut connection comes back with what was written meanwhile.
	c.run("bob", "provider.disconnect()")
	c.wait("ada", "![...awareness.getStates().values()].some((s) => s.cursor)")
	c.add("bob", "offline")
	c.add("ada", "meanwhile")
	c.run("bob", "provider.connect()")
	c.wait("ada", "doc.getMap('nodes').has('offline')")
	c.wait("bob", "doc.getMap('nodes').has('meanwhile')")

	// The definition follows before it is read.
	got := s.want(200, "GET", "/api/workflows/"+w.id, "", "Authorization", bearer(token))
	if nodesOf(got) != "seed fromAda fromBob meanwhile offline" {
		t.Errorf("%s", nodesOf(got))
	}

	// So it does before a run, which keeps what it ran.
	c.add("ada", "justNow")
	c.wait("ada", "me.saved()")
	run := s.want(202, "POST", "/api/runs", `{"workflowId":"`+w.id+`"}`, "Authorization", bearer(token))
	if got := s.want(200, "GET", "/api/runs/"+run["runId"].(string), "", "Authorization", bearer(token)); !strings.Contains(nodesOf(got), "justNow") {
		t.Errorf("it ran %s", nodesOf(got))
	}

	// The power goes as soon as the last edit is acknowledged.
	for i := range 20 {
		c.add("ada", fmt.Sprintf("a%d", i))
		c.run("bob", fmt.Sprintf("doc.getMap('nodes').get('fromAda').get('command').insert(0, 'x'); doc.getMap('extra').set('ui', {n: %d})", i))
	}
	c.run("bob", "doc.getMap('nodes').delete('offline')")
	c.wait("ada", "me.saved()")
	c.wait("bob", "me.saved()")
	s.kill()
	// Nobody may bring back what the server should have kept.
	for _, who := range []string{"ada", "bob", "eve"} {
		c.run(who, "provider.disconnect()")
	}
	c.add("ada", "duringTheCut")
	again := start(t, "--data", data, "--listen", strings.TrimPrefix(s.base, "http://"))
	got = again.want(200, "GET", "/api/workflows/"+w.id, "", "Authorization", bearer(token))
	text := nodesOf(got)
	if strings.Contains(text, "offline") || strings.Contains(text, "fromEve") || !strings.Contains(text, "a19") {
		t.Errorf("after the power cut there is %s", text)
	}
	if !strings.Contains(string(mustJSON(t, got)), strings.Repeat("x", 20)+"echo fromAda") {
		t.Errorf("what was typed is %v", got["definition"])
	}
	for _, who := range []string{"ada", "bob", "eve"} {
		c.run(who, "provider.connect()")
	}
	for _, who := range []string{"bob", "eve"} {
		c.wait(who, "provider.synced && doc.getMap('nodes').has('duringTheCut')")
	}
	c.wait("ada", "me.saved()")
	same := "return JSON.stringify(['nodes', 'edges', 'extra'].map((k) => Object.entries(doc.getMap(k).toJSON()).sort()))"
	if a, b := c.run("ada", same), c.run("bob", same); a != b {
		t.Errorf("ada has %v\nbob has %v", a, b)
	}
	if c.run("ada", "return doc.getMap('nodes').get('fromAda').get('command').toString()") != strings.Repeat("x", 20)+"echo fromAda" {
		t.Error("the command is not what was typed")
	}
	if c.run("bob", "return doc.getMap('nodes').has('fromEve')") == true {
		t.Error("a viewer's write reached somebody")
	}

	// A definition that a script writes is an edit that everybody sees.
	got = again.want(200, "PUT", "/api/workflows/"+w.id, `{"definition":{"version":1,"nodes":[{"id":"seed","name":"Sown","type":"task","command":"true"}]}}`, "Authorization", bearer(token))
	if nodesOf(got) != "seed" {
		t.Errorf("%s", nodesOf(got))
	}
	for _, who := range []string{"ada", "bob", "eve"} {
		c.wait(who, "doc.getMap('nodes').get('seed').get('name') === 'Sown' && !doc.getMap('nodes').has('a1')")
	}
}

// Whoever loses access leaves the room within moments.
func TestLosingAccessClosesTheSocket(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir())
	token, _, _ := s.signUp("ada")
	w := s.share(token)
	c := newEditors(t)
	c.meet(s, w)
	s.want(200, "DELETE", "/api/collab/invites?id="+w.editorID, "", "Authorization", bearer(token))
	c.wait("bob", "me.closed?.code === 4403")
	second, _, _ := s.signUp("second")
	other := s.share(second)
	c.open("second", s, s.roomToken(other))
	c.wait("second", "provider.synced")
	s.want(200, "POST", "/auth/sign-out", "", "Authorization", bearer(second))
	c.wait("second", "me.closed?.code === 4403")
	s.want(200, "DELETE", "/api/workflows/"+w.id, "", "Authorization", bearer(token))
	for _, who := range []string{"ada", "eve"} {
		c.wait(who, "me.closed?.code === 4404 || me.closed?.code === 4403")
	}
}

// A client gives up after 30 seconds in which it heard nothing.
func TestAnIdleViewerStays(t *testing.T) {
	if !sizetest.All() {
		t.Skip("it takes minutes: make test-all")
	}
	t.Parallel()
	s := start(t, "--data", t.TempDir())
	token, _, _ := s.signUp("ada")
	c := newEditors(t)
	c.open("eve", s, s.join(s.share(token).viewer, "Eve"))
	c.run("eve", "awareness.setLocalState(null)")
	c.wait("eve", "provider.synced")
	if !waittest.While(65*time.Second, func() bool { return c.run("eve", "return provider.wsconnected && me.opened === 1") == true }) {
		t.Errorf("it left: %v", c.run("eve", "return {opened: me.opened, shut: me.shut}"))
	}
}

// People in one room on two servers see each other, and one server's end takes
// nothing with it.
func TestOneRoomOnTwoServers(t *testing.T) {
	t.Parallel()
	args := []string{"--database-url", storetest.Postgres(t), "--secret-key", "shared by all replicas", "--public-urls", "http://millrace.example", "--sign-up", "open"}
	a := start(t, append(args, "--data", t.TempDir())...)
	b := start(t, append(args, "--data", t.TempDir())...)
	token, _, _ := a.signUp("ada")
	w := a.share(token)
	c := newEditors(t)
	c.open("ada", a, a.roomToken(w))
	c.open("bob", b, b.join(w.editor, "Bob"))
	c.wait("ada", "provider.synced")
	c.wait("bob", "provider.synced")
	c.run("ada", "awareness.setLocalStateField('cursor', {x: 7})")
	c.wait("bob", "[...awareness.getStates().values()].some((s) => s.cursor?.x === 7 && s.user.name === 'ada')")
	c.add("ada", "fromAda")
	c.wait("bob", "doc.getMap('nodes').has('fromAda')")
	c.add("bob", "fromBob")
	c.wait("ada", "doc.getMap('nodes').has('fromBob')")
	for i := range 30 {
		c.run("ada", fmt.Sprintf("doc.getMap('extra').set('x-a', %d)", i))
		c.run("bob", fmt.Sprintf("doc.getMap('extra').set('x-b', %d)", i))
	}
	c.wait("bob", "me.saved()")
	b.kill()
	c.wait("ada", "me.saved() && doc.getMap('extra').get('x-b') === 29")
	got := a.want(200, "GET", "/api/workflows/"+w.id, "", "Authorization", bearer(token))
	if nodesOf(got) != "seed fromAda fromBob" || got["definition"].(map[string]any)["x-b"] != 29.0 {
		t.Errorf("%v", got["definition"])
	}
}
