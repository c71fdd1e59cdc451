package engine_test

import (
	"testing"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/store/storetest"
)

// Files of one name that lay in several folders are all kept.
func TestFilesOfOneNameAreAllKept(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	s.open("w1")
	id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: output:p/x.txt=one output:q/x.txt=two","outputs":{"o":{"path":"*/x.txt","many":true}}}]}`, `{}`)
	r := s.await(id, terminal)
	if r.Status != lifecycle.Completed {
		t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
	}
	list := s.made(id)
	if len(list) != 2 || list[0].Name != "x.txt" || list[1].Name != "x.txt" || list[0].SHA256 == list[1].SHA256 || list[0].Key == list[1].Key {
		t.Errorf("%+v", list)
	}
}
