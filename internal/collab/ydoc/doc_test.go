package ydoc

import (
	"encoding/hex"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheWorkedExample(t *testing.T) {
	d := New(1, Limits{})
	for _, u := range []string{
		"01010700280105" + "6e6f646573" + "026e310177026869" + "00",
	} {
		if err := d.Apply(unhex(t, u)); err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(d.Encode()); got != u {
			t.Errorf("got %s", got)
		}
	}
	t.Log(d.JSON("nodes"))
	u, err := d.Edit(func(tx *Tx) error {
		n := tx.SetMap(tx.Map("nodes"), "b")
		tx.Set(n, "x", []any{1.5, "a", nil, true})
		c := tx.SetText(n, "command", "echo hällo 😀")
		tx.Replace(c, "echo hello 😀!")
		return nil
	})
	t.Log(hex.EncodeToString(u), err, d.JSON("nodes"))
	d.Compact()
	t.Log(d.JSON("nodes"), d.Size())
}
