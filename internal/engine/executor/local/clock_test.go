package local_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
)

// The machine's clock, by which the shim goes, is an hour ahead of the installation's.
func TestTimesGoByTheClockOfTheInstallation(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.Now().Add(-time.Hour) }
	b := drivertest.NewFixture(t, func(t testing.TB, folder string) drivertest.Subject {
		return subject(t, local.Config{Folder: folder, Sandbox: local.None, VCPU: 200, Now: now})
	})
	before := now()
	seen := b.Do(t, b.Spec(t, "echo out"))
	marks, err := b.Driver.(executor.Meter).Marks(t.Context(), seen.Handle, 0)
	if err != nil || len(marks) == 0 || seen.Exit == nil {
		t.Fatal(marks, seen.Exit, err)
	}
	after := now()
	for what, at := range map[string]time.Time{"start": seen.Exit.Start, "end": seen.Exit.End, "status": seen.At, "log": marks[0].At} {
		if at.Before(before.Add(-time.Second)) || at.After(after.Add(time.Second)) {
			t.Errorf("%s is %s, not between %s and %s", what, at, before, after)
		}
	}
}
