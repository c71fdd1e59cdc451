package store

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A sealed column that the change of the key does not know would be lost with
// the old one.
func TestEverySealedColumnIsSealedAnew(t *testing.T) {
	t.Parallel()
	var known []string
	for _, c := range sealedColumns {
		known = append(known, c.table+"."+c.column)
	}
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	table, column := regexp.MustCompile(`(?:CREATE|ALTER) TABLE (\w+)`), regexp.MustCompile(`(\w+)\s+BYTEA`)
	found := 0
	for _, f := range files {
		text, err := migrationFiles.ReadFile("migrations/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		at := ""
		for line := range strings.Lines(string(text)) {
			if m := table.FindStringSubmatch(line); m != nil {
				at = m[1]
			}
			m := column.FindStringSubmatch(line)
			if m == nil || !strings.Contains(line, "sealed") || at == "secret_check" {
				continue
			}
			if found++; !slices.Contains(known, at+"."+m[1]) {
				t.Errorf("%s.%s of %s is not in sealedColumns", at, m[1], f.Name())
			}
		}
	}
	if found != len(known) {
		t.Errorf("%d columns in the schema, %d in the list", found, len(known))
	}
}
