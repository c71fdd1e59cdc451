package collab

import (
	"errors"

	"github.com/millrace/millrace/internal/domain/document"
	"github.com/millrace/millrace/internal/domain/graph/guarded"
	"github.com/millrace/millrace/internal/domain/ydoc"
)

// errGuarded is about an update that changes what its author may not.
var errGuarded = errors.New("the update changes what uses secrets")

const guardedReason = "your link does not let you change steps that use secrets, or what feeds them"

// guard remembers what those may not change who may not use secrets.
type guard struct {
	version uint64 // of the document
	known   bool
	text    string
}

// guardedFields are the fields by which something becomes guarded.
var guardedFields = []string{"secrets", "connection", "source", "environment"}

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
		if before == "" && !added.MayName(guardedFields...) {
			return nil
		}
		definition, err := document.Read(r.doc, nil)
		if err != nil {
			return err
		}
		c.charge(len(definition))
		if guarded.Text(definition) != before {
			return errGuarded
		}
		return nil
	})
}

// guarded is what the document has to guard. mu is held.
func (r *room) guarded(c *conn) (string, error) {
	if v := r.doc.Version(); !r.guard.known || r.guard.version != v {
		definition, err := document.Read(r.doc, nil)
		if err != nil {
			return "", err
		}
		c.charge(len(definition))
		r.guard = guard{version: v, known: true, text: guarded.Text(definition)}
	}
	return r.guard.text, nil
}

// charge counts work that a client causes as if it had asked for as many bytes.
func (c *conn) charge(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered += bytes
}
