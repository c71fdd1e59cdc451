package document

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ydoc"
)

const whole = `{"version":1,"parameters":{"q":{"type":"object","default":{"deep":[1]},"description":"Help"}},"inputs":{"reads":{"type":"files"}},
	"nodes":[{"id":"b","type":"task","name":"B","position":{"x":1.5,"y":-2},"command":"cat é","inputs":{"i":{"from":"inputs.reads"}},
		"outputs":{"o":{"path":"o"}},"env":{"A":"b"},"retries":{"max":2,"on":["oom"]},"resources":{"vcpu":2},"scatter":{"over":"[1]"},"cache":true,"x-a":[1,{"b":null}],"ui":{"w":3}},
		{"id":"a","type":"note","text":"look","position":{"x":0,"y":0}}],
	"edges":[{"id":"e2","source":"b","target":"b"},{"id":"e1","source":"a","target":"b","ui":1}],
	"outputs":{"out":{"from":"b.o"}},"ui":{"zoom":2},"x-top":"kept"}`

// A definition becomes a document and comes back as it was, in its order.
func TestADefinitionSurvivesTheDocument(t *testing.T) {
	doc := ydoc.New(1, ydoc.Limits{Roots: Roots})
	if _, err := Write(doc, []byte(whole)); err != nil {
		t.Fatal(err)
	}
	got, err := Read(doc, IDs(doc, nil), []byte(whole))
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
	text, err := Read(doc, IDs(doc, nil), []byte("nonsense"))
	if err != nil {
		t.Fatal(err)
	}
	g, problems := graph.Salvage(text)
	if len(problems) < 4 || g == nil {
		t.Errorf("%s: %v", text, problems)
	}
}

// definitionOf is what a document says, as JSON values.
func definitionOf(t *testing.T, doc *ydoc.Doc, held map[string]string) map[string]any {
	t.Helper()
	text, err := Read(doc, IDs(doc, held), nil)
	if err != nil {
		t.Fatal(err)
	}
	return generic(t, text).(map[string]any)
}

