package local

import (
	"encoding/json"
	"log/slog"
	"os"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// TestFolderOfAnUnreadableAttemptIsKeptWhileItRuns begins with a shim that has attempts
// of which this server cannot read what they are.
func TestFolderOfAnUnreadableAttemptIsKeptWhileItRuns(t *testing.T) {
	t.Parallel()
	d := &Driver{folder: t.TempDir(), log: slog.New(slog.DiscardHandler), attempts: map[string]*attempt{}, unreadable: map[string]bool{}}
	for _, id := range []string{"runs", "ended", "lost", "prepared"} {
		if err := os.Mkdir(d.dir(id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	torn := json.RawMessage(`{"spec":`)
	d.reconcile([]shim.Record{{ID: "runs", Metadata: torn}, {ID: "ended", Metadata: torn, Exit: &shim.Exit{}}, {ID: "lost", Metadata: torn, Lost: true}})
	if err := d.removeUnsubmitted(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(d.folder)
	if err != nil || len(left) != 1 || left[0].Name() != "runs" {
		t.Errorf("%v are left, %v", left, err)
	}
}
