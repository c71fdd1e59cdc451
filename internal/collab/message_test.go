package collab

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/millrace/millrace/internal/domain/document"
	"github.com/millrace/millrace/internal/domain/ydoc"
)

// unframed is what a client reads in a frame.
func unframed(frame []byte) []byte {
	head := map[byte]int{126: 4, 127: 10}[frame[1]]
	return frame[max(2, head):]
}

// Whatever arrives on a socket is read or refused; what was read says the same
// when it is written again, and nobody wears a name that is not theirs.
func FuzzReadingAMessage(f *testing.F) {
	for _, seed := range [][]byte{
		{},
		{0, 0, 1, 0},
		{0, 1, 2, 0, 0},
		{0, 0, 3, 1, 7, 4},
		{3},
		[]byte(emptyEntries),
		append([]byte{1, 13, 1, 7, 1, 9}, `{"u":"A"}`...),
		{1, 8, 1, 7, 1, 4, 'n', 'u', 'l', 'l'},
		{100, 1},
	} {
		f.Add(seed)
	}
	user := json.RawMessage(`{"name":"Ada"}`)
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := read(frame)
		if err != nil {
			return
		}
		switch m.kind {
		case kindSync:
			again, err := read(unframed(syncFrame(m.part, m.body)))
			if err != nil || again.part != m.part || !bytes.Equal(again.body, m.body) {
				t.Fatalf("%x became %+v, %v", frame, again, err)
			}
			doc := ydoc.New(1, ydoc.Limits{Roots: document.Roots})
			if m.part == syncStep1 {
				_, _ = doc.Diff(m.body)
			} else {
				_ = doc.Apply(m.body)
			}
			if _, err := document.Read(doc, document.IDs(doc, nil), nil); err != nil {
				t.Fatal(err)
			}
		case kindAwareness:
			for i := range m.entries {
				if err := m.entries[i].setUser(user); err != nil {
					t.Fatal(err)
				}
				var state struct{ User map[string]string }
				if m.entries[i].state != nil && (json.Unmarshal(m.entries[i].state, &state) != nil || state.User["name"] != "Ada") {
					t.Fatalf("%s", m.entries[i].state)
				}
			}
			again, err := readEntries(presenceBody(m.entries))
			if err == nil && !reflect.DeepEqual(again, m.entries) && len(m.entries) > 0 {
				t.Fatalf("%+v became %+v", m.entries, again)
			}
		}
	})
}
