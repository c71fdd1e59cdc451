package collab_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/ydoc"
	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
)

func renameFrame(request string) []byte {
	var w lib0.Writer
	w.Uint(102)
	w.String(request)
	return w.Bytes()
}

func setID(key, id string) func(tx *ydoc.Tx) {
	return func(tx *ydoc.Tx) {
		node, _ := tx.Map("nodes").Map(key)
		tx.Set(node, "id", id)
	}
}

// stepIDs are the ids of the steps that a client sees, by key.
func (c *client) stepIDs() map[string]any {
	found := map[string]any{}
	for key, node := range c.doc.JSON("nodes") {
		found[key] = node.(map[string]any)["id"]
	}
	return found
}

func TestRenamedStepKeepsItsLinesAndWhatOthersType(t *testing.T) {
	h := newHarness(t)
	ada, bob := h.dial(h.token()), h.dial(h.token())
	ada.isSynced()
	bob.isSynced()
	bob.edit(func(tx *ydoc.Tx) {
		node, _ := tx.Map("nodes").Map("trim")
		text, _ := node.Text("command")
		tx.Insert(text, 3, " reads")
	})
	ada.edit(setID("trim", "only_robins"))
	ada.saved()
	bob.saved()
	got := string(h.read().Definition)
	for _, want := range []string{`"id":"only_robins"`, `"command":"cat reads"`, `"source":"only_robins"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

// The step that takes an id later gets a number, and everybody sees it.
func TestStepsThatTakeOneIDGetDifferentOnes(t *testing.T) {
	h := newHarness(t)
	ada, bob := h.dial(h.token()), h.dial(h.token())
	ada.isSynced()
	bob.isSynced()
	bob.edit(setID("trim", "birds"))
	bob.saved()
	h.read()
	ada.edit(setID("align", "birds"))
	ada.saved()
	if got := string(h.read().Definition); !strings.Contains(got, `"source":"birds","sourceHandle":"o","target":"birds_2"`) {
		t.Error(got)
	}
	for _, c := range []*client{ada, bob} {
		c.until("saw the number", func() bool { return c.stepIDs()["align"] == "birds_2" && c.stepIDs()["trim"] == "birds" })
	}
}

// Nothing but lines and commands says the input of a step, which the client changes.
func TestRenameRequestLeavesOutputsOfTheNameOfAnInput(t *testing.T) {
	h := newHarness(t)
	c := h.dial(h.token())
	c.isSynced()
	c.edit(func(tx *ydoc.Tx) {
		trim, _ := tx.Map("nodes").Map("trim")
		tx.Set(trim, "inputs", map[string]any{"o": map[string]any{"optional": true}})
		align, _ := tx.Map("nodes").Map("align")
		tx.Set(align, "when", `nodes.trim.outputs.o != ""`)
	})
	c.send(renameFrame(`{"request":8,"kind":"port","node":"trim","name":"o","to":"birds"}`))
	c.until("answered", func() bool { return c.renames != "" })
	if c.renames != `{"request":8,"edits":[]}` {
		t.Error(c.renames)
	}
}

func TestRenameRequestFindsExpressions(t *testing.T) {
	h := newHarness(t)
	c := h.dial(h.token())
	c.isSynced()
	c.edit(func(tx *ydoc.Tx) {
		node, _ := tx.Map("nodes").Map("align")
		tx.Set(node, "when", `nodes.trim.outputs.o != "trim" && params.q > 1`)
		tx.Set(tx.Map("outputs"), "out", map[string]any{"from": "trim.o"})
	})
	c.send(renameFrame(`{"request":7,"kind":"step","name":"trim","to":"birds"}`))
	c.until("answered", func() bool { return c.renames != "" })
	var answer struct {
		Request int
		Edits   []struct{ Path, Value string }
	}
	must(t, json.Unmarshal([]byte(c.renames), &answer))
	if answer.Request != 7 || len(answer.Edits) != 2 ||
		answer.Edits[0].Path != "nodes.align.when" || answer.Edits[0].Value != `nodes.birds.outputs.o != "trim" && params.q > 1` ||
		answer.Edits[1].Path != "outputs.out.from" || answer.Edits[1].Value != "birds.o" {
		t.Errorf("%+v", answer)
	}
}
