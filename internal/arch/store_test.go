package arch

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// storeCore are the files of the store that every room builds on: the
// connection, the two dialects, how they sort, transactions, sealing and migrations.
var storeCore = []string{"store", "dialect", "order", "writer", "prepared", "observed", "rows", "private", "seal", "rekey", "migrate", "move", "bridge"}

// maxStoreRoom is how many lines one room, or the core, may have in the store.
const maxStoreRoom = 2000

// partOfARoom reports whether a room has a package of this name, as runs has
// schedules.
func partOfARoom(name string) bool {
	found, _ := filepath.Glob("../*/" + name)
	return slices.ContainsFunc(found, func(dir string) bool { return floorOf[filepath.Base(filepath.Dir(dir))] == "rooms" })
}

// The store is one folder, because writes that belong together are one
// transaction across rooms. So it is measured by room: the first word of a
// file's name says whose it is.
func TestTheStoreIsOrderedByRoom(t *testing.T) {
	files, err := filepath.Glob("../store/*.go")
	if err != nil || len(files) < 30 {
		t.Fatalf("found %d files, %v", len(files), err)
	}
	lines := map[string]int{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".go")
		if strings.HasSuffix(name, "_test") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		room, _, _ := strings.Cut(name, "_")
		switch {
		case slices.Contains(storeCore, name):
			room = "core"
		case floorOf[room] == "" && !partOfARoom(room):
			t.Errorf("store/%s.go is named after no room: call it <room>_%s.go", name, name)
		}
		lines[room] += bytes.Count(text, []byte("\n"))
	}
	for room, n := range lines {
		if n > maxStoreRoom {
			t.Errorf("%s has %d lines in the store, more than %d: it is two rooms", room, n, maxStoreRoom)
		}
	}
}
