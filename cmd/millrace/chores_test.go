package main

import (
	"testing"

	"github.com/millrace/millrace/cmd/millrace/executors"
)

// An object store that hangs holds up no chore for good, and none of the database.
func TestChoresThatAskTheObjectStoreHaveALimit(t *testing.T) {
	t.Parallel()
	h := &application{shims: &executors.Shims{}}
	names := map[string]bool{}
	for _, c := range h.objectChores() {
		names[c.Name] = true
		if c.Limit <= 0 {
			t.Errorf("%s may take for ever", c.Name)
		}
	}
	for _, c := range h.databaseChores() {
		if names[c.Name] {
			t.Errorf("%s is done twice", c.Name)
		}
	}
	if !names["arrived-uploads"] {
		t.Error("arrived-uploads is not among them")
	}
}
