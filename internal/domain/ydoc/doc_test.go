package ydoc

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// edit edits and fails the test if that fails.
func edit(t testing.TB, d *Doc, f func(tx *Tx)) []byte {
	t.Helper()
	u, err := d.Edit(func(tx *Tx) error { f(tx); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return u
}

type vector struct {
	Name          string
	Updates       []string
	JSON          any
	Vector, State string
}

func golden(t testing.TB) []vector {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func TestDocumentsOfYjsAreReadAndWrittenAlike(t *testing.T) {
	t.Parallel()
	for _, v := range golden(t) {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			d := New(1, Limits{})
			for _, u := range v.Updates {
				if err := d.Apply(unhex(t, u)); err != nil {
					t.Fatal(err)
				}
			}
			d.verify(t)
			d.Compact()
			d.verify(t)
			want := sight{JSON: v.JSON, Vector: unhex(t, v.Vector)}
			if got := look(t, d); !reflect.DeepEqual(got, want) {
				t.Errorf("reads\n%v, not\n%v", got, want)
			}
			if got := hex.EncodeToString(d.Encode()); got != v.State {
				t.Errorf("is written\n%s, not\n%s", got, v.State)
			}
		})
	}
}

func TestAWorkedExample(t *testing.T) {
	t.Parallel()
	d := New(7, Limits{})
	for _, step := range []struct {
		edit func(tx *Tx)
		want string
	}{
		{
			func(tx *Tx) { tx.Set(tx.Map("nodes"), "n1", "hi") },
			"01 01 07 00 28 01 05 6e6f646573 02 6e31 01 77 02 6869 00",
		},
		{
			func(tx *Tx) { tx.Set(tx.Map("nodes"), "n1", -5) },
			"01 01 07 01 a8 07 00 01 7d 45 01 07 01 00 01",
		},
		{
			func(tx *Tx) { tx.Delete(tx.Map("nodes"), "n1") },
			"00 01 07 01 01 01",
		},
		{func(tx *Tx) { tx.Delete(tx.Map("nodes"), "n1") }, ""},
	} {
		if got := edit(t, d, step.edit); !bytes.Equal(got, unhex(t, step.want)) {
			t.Errorf("got %x, want %s", got, step.want)
		}
	}
}

func TestMalformedUpdatesChangeNothing(t *testing.T) {
	t.Parallel()
	d := New(1, Limits{Roots: []string{"m"}})
	edit(t, d, func(tx *Tx) { tx.Set(tx.Map("m"), "k", "v") })
	before, version := d.Encode(), d.Version()
	for name, update := range map[string]string{
		"nothing":                                  "",
		"half an update":                           "01 01 07",
		"bytes after the end":                      "00 00 00",
		"an integer beyond 2^53":                   "00 01 07 01 00 ffffffffffffffff7f",
		"a clock that overflows":                   "01 01 07 ffffffffffffff0f 00 01 00",
		"more clients than bytes":                  "ff ff ff 7f",
		"a client given twice":                     "02 01 07 00 00 01 01 07 01 00 01 00",
		"an unknown content":                       "01 01 07 00 0b 01 01 6d 00",
		"an unknown type":                          "01 01 07 00 07 01 01 6d 07 00",
		"an item without elements":                 "01 01 07 00 04 01 01 6d 00 00",
		"collected, of no length":                  "01 01 07 00 00 00 00",
		"text that is no UTF-8":                    "01 01 07 00 04 01 01 6d 01 ff 00",
		"a value that is none":                     "01 01 07 00 08 01 01 6d 01 00 00",
		"a value nested without end":               "01 01 07 00 08 01 01 6d 01" + strings.Repeat("7501", 100) + "7e 00",
		"JSON that is none":                        "01 01 07 00 02 01 01 6d 01 01 7b 00",
		"an undefined embed":                       "01 01 07 00 05 01 01 6d 09 756e646566696e6564 00",
		"a document without options":               "01 01 07 00 09 01 01 6d 01 67 7e 00",
		"an item beside one that comes later":      "01 01 07 00 84 07 00 01 61 00",
		"an item before one that comes later":      "01 01 07 00 44 07 05 01 61 00",
		"an item inside itself":                    "01 01 07 00 04 00 07 00 01 61 00",
		"a good struct, then a bad one":            "01 02 07 00 28 01 01 6d 01 6b 01 7e 0b 00",
		"a good update in a root that is not ours": "01 01 07 00 28 01 01 6e 01 6b 01 7e 00",
	} {
		if err := d.Apply(unhex(t, update)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := d.Knows(unhex(t, update)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: whether it is known: %v", name, err)
		}
		if !bytes.Equal(d.Encode(), before) || d.Version() != version {
			t.Fatalf("%s: the document changed", name)
		}
	}
	for name, vector := range map[string]string{"nothing": "", "half a vector": "01 07", "bytes after the end": "00 00"} {
		if _, err := d.Diff(unhex(t, vector)); !errors.Is(err, ErrMalformed) {
			t.Errorf("the difference to %s: %v", name, err)
		}
	}
	if _, err := Merge([]byte{0, 0}, []byte{1}); !errors.Is(err, ErrMalformed) {
		t.Errorf("merging: %v", err)
	}
}

func TestALimitHitChangesNothing(t *testing.T) {
	t.Parallel()
	other := New(9, Limits{})
	base := edit(t, other, func(tx *Tx) {
		m := tx.Map("m")
		tx.SetText(m, "text", "one 😀 two")
		tx.Set(tx.SetMap(m, "map"), "k", "v")
	})
	write := func(f func(tx *Tx)) []byte {
		peer := New(4, Limits{})
		if err := peer.Apply(base); err != nil {
			t.Fatal(err)
		}
		return edit(t, peer, f)
	}
	mix := func(tx *Tx) { // overwrites, splits and nests
		m := tx.Map("m")
		text, _ := m.Text("text")
		tx.Remove(text, 2, 2)
		tx.Insert(text, 3, "inserted")
		tx.Set(m, "map", 1)
		tx.Set(tx.SetMap(m, "more"), "k", strings.Repeat("long ", 50))
		tx.Set(tx.Map("new"), "k", 1)
	}
	deep := func(tx *Tx) {
		mix(tx)
		m := tx.Map("m")
		for range 5 {
			m = tx.SetMap(m, "deeper")
		}
	}
	waiting, err := Merge(base, unhex(t, "00 01 04 04 00 01 02 01 04 01 06 01"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		limits Limits
		update []byte
	}{
		"bytes":   {Limits{Bytes: 300}, write(mix)},
		"structs": {Limits{Structs: 8}, write(mix)},
		"clients": {Limits{Clients: 1}, write(mix)},
		"depth":   {Limits{Depth: 4}, write(deep)},
		"pending": {Limits{Pending: 3}, waiting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := New(1, tt.limits)
			if err := d.Apply(base); err != nil {
				t.Fatal(err)
			}
			before, size := d.Encode(), d.Size()
			for range 2 {
				if err := d.Apply(tt.update); !errors.Is(err, ErrTooLarge) {
					t.Fatal(err)
				}
				d.verify(t)
				if !bytes.Equal(d.Encode(), before) || d.Size() != size || len(d.roots) != 1 {
					t.Errorf("the document changed: %x, not %x", d.Encode(), before)
				}
			}
			big := New(1, Limits{})
			if err := errors.Join(big.Apply(base), big.Apply(tt.update)); err != nil {
				t.Errorf("without the limit: %v", err)
			}
		})
	}
}

// An update may ask for a step past everybody else for each of its items.
func TestAnUpdateThatTakesTooLongIsRefused(t *testing.T) {
	t.Parallel()
	var w lib0.Writer
	const n = 20_000
	w.Uint(n)
	for client := uint64(n); client > 0; client-- {
		w.Append([]byte{1})
		w.Uint(client)
		w.Append([]byte{0, 0x28, 1, 1, 'm', 1, 'k', 1, 0x7e})
	}
	w.Byte(0)
	d := New(1, Limits{})
	if err := d.Apply(w.Bytes()); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
	if len(d.Encode()) != 2 {
		t.Error("the document changed")
	}
}

func TestUpdatesWaitForWhatTheyNeed(t *testing.T) {
	t.Parallel()
	a := New(9, Limits{})
	first := edit(t, a, func(tx *Tx) { tx.SetText(tx.Map("m"), "text", "a") })
	second := edit(t, a, func(tx *Tx) { text, _ := tx.Map("m").Text("text"); tx.Replace(text, "b") })

	d := New(1, Limits{})
	if err := d.Apply(second); err != nil || !d.Pending() || d.Version() != 1 {
		t.Fatal(err, d.Pending(), d.Version())
	}
	if err := d.Apply(second); err != nil || d.Version() != 1 {
		t.Fatal("what waits already counts as new", err)
	}
	if len(d.JSON("m")) > 0 || !bytes.Equal(d.StateVector(), []byte{0}) {
		t.Errorf("reads %v", d.JSON("m"))
	}
	late := New(2, Limits{})
	if err := late.Apply(d.Encode()); err != nil || !late.Pending() {
		t.Error("what waits got lost on the way", err)
	}
	for _, d := range []*Doc{d, late} {
		if err := d.Apply(first); err != nil || d.Pending() || !reflect.DeepEqual(d.JSON("m"), a.JSON("m")) {
			t.Errorf("%v: reads %v, waits %v", err, d.JSON("m"), d.Pending())
		}
	}
}

func TestWhatIsKnownIsToldApart(t *testing.T) {
	t.Parallel()
	d := New(1, Limits{})
	edit(t, d, func(tx *Tx) { tx.Set(tx.Map("m"), "k", 1) })
	peer := New(2, Limits{})
	if err := peer.Apply(d.Encode()); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		update []byte
		known  bool
	}{
		"nothing":       {[]byte{0, 0}, true},
		"the same":      {peer.Encode(), true},
		"a new value":   {edit(t, peer, func(tx *Tx) { tx.Set(tx.Map("m"), "k", 2) }), false},
		"a deletion":    {[]byte{0, 1, 1, 1, 0, 1}, false},
		"an unknown":    {[]byte{0, 1, 5, 1, 0, 1}, false},
		"all of a peer": {peer.Encode(), false},
	} {
		if known, err := d.Knows(tt.update); err != nil || known != tt.known {
			t.Errorf("%s: %v, %v", name, known, err)
		}
	}
}

func TestAFailedEditChangesNothing(t *testing.T) {
	t.Parallel()
	d := New(1, Limits{Roots: []string{"m"}, Depth: 3})
	edit(t, d, func(tx *Tx) { tx.SetText(tx.Map("m"), "text", "one two") })
	before := d.Encode()
	text, _ := d.Map("m").Text("text")
	boom := errors.New("boom")
	for name, f := range map[string]func(tx *Tx) error{
		"an error":        func(*Tx) error { return boom },
		"no such root":    func(tx *Tx) error { tx.Map("n"); return nil },
		"no such map":     func(tx *Tx) error { tx.Set(Map{}, "k", 1); return nil },
		"beyond the text": func(tx *Tx) error { tx.Insert(text, 8, "x"); return nil },
		"before the text": func(tx *Tx) error { tx.Remove(text, -1, 1); return nil },
		"no value":        func(tx *Tx) error { tx.Set(tx.Map("m"), "k", struct{}{}); return nil },
		"too deep": func(tx *Tx) error {
			m := tx.Map("m")
			for range 5 {
				m = tx.SetMap(m, "m")
			}
			return nil
		},
	} {
		u, err := d.Edit(func(tx *Tx) error {
			tx.Set(tx.Map("m"), "k", "v")
			tx.Remove(text, 1, 2)
			return f(tx)
		})
		if err == nil || u != nil || !bytes.Equal(d.Encode(), before) {
			t.Errorf("%s: %x, %v", name, u, err)
		}
		d.verify(t)
	}
	if _, err := d.Edit(func(*Tx) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("the error got lost: %v", err)
	}
}

func TestReplacingATextKeepsWhatOthersWrite(t *testing.T) {
	t.Parallel()
	ours := New(1, Limits{})
	start := edit(t, ours, func(tx *Tx) { tx.SetText(tx.Map("m"), "command", "sort 😀 | uniq") })
	theirs := New(2, Limits{})
	if err := theirs.Apply(start); err != nil {
		t.Fatal(err)
	}
	replace := func(d *Doc, s string) []byte {
		return edit(t, d, func(tx *Tx) { text, _ := tx.Map("m").Text("command"); tx.Replace(text, s) })
	}
	u := replace(ours, "sort -n 😁 | uniq")
	if err := ours.Apply(replace(theirs, "sort 😀 | uniq -c")); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Apply(u); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Doc{ours, theirs} {
		if text, _ := d.Map("m").Text("command"); text.String() != "sort -n 😁 | uniq -c" {
			t.Errorf("reads %q", text)
		}
	}
	if u := replace(ours, "sort -n 😁 | uniq -c"); u != nil {
		t.Errorf("nothing to replace, and yet %x", u)
	}
}

func TestViewsFollowTheDocument(t *testing.T) {
	t.Parallel()
	d := New(1, Limits{})
	nodes := d.Map("nodes")
	if len(nodes.Keys())+len(nodes.JSON()) > 0 {
		t.Error("an empty document has nodes")
	}
	var node Map
	edit(t, d, func(tx *Tx) {
		node = tx.SetMap(tx.Map("nodes"), "b")
		tx.Set(node, "position", []any{1, 2.5})
		tx.SetText(node, "command", "echo")
		tx.Set(tx.Map("nodes"), "a", nil)
	})
	nodes = d.Map("nodes")
	if got := nodes.Keys(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("keys %q", got)
	}
	want := map[string]any{"a": nil, "b": map[string]any{"position": []any{1.0, 2.5}, "command": "echo"}}
	if got := d.JSON("nodes"); !reflect.DeepEqual(got, want) {
		t.Errorf("reads %v", got)
	}
	if v, ok := nodes.Value("a"); v != nil || !ok {
		t.Errorf("a is %v, %v", v, ok)
	}
	if _, ok := nodes.Map("a"); ok {
		t.Error("null is a map")
	}
	edit(t, d, func(tx *Tx) { tx.Delete(nodes, "b") })
	d.Compact()
	if len(node.Keys()) > 0 || !slices.Equal(nodes.Keys(), []string{"a"}) {
		t.Errorf("deleted, and yet there: %q", nodes.Keys())
	}
	edit(t, d, func(tx *Tx) { tx.Set(node, "k", 1) })
	d.verify(t)
	if len(node.Keys()) > 0 {
		t.Error("an edit revived what was deleted")
	}
}

// A drag writes one key again and again; only the last value has to be kept.
func TestCompactionForgetsTheDeleted(t *testing.T) {
	t.Parallel()
	d := New(1, Limits{})
	for i := range 1000 {
		edit(t, d, func(tx *Tx) { tx.Set(tx.Map("m"), "position", []any{i, i}) })
	}
	d.Compact()
	if s := d.Size(); s.Structs != 2 || len(d.Encode()) > 50 {
		t.Errorf("%+v, %d bytes", s, len(d.Encode()))
	}
}

// verify fails the test if the document contradicts itself.
func (d *Doc) verify(t testing.TB) {
	t.Helper()
	size := Size{}
	for client, log := range d.logs {
		clock := uint64(0)
		for _, it := range log.items {
			if it.client != client || it.clock != clock || it.length == 0 {
				t.Fatalf("item %v of length %d is not at %d", it.id, it.length, clock)
			}
			clock = it.end()
			size.Structs++
			size.Bytes += it.size()
			it.verify(t)
		}
	}
	if size != d.size {
		t.Fatalf("size %+v, not %+v", d.size, size)
	}
}

func (it *item) verify(t testing.TB) {
	t.Helper()
	if it.kind == kindGC {
		return
	}
	if it.right != nil && it.right.left != it || it.left != nil && it.left.right != it {
		t.Fatalf("item %v is not linked", it.id)
	}
	if last := it.parent.keys[it.key]; it.keyed && it.right == nil && last != it && it.inDocument() {
		t.Fatalf("item %v is not the value of its key", it.id)
	}
	if !it.inDocument() && !it.deleted {
		t.Fatalf("item %v is not deleted", it.id)
	}
	if !it.keyed && it.left == nil && it.inDocument() && it.parent.start != it {
		t.Fatalf("item %v is not the first", it.id)
	}
}

func (it *item) inDocument() bool { return it.parent.item == nil || !it.parent.item.deleted }
