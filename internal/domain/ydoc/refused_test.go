package ydoc

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/millrace/millrace/internal/domain/ydoc/lib0"
)

// trace is all that could be seen of an update that was refused.
type trace struct {
	encoded, vector []byte
	size            Size
	version         uint64
	roots           int
	pending         bool
}

func traceOf(d *Doc) trace {
	return trace{d.Encode(), d.StateVector(), d.Size(), d.Version(), len(d.roots), d.Pending()}
}

// An update that somebody refuses leaves no trace, in whatever order updates
// come and whatever waits; afterwards the document takes it as if it came for
// the first time.
func TestARefusedUpdateLeavesNoTrace(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, v := range golden(t) {
		for seed := range uint64(6) {
			order := rand.New(rand.NewPCG(seed, 7)).Perm(len(v.Updates))
			d, other := New(1, Limits{}), New(1, Limits{})
			for _, i := range order {
				update := unhex(t, v.Updates[i])
				before := traceOf(d)
				changes, err := d.TakeIf(update, func(Added) error { return refused })
				if !errors.Is(err, refused) || changes != nil {
					t.Fatalf("%s: %x, %v", v.Name, changes, err)
				}
				d.verify(t)
				if after := traceOf(d); !reflect.DeepEqual(after, before) {
					t.Fatalf("%s, seed %d: it left\n%+v, not\n%+v", v.Name, seed, after, before)
				}
				got, err := d.Take(update)
				want, otherErr := other.Take(update)
				if err != nil || otherErr != nil || !bytes.Equal(got, want) {
					t.Fatalf("%s, seed %d: the changes are %x, not %x: %v", v.Name, seed, got, want, errors.Join(err, otherErr))
				}
			}
			if !bytes.Equal(d.Encode(), other.Encode()) {
				t.Errorf("%s, seed %d: it ended as another", v.Name, seed)
			}
		}
	}
}

// Whoever is asked sees the document as it would become, with what waited.
func TestWhoIsAskedSeesWhatWouldBe(t *testing.T) {
	t.Parallel()
	peer := New(9, Limits{})
	first := edit(t, peer, func(tx *Tx) { tx.Set(tx.SetMap(tx.Map("nodes"), "a"), "command", "ls") })
	second := edit(t, peer, func(tx *Tx) { m, _ := tx.Map("nodes").Map("a"); tx.Set(m, "secrets", true) })
	d := New(1, Limits{})
	_, err := d.TakeIf(second, func(a Added) error {
		if a.MayName("secrets") || !d.Pending() {
			t.Error("what waits counts as taken in")
		}
		return nil
	})
	if err != nil || d.Size().Pending != 1 {
		t.Fatal(err, d.Size())
	}
	refused := errors.New("refused")
	look := func(a Added) error {
		want := map[string]any{"a": map[string]any{"command": "ls", "secrets": true}}
		if !a.MayName("secrets") || d.Pending() || !reflect.DeepEqual(d.JSON("nodes"), want) {
			t.Errorf("it sees %v", d.JSON("nodes"))
		}
		return refused
	}
	if _, err := d.TakeIf(first, look); !errors.Is(err, refused) || d.Size().Pending != 1 || len(d.JSON("nodes")) > 0 {
		t.Errorf("%v: %v waits", err, d.Size())
	}
	if changes, err := d.Take(first); err != nil || d.Pending() || len(changes) == 0 || !reflect.DeepEqual(d.JSON("nodes"), peer.JSON("nodes")) {
		t.Errorf("%v: %v", err, d.JSON("nodes"))
	}
}

// What may be more than it seems is taken for the worst.
func TestContentsThatMayNameAnything(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		update string
		want   bool
	}{
		"JSON":                   {"01 01 07 00 22 01 01 72 01 61 01 02 7b7d 00", true},
		"bytes":                  {"01 01 07 00 23 01 01 72 01 61 01 ff 00", true},
		"a format":               {"01 01 07 00 06 01 01 72 04 626f6c64 04 74727565 00", true},
		"an embed":               {"01 01 07 00 05 01 01 72 02 7b7d 00", true},
		"a document":             {"01 01 07 00 29 01 01 72 01 61 01 67 76 00 00", true},
		"a text by that name":    {"01 01 07 00 24 01 01 72 06 736f75726365 01 61 00", true},
		"a text by another":      {"01 01 07 00 24 01 01 72 01 61 06 736f75726365 00", false},
		"deleted, by that name":  {"01 01 07 00 21 01 01 72 06 736f75726365 01 00", false},
		"collected":              {"01 01 07 00 00 01 00", false},
		"a value by that name":   {"01 01 07 00 28 01 01 72 06 736f75726365 01 7e 00", true},
		"a value with that name": {"01 01 07 00 28 01 01 72 01 61 01 76 01 06 736f75726365 7e 00", true},
		"a value by another":     {"01 01 07 00 28 01 01 72 01 61 01 7e 00", false},
	} {
		asked := false
		_, err := New(1, Limits{}).TakeIf(unhex(t, tt.update), func(a Added) error {
			asked = true
			if got := a.MayName("secrets", "source"); got != tt.want {
				t.Errorf("%s: %v", name, got)
			}
			return nil
		})
		if err != nil || !asked {
			t.Errorf("%s: %v, asked %v", name, err, asked)
		}
	}
}

