package remote_test

import (
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/drivertest"
)

// A driver whose jobs are shims on this machine, which know nothing of it but an
// address, keeps every promise that a driver makes.
func TestADriverWithoutASharedFolder(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, sites())
}

func TestADriverWithoutASharedFolderOfRealProcesses(t *testing.T) {
	t.Parallel()
	drivertest.RunReal(t, sites())
}
