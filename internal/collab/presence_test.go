package collab

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/sharing"
)

// presences is a room with nobody's socket, at a time that the test sets.
type presences struct {
	*room
	now time.Time
}

func newPresences() *presences {
	p := &presences{now: time.Unix(1_000_000, 0)}
	s := New(Options{Now: func() time.Time { return p.now }, Bridge: noBridge{}})
	p.room = newRoom(s, "team_1", "wf_1")
	return p
}

type noBridge struct{ sharing.Bridge }

func (p *presences) socket(name string) *conn {
	return newConn(p.room, nil, nil, sharing.Pass{User: "user_1", Name: name, Role: sharing.Editor}, false)
}

func said(client, clock uint64, state string) []entry {
	e := entry{client: client, clock: clock}
	if state != "" {
		e.state = json.RawMessage(state)
	}
	return []entry{e}
}

// seen are who is here, each with the name that they wear and where they are.
func (p *presences) seen() string {
	var list []string
	for client, one := range p.people {
		if one.state == nil {
			continue
		}
		var state struct {
			User struct{ Name string }
			At   string
		}
		_ = json.Unmarshal(one.state, &state)
		list = append(list, fmt.Sprint(client, " ", state.User.Name, " ", state.At))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func TestNobodySpeaksForAnothersSocket(t *testing.T) {
	t.Parallel()
	p := newPresences()
	ada, eve := p.socket("Ada"), p.socket("Eve")
	for i, step := range []struct {
		do   func()
		want string
	}{
		{func() { p.updatePresence(ada, said(1, 1, `{"at":"a","user":{"name":"Eve"}}`)) }, "1 Ada a"},
		{func() { p.updatePresence(eve, said(1, 9, `{"at":"stolen"}`)) }, "1 Ada a"},
		{func() { p.updatePresence(eve, said(1, 9, "")) }, "1 Ada a"},
		{func() { p.updatePresence(ada, said(1, 1, `{"at":"again"}`)) }, "1 Ada a"},
		{func() { p.updatePresence(ada, said(1, 2, `{"at":"b"}`)) }, "1 Ada b"},
		{func() { p.updatePresence(ada, said(1, 1, `{"at":"late"}`)) }, "1 Ada b"},
		{func() { p.mergePresence(said(1, 50, `{"at":"elsewhere","user":{"name":"Mia"}}`)) }, "1 Ada b"},
		{func() { p.mergePresence(said(2, 1, `{"at":"c","user":{"name":"Mia"}}`)) }, "1 Ada b, 2 Mia c"},
		{func() { p.updatePresence(eve, said(2, 9, `{"at":"stolen"}`)) }, "1 Ada b, 2 Mia c"},
		{func() { p.updatePresence(eve, said(2, 9, "")) }, "1 Ada b, 2 Mia c"},
		{func() { p.mergePresence(said(2, 1, "")) }, "1 Ada b"},
		{func() { p.mergePresence(said(4, 1, `{"at":"d","user":{"id":"user_1","name":"Ada"}}`)) }, "1 Ada b, 4 Ada d"},
		{func() { p.updatePresence(ada, said(4, 2, `{"at":"back"}`)) }, "1 Ada b, 4 Ada back"}, // by this server
		{func() { p.updatePresence(ada, said(4, 2, "")) }, "1 Ada b"},
		{func() { p.mergePresence(said(3, 1, "")) }, "1 Ada b"}, // who never was here is not gone
		{func() { p.updatePresence(ada, said(1, 2, "")) }, ""},
	} {
		if step.do(); p.seen() != step.want {
			t.Errorf("%d: %q, want %q", i, p.seen(), step.want)
		}
	}
}

func TestASocketIntroducesFewAndTakesThemAlong(t *testing.T) {
	t.Parallel()
	p := newPresences()
	ada, eve := p.socket("Ada"), p.socket("Eve")
	for client := range uint64(maxClients + 5) {
		p.updatePresence(ada, said(client, 1, `{}`))
	}
	p.updatePresence(eve, said(100, 1, `{"at":"e"}`))
	if len(p.people) != maxClients+1 || len(ada.clients) != maxClients {
		t.Fatalf("%d are here, %d of one socket", len(p.people), len(ada.clients))
	}
	p.updatePresence(ada, said(3, 2, `{"at":"moved"}`)) // those it has may move
	if !strings.Contains(p.seen(), "3 Ada moved") {
		t.Error(p.seen())
	}
	p.conns[ada], p.conns[eve] = true, true
	p.leave(ada)
	p.leave(ada)
	if p.seen() != "100 Eve e" {
		t.Errorf("after it left: %s", p.seen())
	}
	here, elsewhere := p.gather(p.now)
	gone := 0
	for _, e := range here {
		if e.state == nil {
			gone++
		}
	}
	if gone != maxClients || len(elsewhere) != maxClients+1 {
		t.Errorf("%d are told to be gone, and %d elsewhere", gone, len(elsewhere))
	}
	if p.gather(p.now.Add(time.Second)); len(p.people) != 1 {
		t.Errorf("%d are remembered", len(p.people))
	}
}

func TestWhoSaysNothingForHalfAMinuteIsGone(t *testing.T) {
	t.Parallel()
	p := newPresences()
	ada := p.socket("Ada")
	p.updatePresence(ada, said(1, 1, `{"at":"a"}`))
	p.mergePresence(said(2, 1, `{"at":"b","user":{"name":"Mia"}}`))
	p.now = p.now.Add(presenceLife)
	if p.gather(p.now); p.seen() != "1 Ada a, 2 Mia b" {
		t.Error(p.seen())
	}
	p.updatePresence(ada, said(1, 2, `{"at":"a"}`))
	p.now = p.now.Add(time.Second)
	if _, elsewhere := p.gather(p.now); p.seen() != "1 Ada a" || len(elsewhere) != 1 {
		t.Errorf("%s, and %d are told elsewhere", p.seen(), len(elsewhere))
	}
	p.now = p.now.Add(presenceLife)
	if p.gather(p.now); p.seen() != "" {
		t.Error(p.seen())
	}
	p.gather(p.now.Add(time.Second))
	if p.updatePresence(ada, said(1, 3, `{"at":"back"}`)); p.seen() != "1 Ada back" {
		t.Errorf("who comes back: %s", p.seen())
	}
}

// A server that opens the room gets everybody who is here, and nobody who is there.
func TestAnotherServerIsToldWhoIsHere(t *testing.T) {
	t.Parallel()
	p := newPresences()
	p.updatePresence(p.socket("Ada"), said(1, 1, `{}`))
	p.mergePresence(said(2, 1, `{}`))
	p.gather(p.now)
	p.noteServer("other", true)
	p.now = p.now.Add(time.Second)
	if _, elsewhere := p.gather(p.now); len(elsewhere) != 1 || elsewhere[0].client != 1 || !p.hasOthers() {
		t.Errorf("%+v", elsewhere)
	}
	p.now = p.now.Add(time.Second)
	if _, elsewhere := p.gather(p.now); len(elsewhere) != 0 {
		t.Errorf("again: %+v", elsewhere)
	}
	if p.noteServer("other", false); p.hasOthers() {
		t.Error("who closed the room has it open")
	}
}