// A document that is as large as it may be is taken, and one that is larger by
// one is not.
func TestLimitsOfADocumentAtAndOneBelow(t *testing.T) {
	t.Parallel()
	peer := New(9, Limits{})
	edit(t, peer, func(tx *Tx) {
		m := tx.Map("m")
		for range 3 {
			m = tx.SetMap(m, "deeper")
		}
		tx.SetText(m, "text", "one")
	})
	if err := peer.Apply(unhex(t, "01 01 07 00 28 01 01 6d 01 6b 01 7e 01 05 02 00 01 04 02")); err != nil {
		t.Fatal(err)
	}
	s := peer.Size()
	if s.Clients != 2 || s.Pending != 2 {
		t.Fatalf("%+v", s)
	}
	for name, limits := range map[string][2]Limits{
		"bytes":   {{Bytes: s.Bytes}, {Bytes: s.Bytes - 1}},
		"structs": {{Structs: s.Structs}, {Structs: s.Structs - 1}},
		"clients": {{Clients: s.Clients}, {Clients: s.Clients - 1}},
		"pending": {{Pending: s.Pending}, {Pending: s.Pending - 1}},
		"depth":   {{Depth: 4}, {Depth: 3}},
	} {
		if d := New(1, limits[0]); d.Apply(peer.Encode()) != nil || d.Size() != s {
			t.Errorf("%s: what may be is refused, or is %+v, not %+v", name, d.Size(), s)
		}
		if d := New(1, limits[1]); !errors.Is(d.Apply(peer.Encode()), ErrTooLarge) || d.Size() != (Size{}) {
			t.Errorf("%s: what may not be is taken, or left %+v", name, d.Size())
		}
	}
}

// An update of more structs than a document could ever hold is not read to its
// end.
func TestAnUpdateOfTooManyStructs(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]error{2: nil, 3: ErrTooLarge, 4: ErrTooLarge, 5: ErrTooLarge, 100: ErrTooLarge} {
		var w lib0.Writer
		for _, head := range []int{1, n, 7, 0} {
			w.Uint(uint64(head))
		}
		for range n {
			w.Append(unhex(t, "08 01 01 72 01 7e"))
		}
		w.Uint(0)
		d := New(1, Limits{Structs: 2})
		if err := d.Apply(w.Bytes()); !errors.Is(err, want) {
			t.Errorf("%d: %v", n, err)
		}
		if _, err := d.Knows(w.Bytes()); n > 4 && !errors.Is(err, ErrTooLarge) || n <= 4 && err != nil {
			t.Errorf("whether %d are known: %v", n, err)
		}
	}
}

// Whatever is new among what waits is noticed, also where it takes the place of
// what waited before.
func TestWhatWaitsNewlyIsNoticed(t *testing.T) {
	t.Parallel()
	// The client 7 writes single values into the root r; 2 to 4 wait for 0 and 1,
	// and so do the deletions of 5 and 6.
	const waiting = "01 03 07 02 08 01 01 72 01 7e 08 01 01 72 01 7e 08 01 01 72 01 7e 01 07 01 05 02"
	for name, tt := range map[string]struct {
		update string
		want   bool
	}{
		"nothing":                         {"00 00", false},
		"the same again":                  {waiting, false},
		"a part of it":                    {"01 01 07 03 08 01 01 72 01 7e 01 07 01 05 01", false},
		"what is complete":                {"01 01 08 00 08 01 01 72 01 7e 00", false},
		"what it waits for":               {"01 02 07 00 08 01 01 72 01 7e 08 01 01 72 01 7e 00", false},
		"half of what it waits for":       {"01 01 07 00 08 01 01 72 01 7e 00", false},
		"one more":                        {"01 01 07 05 08 01 01 72 01 7e 00", true},
		"of somebody else":                {"01 01 08 01 08 01 01 72 01 7e 00", true},
		"one that has one of them in it":  {"01 01 07 01 08 01 01 72 02 7e 7e 00", true},
		"one that has all of them in it":  {"01 01 07 01 08 01 01 72 04 7e 7e 7e 7e 00", true},
		"one that begins like one":        {"01 01 07 02 08 01 01 72 02 7e 7e 00", true},
		"one with other content":          {"01 01 07 02 08 01 01 72 01 7f 00", false},
		"another deletion":                {"00 01 08 01 00 01", true},
		"a deletion beside one":           {"00 01 07 01 07 01", true},
		"a deletion around one":           {"00 01 07 01 04 04", true},
		"complete, and something waits":   {"01 01 08 00 08 01 01 72 01 7e 01 09 01 00 01", true},
		"what it waits for, and one more": {"01 04 07 00 08 01 01 72 01 7e 08 01 01 72 01 7e 0a 04 08 01 01 72 01 7e 00", true},
	} {
		d := New(1, Limits{})
		if err := d.Apply(unhex(t, waiting)); err != nil || d.Size().Pending != 4 {
			t.Fatal(err, d.Size())
		}
		asked := false
		_, err := d.TakeIf(unhex(t, tt.update), func(a Added) error {
			if asked = true; a.Waits() != tt.want {
				t.Errorf("%s: %v", name, a.Waits())
			}
			return nil
		})
		if err != nil || !asked {
			t.Errorf("%s: %v", name, err)
		}
		d.verify(t)
	}
}
