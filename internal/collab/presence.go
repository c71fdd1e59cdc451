package collab

import (
	"encoding/json"
	"time"
)

// presenceLife is how long somebody counts as here without saying so again.
const presenceLife = 30 * time.Second

const maxClients = 8 // presences of one socket

// person is somebody's presence.
type person struct {
	entry
	conn *conn     // nil: on another server
	at   time.Time // when they last said so
}

// join lets a socket into the room, and sends it what there is.
func (r *room) join(c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended || r.leaving:
		c.close(codeRestart, "the room was closed; come back")
		return false
	case c.pass.Epoch != r.head.Epoch:
		c.close(codeReset, "the document has started afresh: join anew")
		return false
	case len(r.conns) >= maxConns:
		c.close(codeSlow, "the room is full; try again")
		return false
	}
	r.conns[c], r.emptied = true, time.Time{}
	r.s.counts.conns.Add(1)
	c.send(syncFrame(syncStep1, r.doc.StateVector()))
	c.send(r.everybody())
	return true
}

// leave takes a socket and the presences it introduced out of the room.
func (r *room) leave(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.conns[c] {
		return
	}
	delete(r.conns, c)
	r.s.counts.conns.Add(-1)
	for id := range c.clients {
		if p := r.people[id]; p != nil && p.conn == c {
			p.state = nil
			r.queuePresence(id, true)
		}
	}
	if len(r.conns) == 0 {
		r.emptied = r.s.Now()
	}
	r.wakeUp()
}

// updatePresence takes in what a socket says of who is where. Nobody speaks for another
// socket's client, and everybody wears their own name.
func (r *room) updatePresence(c *conn, list []entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.s.Now()
	for _, e := range list {
		p := r.people[e.client]
		if p != nil && p.conn != c && !p.movedTo(c) {
			continue
		}
		if !c.clients[e.client] && len(c.clients) >= maxClients || !newer(p, e) || e.setUser(c.user) != nil {
			continue
		}
		c.clients[e.client] = true
		r.people[e.client] = &person{entry: e, conn: c, at: now}
		r.queuePresence(e.client, true)
	}
}

// movedTo reports whether a socket may speak for somebody who is here without one of
// this server: who comes back by another server is the same person.
func (p *person) movedTo(c *conn) bool {
	switch {
	case p.conn != nil:
		return false
	case p.state == nil:
		return true
	}
	// Read by exact names: a struct would also take what a client wrote as "uſer".
	var state, user map[string]json.RawMessage
	var id string
	return json.Unmarshal(p.state, &state) == nil && json.Unmarshal(state["user"], &user) == nil && json.Unmarshal(user["id"], &id) == nil && id == c.pass.Subject()
}

// newer reports whether an entry says more than what is known.
func newer(p *person, e entry) bool {
	if p == nil {
		return e.state != nil
	}
	return e.clock > p.clock || e.clock == p.clock && e.state == nil && p.state != nil
}

// mergePresence takes in what another server says of the people there.
func (r *room) mergePresence(list []entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range list {
		p := r.people[e.client]
		if p != nil && p.conn != nil || !newer(p, e) {
			continue
		}
		r.people[e.client] = &person{entry: e, at: r.s.Now()}
		r.queuePresence(e.client, false)
	}
}

// queuePresence notes that a presence is to be sent. mu is held.
func (r *room) queuePresence(client uint64, ours bool) {
	r.changedPresence[client] = true
	if ours && r.s.Bridge != nil {
		r.toBridge[client] = true
	}
	r.wakeUp()
}

// introduce sends a socket who is here.
func (r *room) introduce(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.reply(r.everybody())
}

// everybody is a message about all who are here. mu is held.
func (r *room) everybody() []byte {
	list := make([]entry, 0, len(r.people))
	for _, p := range r.people {
		if p.state != nil {
			list = append(list, p.entry)
		}
	}
	return presenceFrame(list)
}

// gather collects what is to be sent, here and to the other servers, and
// forgets who is gone.
func (r *room) gather(now time.Time) (here, elsewhere []entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.people {
		if p.state != nil && now.Sub(p.at) > presenceLife {
			p.state = nil
			r.queuePresence(id, p.conn != nil)
		}
	}
	if now.Sub(r.presenceSentAt) >= r.s.Times.Presence {
		here = r.entries(r.changedPresence)
	}
	if now.Sub(r.bridged) >= bridgePause {
		if r.sendAllPresence {
			r.sendAllPresence = false
			for id, p := range r.people {
				if p.conn != nil {
					r.toBridge[id] = true
				}
			}
		}
		elsewhere = r.entries(r.toBridge)
	}
	for id, p := range r.people {
		if p.state == nil && !r.changedPresence[id] && !r.toBridge[id] {
			delete(r.people, id)
			if p.conn != nil {
				delete(p.conn.clients, id)
			}
		}
	}
	if len(here) > 0 {
		r.presenceSentAt = now
	}
	if len(elsewhere) > 0 {
		r.bridged = now
	}
	return here, elsewhere
}

// entries are those of the people named, to be sent.
func (r *room) entries(named map[uint64]bool) []entry {
	list := make([]entry, 0, len(named))
	for id := range named {
		if p := r.people[id]; p != nil {
			list = append(list, p.entry)
		}
		delete(named, id)
	}
	return list
}
