package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/keyfile"
	"github.com/millrace/millrace/internal/waittest"
)

// The key of an embedded installation is changed by one command: accounts,
// secrets and links work on, and a change that was cut off is finished.
func TestTheKeyOfAnInstallationIsChanged(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := start(t, "--data", folder)
	_, cookie, _ := s.signUp("ada")
	s.want(200, "PUT", "/api/secrets/TOKEN", `{"value":"the value of it"}`, "Cookie", cookie)
	rotate := func() (string, error) {
		out, err := millrace(t, "admin", "rotate-key", "--data", folder).CombinedOutput()
		return string(out), err
	}
	if out, err := rotate(); err == nil || !strings.Contains(out, "in use by another server") {
		t.Errorf("beside a running server: %v, %s", err, out)
	}
	s.kill()
	old, err := os.ReadFile(filepath.Join(folder, keyfile.Name))
	if err != nil {
		t.Fatal(err)
	}
	// As if it had been killed before anything was sealed.
	if err := os.WriteFile(filepath.Join(folder, keyfile.Next), []byte("a key that is long enough for it\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := millrace(t, "serve", "--data", folder, "--listen", "127.0.0.1:0").CombinedOutput(); err == nil || !strings.Contains(string(out), "rotate-key") {
		t.Errorf("a server started in the middle: %v, %s", err, out)
	}
	if out, err := rotate(); err != nil {
		t.Fatal(out)
	}
	text, err := os.ReadFile(filepath.Join(folder, keyfile.Name))
	if err != nil || string(text) == string(old) || strings.TrimSpace(string(text)) != "a key that is long enough for it" {
		t.Errorf("the key is %q, %v", text, err)
	}
	if out, err := rotate(); err != nil { // and again, to one that it makes
		t.Fatal(out)
	}
	s = start(t, "--data", folder)
	token := s.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	w := s.workflow(token, `{"nodes":[{"id":"a","secrets":["TOKEN"],"command":"[ \"$SECRET_TOKEN\" = 'the value of it' ]"}]}`)
	body := `{"workflowId":"` + w + `"}`
	var status int
	var answer map[string]any
	if !waittest.Until(func() bool {
		status, answer, _ = s.call("POST", "/api/runs", body, "Authorization", bearer(token))
		return status == 202
	}) {
		t.Fatalf("no run is accepted: %d, %v\n%s", status, answer, s.log)
	}
	if r := s.ended(token, s.run(token, body)); r["status"] != "completed" {
		t.Errorf("%v", r["errorMessage"])
	}
	s.kill()
	// A key that was lost is missed at the start.
	if err := os.Remove(filepath.Join(folder, keyfile.Name)); err != nil {
		t.Fatal(err)
	}
	out, err := millrace(t, "serve", "--data", folder, "--listen", "127.0.0.1:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "put the secret.key of the first server there") {
		t.Errorf("without its key: %v, %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(folder, keyfile.Name)); err == nil {
		t.Error("it made another key")
	}
}
