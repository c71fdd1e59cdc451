package collab

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
	"github.com/millrace/millrace/internal/workflows"
)

// The messages of the y-websocket protocol, by their first number, and our
// own. Ours go only to clients that asked for them: others would complain.
const (
	kindSync      = 0
	kindAwareness = 1
	kindAsk       = 3 // for everybody's presence

	kindStored = 100 // how many of the client's changes are stored
	kindSynced = 101 // what the definition has become, as JSON
	kindRename = 102 // asks which texts name a thing, and how they would name it by another name
)

// The parts of a sync message.
const (
	syncStep1  = 0 // a state vector: asks for what the sender lacks
	syncStep2  = 1 // what you lack
	syncUpdate = 2 // what has changed
)

// What a client may send.
const (
	maxFrame     = 1 << 20
	maxPresence  = 64 << 10
	maxState     = 16 << 10 // of one person; a larger one is left out
	maxEntries   = 64
	maxRename    = 4 << 10
	emptyEntries = "\x01\x01\x00" // a message that says nothing
)

// message is what a client said.
type message struct {
	kind    uint64
	part    uint64  // of a sync message
	body    []byte  // of a sync message or a rename
	entries []entry // of an awareness message
}

// entry is one person's presence, as the protocol has it.
type entry struct {
	client uint64
	clock  uint64
	state  json.RawMessage // nil: gone
}

// read takes a message apart. It fails for what no client would send.
func read(frame []byte) (m message, err error) {
	r := lib0.NewReader(frame)
	switch m.kind = r.Uint(); m.kind {
	case kindSync:
		if m.part = r.Uint(); m.part > syncUpdate {
			r.Fail()
		}
		m.body = r.Bytes()
	case kindAwareness:
		body := r.Bytes()
		if len(body) > maxPresence {
			r.Fail()
			break
		}
		if m.entries, err = readEntries(body); err != nil {
			return m, err
		}
	case kindAsk:
	case kindRename:
		if m.body = r.Bytes(); len(m.body) > maxRename {
			r.Fail()
		}
	default:
		r.Fail()
	}
	if r.Len() > 0 {
		r.Fail()
	}
	return m, r.Err()
}

func readEntries(body []byte) (list []entry, err error) {
	r := lib0.NewReader(body)
	n := r.Count()
	if n > maxEntries {
		r.Fail()
	}
	for ; n > 0 && r.Err() == nil; n-- {
		e := entry{client: r.Uint(), clock: r.Uint()}
		state := r.Bytes()
		if len(state) > maxState {
			continue
		}
		var fields map[string]json.RawMessage
		if !utf8.Valid(state) || json.Unmarshal(state, &fields) != nil {
			r.Fail()
			break
		}
		if fields != nil {
			e.state = append(json.RawMessage{}, state...)
		}
		list = append(list, e)
	}
	if r.Len() > 0 {
		r.Fail()
	}
	return list, r.Err()
}

// setUser puts into a state who it really is, whatever the client wrote.
func (e *entry) setUser(user json.RawMessage) error {
	if e.state == nil {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(e.state, &fields); err != nil {
		return err
	}
	fields["user"] = user
	var err error
	e.state, err = json.Marshal(fields)
	return err
}

// framed is a message as a server sends it: one binary frame.
func framed(message []byte) []byte {
	const final, binaryMessage, two, eight = 0x80, 2, 126, 127
	head := append(make([]byte, 0, 10+len(message)), final|binaryMessage)
	switch n := len(message); {
	case n < two:
		head = append(head, byte(n))
	case n <= 0xffff:
		head = binary.BigEndian.AppendUint16(append(head, two), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, eight), uint64(n))
	}
	return append(head, message...)
}

func syncFrame(part uint64, body []byte) []byte {
	var w lib0.Writer
	w.Uint(kindSync)
	w.Uint(part)
	w.Buffer(body)
	return framed(w.Bytes())
}

func presenceBody(list []entry) []byte {
	var w lib0.Writer
	w.Uint(uint64(len(list)))
	for _, e := range list {
		w.Uint(e.client)
		w.Uint(e.clock)
		if e.state == nil {
			w.String("null")
		} else {
			w.String(string(e.state))
		}
	}
	return w.Bytes()
}

func presenceFrame(list []entry) []byte {
	var w lib0.Writer
	w.Uint(kindAwareness)
	w.Buffer(presenceBody(list))
	return framed(w.Bytes())
}

func storedFrame(n uint64) []byte {
	var w lib0.Writer
	w.Uint(kindStored)
	w.Uint(n)
	return framed(w.Bytes())
}

// syncedFrame is what the definition has become: its revision, and the
// problems that everybody should see.
func syncedFrame(definition workflows.Workflow) ([]byte, error) {
	news := struct {
		Revision int       `json:"revision"`
		ETag     string    `json:"etag"`
		Problems []problem `json:"problems"`
		Warnings []problem `json:"warnings"`
	}{definition.Revision, definition.ETag(), problemList(definition.Problems), problemList(definition.Warnings)}
	text, err := json.Marshal(news)
	var w lib0.Writer
	w.Uint(kindSynced)
	w.String(string(text))
	return framed(w.Bytes()), err
}

// problem is a problem as the API shows it, whatever it lacks.
type problem struct {
	Path    string     `json:"path"`
	Message string     `json:"message"`
	Code    string     `json:"code"`
	Node    *string    `json:"node"`
	Edge    *string    `json:"edge"`
	Field   string     `json:"field"`
	Fix     *fault.Fix `json:"fix"`
}

func problemList(list []graph.Problem) []problem {
	out := make([]problem, len(list))
	for i, p := range list {
		out[i] = problem{Path: p.Path, Message: p.Message, Code: cmp.Or(p.Code, graph.InvalidValue), Field: p.Field, Fix: p.Fix}
		if p.Node != "" {
			out[i].Node = &p.Node
		}
		if p.Edge != "" {
			out[i].Edge = &p.Edge
		}
	}
	return out
}
