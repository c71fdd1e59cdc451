package document

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ydoc"
)

const whole = `{"version":1,"parameters":{"q":{"type":"integer","default":20}},"inputs":{"reads":{"type":"files"}},
	"nodes":[{"id":"b","type":"task","name":"B","position":{"x":1.5,"y":-2},"command":"cat é","inputs":{"i":{"from":"inputs.reads"}},
		"outputs":{"o":{"path":"o"}},"env":{"A":"b"},"retries":{"max":2,"on":["oom"]},"cache":true,"x-a":[1,{"b":null}],"ui":{"w":3}},
		{"id":"a","type":"note","text":"look","position":{"x":0,"y":0}}],
	"edges":[{"id":"e2","source":"b","target":"b"},{"id":"e1","source":"a","target":"b","ui":1}],
	"outputs":{"out":{"from":"b.o"}},"ui":{"zoom":2},"x-top":"kept"}`

// A definition becomes a document and comes back as it was, in its order.
func TestADefinitionSurvivesTheDocument(t *testing.T) {
	doc := ydoc.New(1, ydoc.Limits{Roots: Roots})
	if _, err := Write(doc, []byte(whole)); err != nil {
		t.Fatal(err)
	}
	got, err := Read(doc, []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := generic(t, got), generic(t, []byte(whole)); !reflect.DeepEqual(a, b) {
		t.Errorf("got %v\nwant %v", a, b)
	}
	update, err := Write(doc, got)
	if err != nil || update != nil {
		t.Errorf("saying it again changed %x, %v", update, err)
	}
	if _, ok := doc.Map("nodes").Map("b"); !ok {
		t.Error("a node is no map")
	}
}

// What a script leaves alone stays as it is: two who edit two fields both win.
func TestDrawingTouchesOnlyWhatDiffers(t *testing.T) {
	doc := ydoc.New(1, ydoc.Limits{Roots: Roots})
	if _, err := Write(doc, []byte(whole)); err != nil {
		t.Fatal(err)
	}
	peer := ydoc.New(2, ydoc.Limits{})
	if err := peer.Apply(doc.Encode()); err != nil {
		t.Fatal(err)
	}
	theirs, err := peer.Edit(func(tx *ydoc.Tx) error {
		node, _ := tx.Map("nodes").Map("b")
		text, _ := node.Text("command")
		tx.Insert(text, 5, "!")
		tx.Set(node, "name", "Renamed")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := Write(doc, bytes.Replace([]byte(whole), []byte(`"command":"cat é"`), []byte(`"command":"zcat é","timeoutSeconds":9`), 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Apply(theirs); err != nil {
		t.Fatal(err)
	}
	if err := peer.Apply(ours); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*ydoc.Doc{doc, peer} {
		node := d.JSON("nodes")["b"].(map[string]any)
		if node["command"] != "zcat é!" || node["name"] != "Renamed" || node["timeoutSeconds"] != 9.0 {
			t.Errorf("%v", node)
		}
	}
}

// Whatever people make of a document, it says a definition.
func TestAnyDocumentSaysADefinition(t *testing.T) {
	doc := ydoc.New(1, ydoc.Limits{Roots: Roots})
	_, err := doc.Edit(func(tx *ydoc.Tx) error {
		tx.Set(tx.Map("nodes"), "plain", map[string]any{"name": "P", "position": []any{1, 2}})
		tx.Set(tx.Map("nodes"), "text", "?")
		tx.Set(tx.Map("nodes"), "null", nil)
		tx.Set(tx.Map("edges"), "e", []any{1})
		tx.Set(tx.Map("extra"), "nodes", "hidden")
		tx.Set(tx.Map("meta"), "version", "two")
		tx.SetText(tx.Map("parameters"), "p", "x")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := Read(doc, []byte("nonsense"))
	if err != nil {
		t.Fatal(err)
	}
	g, problems := graph.Salvage(text)
	if len(problems) < 4 || g == nil {
		t.Errorf("%s: %v", text, problems)
	}
}

func generic(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
