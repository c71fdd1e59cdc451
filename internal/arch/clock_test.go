package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ofTheMachine are the files that ask the machine for its time, and why they may.
var ofTheMachine = map[string]string{
	"cmd/millrace/main.go":                 "the client commands have no database",
	"cmd/millrace/admin_audit.go":          "the entry is made before the database is open",
	"cmd/millrace/doctor.go":               "it tries things out beside a server",
	"cmd/millrace/executors/probe.go":      "it tries things out beside a server",
	"cmd/millrace/executors/slurm.go":      "the doctor uses it; the server sets its own",
	"cmd/millrace/images.go":               "compared with the times of local files",
	"cmd/millrace/objects.go":              "compared with the times of local files",
	"cmd/millrace/sources/sources.go":      "compared with the times of local files",
	"cmd/millrace/papers.go":               "compared with the times of local files",
	"cmd/millrace/installation/move.go":    "measures how long something takes",
	"cmd/millrace/installation/restore.go": "measures how long something takes",
	"internal/store/writer.go":             "measures how long something takes",
}

// What is written to the database, or compared with it, goes by the clock of the
// installation: the clocks of the machines may differ.
func TestTimesInTheDatabaseAreTheInstallations(t *testing.T) {
	seen := map[string]bool{}
	for _, root := range []string{"cmd/millrace", "internal/store"} {
		err := filepath.WalkDir("../../"+root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || isTest(path) {
				return err
			}
			text, err := os.ReadFile(path)
			name := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
			if strings.Contains(string(text), "time.Now") {
				seen[name] = true
				if ofTheMachine[name] == "" {
					t.Errorf("%s uses time.Now: use the Now of the store", name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range ofTheMachine {
		if !seen[name] {
			t.Errorf("%s does not use time.Now any more: take it off the list", name)
		}
	}
}
