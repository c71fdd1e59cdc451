package collab

import (
	"errors"

	"github.com/millrace/millrace/internal/domain/graph/guarded"
	"github.com/millrace/millrace/internal/domain/ydoc"
)

// Why an update of somebody who may not use secrets is refused.
var (
	errGuarded      = errors.New("your link does not let you change steps that use secrets, or what feeds them")
	errUnknownField = errors.New("your link does not let you add fields that workflows do not have")
)

// guard remembers what those may not change who may not use secrets.
type guard struct {
	version uint64 // of the document
	known   bool
	state   guarded.State
}

// guardedFields are the fields by which something becomes guarded.
var guardedFields = []string{"secrets", "connection", "source", "environment"}

// positionField is what moving a step writes, which happens all the time.
const positionField = "position"

// takeFrom applies an update of a client, if it may make it. mu is held.
func (r *room) takeFrom(c *conn, data []byte) ([]byte, error) {
	if !c.pass.Guarded() {
		return r.doc.Take(data)
	}
	before, err := r.guarded(c)
	if err != nil {
		return nil, err
	}
	return r.doc.TakeIf(data, func(added ydoc.Added) error {
		if added.Waits() {
			return errGuarded // nobody knows yet what it will change
		}
		if before.Nothing() && !added.MayName(guardedFields...) && !added.NamesAnyBut(positionField) {
			return nil
		}
		definition, err := r.definition(nil)
		if err != nil {
			return err
		}
		c.charge(len(definition))
		after := guarded.Of(definition)
		switch {
		case before.Changed(after):
			return errGuarded
		case before.NewField(after) != "":
			return errUnknownField
		}
		return nil
	})
}

// guarded is what the document has to guard. mu is held.
func (r *room) guarded(c *conn) (guarded.State, error) {
	if v := r.doc.Version(); !r.guard.known || r.guard.version != v {
		definition, err := r.definition(nil)
		if err != nil {
			return guarded.State{}, err
		}
		c.charge(len(definition))
		r.guard = guard{version: v, known: true, state: guarded.Of(definition)}
	}
	return r.guard.state, nil
}

// charge counts work that a client causes as if it had asked for as many bytes.
func (c *conn) charge(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered += bytes
}
