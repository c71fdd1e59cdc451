package ydoc_test

import (
	"errors"
	"testing"

	"github.com/millrace/millrace/internal/domain/ydoc"
)

// What an update adds is known by the names that it has in the document, and what
// was there before is not new.
func TestWhatAnUpdateMayNameIsKnown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit func(*ydoc.Tx)
		want bool
	}{
		"a field":            {func(tx *ydoc.Tx) { tx.Set(tx.Map("r"), "secrets", 1.0) }, true},
		"a map of the name":  {func(tx *ydoc.Tx) { tx.SetMap(tx.Map("r"), "secrets") }, true},
		"a text of the name": {func(tx *ydoc.Tx) { tx.SetText(tx.Map("r"), "secrets", "x") }, true},
		"a field within": {func(tx *ydoc.Tx) {
			tx.Set(tx.Map("r"), "a", map[string]any{"b": []any{map[string]any{"secrets": nil}}})
		}, true},
		"another":    {func(tx *ydoc.Tx) { tx.Set(tx.Map("r"), "a", map[string]any{"b": "c"}) }, false},
		"one before": {func(tx *ydoc.Tx) { tx.Set(tx.Map("r"), "other", "again") }, false},
		"text":       {func(tx *ydoc.Tx) { tx.SetText(tx.Map("r"), "command", "echo secrets") }, false},
		"what goes":  {func(tx *ydoc.Tx) { tx.Delete(tx.Map("r"), "old secrets") }, false},
	} {
		doc, peer := ydoc.New(1, ydoc.Limits{}), ydoc.New(2, ydoc.Limits{})
		first, err := peer.Edit(func(tx *ydoc.Tx) error {
			tx.Set(tx.Map("r"), "other", "x")
			tx.Set(tx.Map("r"), "old secrets", "x")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Apply(first); err != nil {
			t.Fatal(err)
		}
		update, err := peer.Edit(func(tx *ydoc.Tx) error { tt.edit(tx); return nil })
		if err != nil {
			t.Fatal(err)
		}
		refused := errors.New("refused")
		before := doc.Version()
		_, err = doc.TakeIf(update, func(a ydoc.Added) error {
			if a.MayName("secrets", "source") {
				return refused
			}
			return nil
		})
		if got := errors.Is(err, refused); got != tt.want || err != nil && !got {
			t.Errorf("%s: refused is %v, %v", name, got, err)
		}
		if changed := doc.Version() != before; changed == tt.want {
			t.Errorf("%s: changed is %v", name, changed)
		}
	}
}
