package events

import "testing"

// FuzzLastEventID gives anything as the place where a stream ended: it goes on
// at a place that was there, not too far back, or it begins at the present.
func FuzzLastEventID(f *testing.F) {
	for _, id := range []string{"", "5:120", "0:0", "5", "5:", ":5", "-1:0", "5:-1", "+5:1", " 5:1", "5:1:1", "9223372036854775808:0", "5:120\n", "٥:1", "0x5:1", "1e3:0"} {
		f.Add(id, int64(7), int64(3<<20))
	}
	f.Fuzz(func(t *testing.T, id string, seq, log int64) {
		now := Place{max(0, seq), max(0, log)}
		got := lastPlace(id, now)
		if got == now {
			return
		}
		if got.Seq < 0 || got.Log < 0 || got.Seq > now.Seq || got.Log > now.Log || now.Log-got.Log > maxBehind {
			t.Errorf("%q at %s goes on at %s", id, now, got)
		}
		if again := lastPlace(got.String(), now); again != got {
			t.Errorf("%q is %s, and that is %s", id, got, again)
		}
	})
}
