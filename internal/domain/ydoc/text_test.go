package ydoc

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// boundaries are the places in a text between two characters, in code units.
func boundaries(s string) []int {
	at := []int{0}
	for _, r := range s {
		at = append(at, at[len(at)-1]+utf16.RuneLen(r))
	}
	return at
}

// Edits of a text do what they would do to a string of JavaScript, for the server
// and for those who get its updates, before and after compaction.
func TestATextIsEditedAsJavaScriptWould(t *testing.T) {
	t.Parallel()
	alphabet := []string{"a", "é", "\u2028", "😀", "xyz", "👩‍🔬", "日本", "\U0010ffff"}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		d, peer := New(1, Limits{}), New(2, Limits{})
		var text Text
		updates := [][]byte{edit(t, d, func(tx *Tx) { text = tx.SetText(tx.Map("m"), "t", "") })}
		want := ""
		for range 60 {
			at := boundaries(want)
			from := r.IntN(len(at))
			units := utf16.Encode([]rune(want))
			var u []byte
			switch r.IntN(4) {
			case 0, 1:
				s := alphabet[r.IntN(len(alphabet))]
				u = edit(t, d, func(tx *Tx) { tx.Insert(text, at[from], s) })
				want = string(utf16.Decode(slices.Concat(units[:at[from]], utf16.Encode([]rune(s)), units[at[from]:])))
			case 2:
				to := from + r.IntN(len(at)-from)
				u = edit(t, d, func(tx *Tx) { tx.Remove(text, at[from], at[to]-at[from]) })
				want = string(utf16.Decode(slices.Concat(units[:at[from]], units[at[to]:])))
			default:
				want = strings.Replace(want, alphabet[r.IntN(len(alphabet))], alphabet[r.IntN(len(alphabet))], 1)
				u = edit(t, d, func(tx *Tx) { tx.Replace(text, want) })
			}
			if text.String() != want {
				t.Fatalf("seed %d: it reads %q, not %q", seed, text, want)
			}
			if u != nil {
				updates = append(updates, u)
			}
			if r.IntN(10) == 0 {
				d.Compact()
			}
			d.verify(t)
		}
		for _, u := range updates {
			if err := peer.Apply(u); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := peer.Map("m").Text("t"); got.String() != want {
			t.Errorf("seed %d: a peer reads %q, not %q", seed, got, want)
		}
	}
}

