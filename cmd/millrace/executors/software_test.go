package executors_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/engine/executor/environments"
)

// Where tasks can use no environment, that is said before one is built for them.
func TestWhereTasksRunDecidesWhetherTheyHaveEnvironments(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"kubernetes": "set `image` in place of `environment`", "slurm": "--environments off", "local": "--environments off"} {
		store, err := environments.Open(environments.Config{
			Folder: t.TempDir(), InUse: func() ([]string, error) { return nil, nil }, Log: slog.New(slog.DiscardHandler), Now: time.Now,
			Off: true, Unfit: executors.Named{Kind: kind}.NoEnvironments(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		all := executors.SoftwareOfAll{Each: []executors.Software{{Environments: store}}}
		if said := all.NoEnvironments(environment.Spec{Pip: []string{"numpy"}}); !strings.Contains(said, want) {
			t.Errorf("%s says %q", kind, said)
		}
	}
}
