package main

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

func TestASecondMachineNeedsS3(t *testing.T) {
	t.Parallel()
	url, key := storetest.Postgres(t), "shared by all replicas"
	args := []string{"--database-url", url, "--secret-key", key}
	first := start(t, append(args, "--data", t.TempDir())...)
	db, err := store.Open(t.Context(), store.Options{URL: url, SecretKey: key, Catalog: credits.DefaultCatalog()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	await(t, "the first server among the workers", func() bool {
		hosts, err := db.WorkerHosts(t.Context(), time.Now())
		return err == nil && len(hosts) == 1
	})
	beside := start(t, append(args, "--data", t.TempDir())...)
	await(t, "a warning about a second folder", func() bool { return strings.Contains(beside.log.String(), "a data folder of its own") })
	out, err := millrace(t, append([]string{"admin", "doctor", "--data", t.TempDir()}, args...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "WRONG    files of several servers") {
		t.Errorf("the doctor: %v %s", err, out)
	}
	beside.kill()
	first.kill()
	if err := db.ReportWorker(t.Context(), runs.Worker{Owner: "o", Host: "another-machine:/data/attempts"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"serve", "worker"} {
		out, err := millrace(t, append([]string{command, "--listen", "127.0.0.1:0", "--data", t.TempDir()}, args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "another-machine") || !strings.Contains(string(out), "--storage-url") {
			t.Errorf("%s: %v %s", command, err, out)
		}
	}
}
