package ydoc

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// FuzzApply feeds two updates to a small document that has little room left.
// Whatever they are, they are taken in or refused as a whole, the document
// stays within its limits and in order, and what it writes is taken in by
// another one that then reads alike.
func FuzzApply(f *testing.F) {
	var bases [][]byte
	for i, v := range golden(f) {
		bases = append(bases, unhex(f, v.State))
		first := unhex(f, v.Updates[0])
		last := unhex(f, v.Updates[len(v.Updates)-1])
		f.Add(byte(0), first, last)
		f.Add(byte(0), last, first)
		f.Add(byte(i), last, unhex(f, "01 01 63 00 28 01 01 6d 01 6b 01 7e 00"))
		f.Add(byte(i+20), unhex(f, v.State), last)
	}
	f.Fuzz(func(t *testing.T, base byte, first, second []byte) {
		d := New(1, Limits{})
		if err := d.Apply(bases[int(base)%len(bases)]); err != nil {
			t.Fatal(err)
		}
		size := d.Size()
		limits := Limits{Bytes: size.Bytes + 300, Structs: size.Structs + 12, Clients: size.Clients + 4, Pending: 10, Depth: 4}
		d.limits = limits
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
