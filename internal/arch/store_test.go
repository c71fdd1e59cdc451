package arch

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// storeCore are the files of the store that every room builds on: the
// connection, the two dialects, how they sort, transactions, sealing and migrations.
var storeCore = []string{"store", "dialect", "order", "writer", "prepared", "observed", "rows", "private", "seal", "rekey", "migrate", "move", "bridge"}

// partOfARoom reports whether a room has a package of this name, as runs has
// schedules.
func partOfARoom(name string) bool {
	found, _ := filepath.Glob("../*/" + name)
	return slices.ContainsFunc(found, func(dir string) bool { return floorOf[filepath.Base(filepath.Dir(dir))] == "rooms" })
}

// The store is one folder, because writes that belong together are one
// transaction across rooms. The first word of a file's name says whose it is.
func TestTheStoreIsOrderedByRoom(t *testing.T) {
	files, err := filepath.Glob("../store/*.go")
	if err != nil || len(files) < 30 {
		t.Fatalf("found %d files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".go")
		if strings.HasSuffix(name, "_test") {
			continue
		}
		room, _, _ := strings.Cut(name, "_")
		if !slices.Contains(storeCore, name) && floorOf[room] == "" && !partOfARoom(room) {
			t.Errorf("store/%s.go is named after no room: call it <room>_%s.go", name, name)
		}
	}
}
