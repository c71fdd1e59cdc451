package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/store/storetest"
)

// An installation that began in a folder grows onto PostgreSQL and a bucket: who
// was signed in still is, and everything is there.
func TestAnInstallationMovesToPostgresAndABucket(t *testing.T) {
	t.Parallel()
	data, database := t.TempDir(), storetest.Postgres(t)
	bucket := bucketAddress(t) + "&prefix=" + strings.ToLower(t.Name())
	s := start(t, "--data", data, "--sandbox", "none")
	public := s.base
	token, cookie, _ := s.signUp("ada")
	w := s.workflow(token, `{"nodes":[{"id":"a","command":"echo hello > o","outputs":{"o":{"path":"o"}}}]}`)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q,"name":"zebrafish"}`, w))
	s.endedFor(cookie, id)

	admin := func(args ...string) (string, error) {
		out, err := millrace(t, append([]string{"admin", "move", "--data", data}, args...)...).CombinedOutput()
		return string(out), err
	}
	to := []string{"--database-url", database, "--storage-url", bucket}
	if out, err := admin(to...); err == nil || !strings.Contains(out, "in use by another server") {
		t.Errorf("beside a server: %v\n%s", err, out)
	}
	s.kill()
	if out, err := admin("--storage-url", bucket); err == nil || !strings.Contains(out, "--database-url") {
		t.Errorf("without a database: %v\n%s", err, out)
	}
	if out, err := admin(append(to, "--secret-key", "another")...); err == nil || !strings.Contains(out, "key") {
		t.Errorf("with another key: %v\n%s", err, out)
	}
	if out, err := admin(append(to, "--data", t.TempDir())...); err == nil || !strings.Contains(out, "no database in") {
		t.Errorf("from another folder: %v\n%s", err, out)
	}
	if out, err := admin(to...); err != nil || !strings.Contains(out, "runs: 1 rows") || !strings.Contains(out, "objects: 1,") {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(data, "objects")); err != nil { // nothing needs them
		t.Fatal(err)
	}
	if out, err := millrace(t, "serve", "--data", data, "--listen", "127.0.0.1:0").CombinedOutput(); err == nil || !strings.Contains(string(out), "was moved to PostgreSQL") {
		t.Errorf("a server on the old database: %v\n%s", err, out)
	}

	s = start(t, append(to, "--data", data, "--sandbox", "none", "--public-urls", public, "--sign-up", "open")...)
	rows, _ := s.want(200, "GET", "/api/runs?q=zebrafish", "", "Cookie", cookie)["data"].([]any)
	if len(rows) != 1 {
		t.Errorf("it finds %v", rows)
	}
	outputs, _ := s.want(200, "GET", "/api/runs/"+id+"/outputs", "", "Cookie", cookie)["data"].([]any)
	if len(outputs) != 1 || get(t, outputs[0].(map[string]any)["url"].(string)) != "hello\n" {
		t.Errorf("the run made %v", outputs)
	}
	s.billedOnce(cookie, []string{id})
	s.endedFor(cookie, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w)))
	if out, err := millrace(t, "admin", "audit", "verify", "--data", data, "--database-url", database).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
