// Package tooltest runs programs in a real sandbox for the tests of others.
package tooltest

import (
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/tool"
	"github.com/millrace/millrace/internal/waittest"
)

// Limits are enough for any honest file, and a short end for others.
var Limits = tool.Limits{CPU: 20 * time.Second, Time: time.Minute, Memory: 512 << 20, Disk: 20 << 20, Output: 4 << 20}

// Main runs the tests of a package that uses New: where no shim is embedded, the
// test program is its own.
func Main(m *testing.M) {
	if job.IsCall(os.Args) {
		syscall.Exit(job.Run(os.Args))
	}
	waittest.Main(m)
}

// New makes a runner that ends with the test. It takes the machine's sandbox
// only when something is run.
func New(t *testing.T, l tool.Limits) *tool.Runner {
	t.Helper()
	r := tool.New(local.Config{Folder: filepath.Join(t.TempDir(), "tools"), Log: slog.New(slog.DiscardHandler), Now: time.Now, VCPU: 8}, l)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}
