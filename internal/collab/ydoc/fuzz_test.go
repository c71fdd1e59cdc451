package ydoc

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// FuzzApply feeds two updates to a small document. Whatever they are, they are
// taken in or refused as a whole, the document stays within its limits and in
// order, and what it writes is taken in by another one that then reads alike.
func FuzzApply(f *testing.F) {
	for _, v := range golden(f) {
		first := unhex(f, v.Updates[0])
		last := unhex(f, v.Updates[len(v.Updates)-1])
		f.Add(first, last)
		f.Add(last, first)
		f.Add(unhex(f, v.State), last)
	}
	limits := Limits{Bytes: 32 << 10, Structs: 300, Clients: 20, Pending: 50, Depth: 4}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		d := New(1, limits)
		for _, u := range [][]byte{first, second, first} {
			before, version := d.Encode(), d.Version()
			changes, err := d.Take(u)
			d.verify(t)
			switch {
			case err == nil:
				if known, err := d.Knows(changes); changes != nil && (err != nil || !known) {
					t.Fatalf("changed and not known: %v", err)
				}
				if known, err := d.Knows(u); err != nil || !known && !d.Pending() {
					t.Fatalf("applied and not known: %v", err)
				}
			case !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge):
				t.Fatalf("an error of no kind: %v", err)
			case !bytes.Equal(d.Encode(), before) || d.Version() != version:
				t.Fatalf("refused, and yet changed: %x, not %x", d.Encode(), before)
			}
			if err := d.check(); err != nil {
				t.Fatal(err)
			}
		}
		want := look(t, d)
		reads := func(what string, d *Doc) {
			t.Helper()
			d.verify(t)
			if got := look(t, d); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: reads %+v, not %+v", what, got, want)
			}
		}
		again := func(what string, u []byte) {
			t.Helper()
			c := New(2, limits)
			if err := c.Apply(u); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			reads(what, c)
			version := c.Version()
			if err := c.Apply(u); err != nil || c.Version() != version {
				t.Fatalf("%s: not the same twice: %v", what, err)
			}
		}
		again("what it writes", d.Encode())
		d.Compact()
		reads("after compaction", d)
		again("what it writes after compaction", d.Encode())
		if merged, err := Merge(first, second); err == nil {
			_, err := decode(merged, len(merged))
			if err != nil {
				t.Fatalf("merged: %v", err)
			}
		}
		if _, err := d.Edit(func(tx *Tx) error { tx.Set(tx.Map("m"), "k", 1); return nil }); err != nil && !errors.Is(err, ErrTooLarge) {
			t.Fatal(err)
		}
		d.verify(t)
	})
}