// A character that is cut apart is lost, as in Yjs; one that nobody edits is not.
func TestACharacterThatIsCutApart(t *testing.T) {
	t.Parallel()
	const whole = "a😀b"
	for name, tt := range map[string]struct {
		edit func(tx *Tx, text Text)
		want string
	}{
		"something within":     {func(tx *Tx, text Text) { tx.Insert(text, 2, "x") }, "a\ufffdx\ufffdb"},
		"nothing within":       {func(tx *Tx, text Text) { tx.Insert(text, 2, "") }, whole},
		"half of it":           {func(tx *Tx, text Text) { tx.Remove(text, 1, 1) }, "a\ufffdb"},
		"nothing of it":        {func(tx *Tx, text Text) { tx.Remove(text, 2, 0) }, whole},
		"less than nothing":    {func(tx *Tx, text Text) { tx.Remove(text, 2, -1) }, whole},
		"one that looks alike": {func(tx *Tx, text Text) { tx.Replace(text, "a😁b") }, "a😁b"},
		"what is no text":      {func(tx *Tx, text Text) { tx.Insert(text, 4, "\xff\xed\xa0\x80") }, whole + "\ufffd"},
	} {
		d, peer := New(1, Limits{}), New(2, Limits{})
		var text Text
		start := edit(t, d, func(tx *Tx) { text = tx.SetText(tx.Map("m"), "t", whole) })
		u := edit(t, d, func(tx *Tx) { tt.edit(tx, text) })
		if (u == nil) != (tt.want == whole) || text.String() != tt.want {
			t.Errorf("%s: it reads %q after %x", name, text, u)
		}
		if err := peer.Apply(start); err != nil {
			t.Fatal(err)
		}
		if u != nil {
			if err := peer.Apply(u); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := peer.Map("m").Text("t"); got.String() != tt.want {
			t.Errorf("%s: a peer reads %q", name, got)
		}
	}
}

func TestListsTextsAndMapsAtTheRoot(t *testing.T) {
	t.Parallel()
	d := New(1, Limits{})
	if d.Array("list").JSON() == nil || len(d.Array("list").JSON()) > 0 || d.Text("text").String() != "" {
		t.Error("what was never written is not empty")
	}
	for _, update := range []string{
		"01 01 07 00 08 01 04 6c697374 04 7d01 770161 7f 7e 00",   // 1, "a", undefined, null
		"01 01 08 00 04 01 04 74657874 03 61c3a9 00",              // "aé"
		"01 01 09 00 27 01 01 6d 01 6b 00 00",                     // a list under m.k
		"01 01 0a 00 08 00 09 00 02 79 76 01 01 78 7d05 00",       // false, {"x": 5} in it
		"01 01 0b 00 28 01 01 6d 01 75 01 7f 00",                  // m.u is undefined
		"01 01 0c 00 23 01 01 6d 01 62 02 00ff 00",                // m.b is bytes
		"01 01 0d 00 22 01 01 6d 01 6a 02 04 74727565 02 5b5d 00", // m.j is true, then []
	} {
		if err := d.Apply(unhex(t, update)); err != nil {
			t.Fatalf("%s: %v", update, err)
		}
	}
	d.verify(t)
	if got, want := d.Array("list").JSON(), []any{1.0, "a", nil, nil}; !reflect.DeepEqual(got, want) {
		t.Errorf("the list is %v", got)
	}
	if got := d.Text("text").String(); got != "aé" {
		t.Errorf("the text is %q", got)
	}
	want := map[string]any{"k": []any{false, map[string]any{"x": 5.0}}, "b": []byte{0, 0xff}, "j": []any{}}
	if got := d.JSON("m"); !reflect.DeepEqual(got, want) {
		t.Errorf("the map is %v", got)
	}
	if list, ok := d.Map("m").Array("k"); !ok || len(list.JSON()) != 2 {
		t.Error("the list within is not there")
	}
	for key, ok := range map[string]bool{"u": false, "none": false, "j": true} {
		if _, there := d.Map("m").Value(key); there != ok {
			t.Errorf("%s is there: %v", key, there)
		}
	}
	if _, ok := d.Map("m").Text("k"); ok {
		t.Error("a list is a text")
	}
	if _, ok := d.Map("m").Array("u"); ok {
		t.Error("what is undefined is a list")
	}
	if err := d.Apply(unhex(t, "00 01 07 01 01 02")); err != nil || !reflect.DeepEqual(d.Array("list").JSON(), []any{1.0, nil}) {
		t.Errorf("after two of them were deleted: %v, %v", d.Array("list").JSON(), err)
	}
	again := New(2, Limits{})
	d.Compact()
	if err := again.Apply(d.Encode()); err != nil || !reflect.DeepEqual(again.JSON("m"), want) || !reflect.DeepEqual(again.Array("list").JSON(), []any{1.0, nil}) {
		t.Errorf("read again: %v, %v", again.JSON("m"), err)
	}
}

// A peer that knows any part gets the rest, and that alone.
func TestADifferenceFromAnyPoint(t *testing.T) {
	t.Parallel()
	d := New(9, Limits{})
	type moment struct{ encoded, vector []byte }
	var before []moment
	var text Text
	edit(t, d, func(tx *Tx) { text = tx.SetText(tx.Map("m"), "t", "start") })
	for i := range 30 {
		before = append(before, moment{d.Encode(), d.StateVector()})
		edit(t, d, func(tx *Tx) {
			tx.Insert(text, i%5, "né")
			tx.Set(tx.Map("m"), "n", i)
			if i%3 == 0 {
				tx.Remove(text, i%4, 2)
			}
		})
	}
	for i, m := range before {
		diff, err := d.Diff(m.vector)
		if err != nil {
			t.Fatal(err)
		}
		peer := New(2, Limits{})
		if err := errors.Join(peer.Apply(m.encoded), peer.Apply(diff)); err != nil || peer.Pending() || !reflect.DeepEqual(peer.JSON("m"), d.JSON("m")) || !bytes.Equal(peer.StateVector(), d.StateVector()) {
			t.Errorf("from %d: %v, it reads %v", i, err, peer.JSON("m"))
		}
		if known, err := d.Knows(diff); !known || err != nil {
			t.Errorf("from %d: we do not know it ourselves: %v", i, err)
		}
		if known, _ := New(3, Limits{}).Knows(diff); known {
			t.Errorf("from %d: who knows nothing knows it", i)
		}
	}
	nothing, err := d.Diff(d.StateVector())
	if err != nil || nothing[0] != 0 {
		t.Errorf("who knows all gets %x, %v", nothing, err)
	}
	more, err := d.Diff([]byte{1, 9, 0xff, 0xff, 3})
	if err != nil || !bytes.Equal(more, nothing) {
		t.Errorf("who knows more gets %x, %v", more, err)
	}
}

// Updates that are merged say what they said one by one, in whatever order.
func TestMergedUpdatesSayTheSame(t *testing.T) {
	t.Parallel()
	for _, v := range golden(t) {
		for seed := range uint64(4) {
			var updates [][]byte
			for _, i := range rand.New(rand.NewPCG(seed, 5)).Perm(len(v.Updates)) {
				updates = append(updates, unhex(t, v.Updates[i]))
			}
			merged, err := Merge(updates...)
			if err != nil {
				t.Fatal(err)
			}
			d := New(1, Limits{})
			if err := d.Apply(merged); err != nil {
				t.Fatal(err)
			}
			d.Compact()
			if got := d.Encode(); !bytes.Equal(got, unhex(t, v.State)) {
				t.Errorf("%s, seed %d: %x", v.Name, seed, got)
			}
		}
	}
	if none, err := Merge(); err != nil || !bytes.Equal(none, []byte{0, 0}) {
		t.Errorf("of nothing: %x, %v", none, err)
	}
}
