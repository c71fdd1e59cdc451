package events

import (
	"net/http/httptest"
	"testing"
)

func TestAHeartbeatIsNoEvent(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	s := Open(w)
	for _, text := range []string{"id: 1:0\ndata: {}\n\n", Heartbeat, "id: 2:0\ndata: {}\n\n"} {
		if err := s.Line(text); err != nil {
			t.Fatal(err)
		}
	}
	if want := "id: 1:0\ndata: {}\n\n: heartbeat\nid: 2:0\ndata: {}\n\n"; w.Body.String() != want {
		t.Errorf("%q", w.Body)
	}
}