func edit(t *testing.T, doc *ydoc.Doc, change func(tx *ydoc.Tx)) (update []byte) {
	t.Helper()
	update, err := doc.Edit(func(tx *ydoc.Tx) error {
		change(tx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return update
}

func setID(key, id string) func(tx *ydoc.Tx) {
	return func(tx *ydoc.Tx) {
		node, _ := tx.Map("nodes").Map(key)
		tx.Set(node, "id", id)
	}
}

// A step that is renamed keeps what others type in it meanwhile, and the lines
// that they draw to it.
func TestRenamedStepKeepsConcurrentEdits(t *testing.T) {
	ours, theirs := ydoc.New(1, ydoc.Limits{Roots: Roots}), ydoc.New(2, ydoc.Limits{})
	seed, err := Write(ours, []byte(`{"version":1,"nodes":[{"id":"a","command":"cat"},{"id":"b"}],"edges":[{"id":"e","source":"a","target":"b"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.Apply(seed); err != nil {
		t.Fatal(err)
	}
	renamed := edit(t, ours, setID("a", "trim"))
	typed := edit(t, theirs, func(tx *ydoc.Tx) {
		node, _ := tx.Map("nodes").Map("a")
		text, _ := node.Text("command")
		tx.Insert(text, 3, " x")
		tx.Set(tx.Map("edges"), "f", map[string]any{"source": "b", "target": "a"})
	})
	for doc, update := range map[*ydoc.Doc][]byte{ours: typed, theirs: renamed} {
		if err := doc.Apply(update); err != nil {
			t.Fatal(err)
		}
		want := generic(t, []byte(`{"version":1,"parameters":{},"inputs":{},"outputs":{},
			"nodes":[{"id":"b"},{"id":"trim","command":"cat x"}],
			"edges":[{"id":"e","source":"trim","target":"b"},{"id":"f","source":"b","target":"trim"}]}`))
		if got := definitionOf(t, doc, nil); !reflect.DeepEqual(any(got), want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	}
	// Saving the same definition again changes nothing; another id is another step.
	text, _ := Read(ours, IDs(ours, nil), nil)
	if update, err := Write(ours, text); err != nil || update != nil {
		t.Errorf("saying it again changed %x, %v", update, err)
	}
	if _, err := Write(ours, []byte(`{"nodes":[{"id":"a","command":"new"},{"id":"trim","command":"cat x"}],"edges":[{"id":"e","source":"a","target":"trim"}]}`)); err != nil {
		t.Fatal(err)
	}
	if got := definitionOf(t, ours, nil); len(got["nodes"].([]any)) != 2 || !reflect.DeepEqual(got["edges"], generic(t, []byte(`[{"id":"e","source":"a","target":"trim"}]`))) {
		t.Errorf("%v", got)
	}
	if node, ok := ours.Map("nodes").Map("a"); !ok || node.JSON()["command"] != "cat x" {
		t.Error("the renamed step was made again")
	}
}

// A step without a command has an empty text, which the definition leaves out.
// What somebody types in it survives a definition that says no command.
func TestTaskHasATextFromTheBeginning(t *testing.T) {
	const plain = `{"version":1,"nodes":[{"id":"a","type":"task"},{"id":"b","type":"note"}],"edges":[]}`
	ours, theirs := ydoc.New(1, ydoc.Limits{Roots: Roots}), ydoc.New(2, ydoc.Limits{})
	seed, err := Write(ours, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.Apply(seed); err != nil {
		t.Fatal(err)
	}
	if got := definitionOf(t, ours, nil)["nodes"]; !reflect.DeepEqual(got, generic(t, []byte(plain)).(map[string]any)["nodes"]) {
		t.Errorf("got %v", got)
	}
	if update, err := Write(ours, []byte(plain)); err != nil || update != nil {
		t.Errorf("saying it again changed %x, %v", update, err)
	}
	typed := edit(t, theirs, func(tx *ydoc.Tx) {
		node, _ := tx.Map("nodes").Map("a")
		text, ok := node.Text("command")
		if !ok {
			t.Fatal("there is no text to type in")
		}
		tx.Insert(text, 0, "theirs\n")
	})
	for _, command := range []string{`,"command":"ours\n"`, ""} {
		if _, err := Write(ours, []byte(`{"version":1,"nodes":[{"id":"a","type":"task"`+command+`}]}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ours.Apply(typed); err != nil {
		t.Fatal(err)
	}
	if got := ours.JSON("nodes")["a"].(map[string]any)["command"]; got != "theirs\n" {
		t.Errorf("the command is %q", got)
	}
}

// Documents of earlier versions hold plain values, which stay until they change.
func TestPlainValuesBecomeTypesWhenTheyChange(t *testing.T) {
	doc := ydoc.New(1, ydoc.Limits{Roots: Roots})
	edit(t, doc, func(tx *ydoc.Tx) {
		tx.Set(tx.Map("meta"), "version", 1.0)
		tx.Set(tx.Map("parameters"), "q", map[string]any{"type": "integer", "description": "Help"})
		note := tx.SetMap(tx.Map("nodes"), "n")
		tx.Set(note, "type", "note")
		tx.Set(note, "text", "Look")
		step := tx.SetMap(tx.Map("nodes"), "s")
		tx.Set(step, "resources", map[string]any{"vcpu": 1.0})
		tx.Set(tx.SetMap(step, "outputs"), "o", map[string]any{"path": "o"})
	})
	definition, err := Read(doc, IDs(doc, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if update, err := Write(doc, definition); err != nil || update != nil {
		t.Errorf("saying it again changed %x, %v", update, err)
	}
	changed := string(definition)
	for old, now := range map[string]string{`Help`: `Help!`, `Look`: `Look!`, `"vcpu":1`: `"vcpu":2`, `"path":"o"`: `"path":"p"`} {
		changed = strings.Replace(changed, old, now, 1)
	}
	if _, err := Write(doc, []byte(changed)); err != nil {
		t.Fatal(err)
	}
	if got := definitionOf(t, doc, nil); !reflect.DeepEqual(any(got), generic(t, []byte(changed))) {
		t.Errorf("got  %v\nwant %s", got, changed)
	}
	q, _ := doc.Map("parameters").Map("q")
	note, _ := doc.Map("nodes").Map("n")
	step, _ := doc.Map("nodes").Map("s")
	outputs, _ := step.Map("outputs")
	_, help := q.Text("description")
	_, text := note.Text("text")
	_, resources := step.Map("resources")
	_, port := outputs.Map("o")
	if !help || !text || !resources || !port {
		t.Errorf("types: help %v, text %v, resources %v, port %v", help, text, resources, port)
	}
}

// Two who change two fields of one setting, port or parameter both win, and what
// both type into a note or a help text is there.
func TestFieldsOfSettingsAndParametersMerge(t *testing.T) {
	ours, theirs := ydoc.New(1, ydoc.Limits{Roots: Roots}), ydoc.New(2, ydoc.Limits{})
	seed, err := Write(ours, []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.Apply(seed); err != nil {
		t.Fatal(err)
	}
	their := edit(t, theirs, func(tx *ydoc.Tx) {
		q, _ := tx.Map("parameters").Map("q")
		help, _ := q.Text("description")
		tx.Insert(help, 4, " theirs")
		tx.Set(q, "title", "Theirs")
		b, _ := tx.Map("nodes").Map("b")
		resources, _ := b.Map("resources")
		tx.Set(resources, "ramGb", 4.0)
		a, _ := tx.Map("nodes").Map("a")
		text, _ := a.Text("text")
		tx.Insert(text, 4, " theirs")
	})
	changed := whole
	for old, now := range map[string]string{`"Help"`: `"Ours Help"`, `"look"`: `"ours look"`, `"vcpu":2`: `"vcpu":3`} {
		changed = strings.Replace(changed, old, now, 1)
	}
	if _, err := Write(ours, []byte(changed)); err != nil {
		t.Fatal(err)
	}
	if err := ours.Apply(their); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(definitionOf(t, ours, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"Ours Help theirs"`, `"title":"Theirs"`, `"ours look theirs"`, `"resources":{"ramGb":4,"vcpu":3}`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

func TestLaterStepOfOneIDGetsANumber(t *testing.T) {
	for name, tt := range map[string]struct {
		renames map[string]string
		held    map[string]string
		want    map[string]string
	}{
		"the holder keeps it":         {map[string]string{"a": "x", "b": "x"}, map[string]string{"b": "x"}, map[string]string{"a": "x_2", "b": "x", "c": "c"}},
		"the key keeps it":            {map[string]string{"a": "c"}, nil, map[string]string{"a": "c_2", "b": "b", "c": "c"}},
		"else the order of keys":      {map[string]string{"b": "x", "c": "x"}, nil, map[string]string{"a": "a", "b": "x", "c": "x_2"}},
		"a number that is taken":      {map[string]string{"a": "x", "b": "x", "c": "x_2"}, nil, map[string]string{"a": "x", "b": "x_3", "c": "x_2"}},
		"two that change their names": {map[string]string{"a": "b", "b": "a"}, map[string]string{"a": "b", "b": "a"}, map[string]string{"a": "b", "b": "a", "c": "c"}},
		"an empty id is none":         {map[string]string{"a": ""}, nil, map[string]string{"a": "a", "b": "b", "c": "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			doc := ydoc.New(1, ydoc.Limits{Roots: Roots})
			if _, err := Write(doc, []byte(`{"nodes":[{"id":"a"},{"id":"b"},{"id":"c"}]}`)); err != nil {
				t.Fatal(err)
			}
			for key, id := range tt.renames {
				edit(t, doc, setID(key, id))
			}
			ids := IDs(doc, tt.held)
			if !reflect.DeepEqual(ids, tt.want) {
				t.Errorf("got %v, want %v", ids, tt.want)
			}
			if _, err := SetIDs(doc, ids); err != nil {
				t.Fatal(err)
			}
			if again := IDs(doc, nil); !reflect.DeepEqual(again, tt.want) {
				t.Errorf("written, they are %v", again)
			}
			if update, err := SetIDs(doc, ids); err != nil || update != nil {
				t.Errorf("writing them again changed %x, %v", update, err)
			}
		})
	}
}

func generic(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
