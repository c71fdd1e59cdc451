package collab

import (
	"encoding/json"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
)

// renameRequest asks for the edits that rename a thing. Only the server can
// read expressions, so clients leave finding them to it; they make the edits.
type renameRequest struct {
	Request int        `json:"request"` // the client's own number, repeated in the answer
	Kind    graph.Kind `json:"kind"`
	Node    string     `json:"node"` // the step, for one of its outputs
	Name    string     `json:"name"`
	To      string     `json:"to"`
}

type renameAnswer struct {
	Request int          `json:"request"`
	Edits   []fault.Edit `json:"edits"`
}

func (r *room) latestDefinition() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock() // also after a panic, so that the room can be closed
	return r.definition(nil)
}

// rename answers with the edits that make everything in the document name a thing
// by another name. The document has all that the client had written before it
// asked.
func (r *room) rename(c *conn, body []byte) {
	var in renameRequest
	if json.Unmarshal(body, &in) != nil || !graph.ValidName(in.To) {
		c.close(codeBad, "this is no request to rename anything")
		return
	}
	definition, err := r.latestDefinition()
	if err != nil {
		c.close(codeBad, "the document cannot be read")
		return
	}
	c.charge(len(definition))
	g, _ := graph.Salvage(definition)
	answer := renameAnswer{Request: in.Request, Edits: g.Rename(graph.Name{Kind: in.Kind, Node: in.Node, Name: in.Name}, in.To)}
	if answer.Edits == nil {
		answer.Edits = []fault.Edit{}
	}
	text, err := json.Marshal(answer)
	if err != nil { // strings can always be written
		panic(err)
	}
	var w lib0.Writer
	w.Uint(kindRename)
	w.String(string(text))
	c.reply(framed(w.Bytes()))
}
