// Package nodetest runs scripts in Node, where the real Yjs and its clients
// live, for tests to talk with: a line of JSON each way.
package nodetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Script is a running script.
type Script struct {
	in  io.Writer
	out *bufio.Reader
}

// Start runs a script of a folder until the test ends. Without Node the test
// is skipped.
func Start(t *testing.T, dir, name string) *Script {
	t.Helper()
	install(t, dir)
	cmd := exec.Command("node", name)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &Script{in, bufio.NewReader(out)}
}

// Ask sends a question and reads the answer to it.
func (s *Script) Ask(t *testing.T, question, answer any) {
	t.Helper()
	if err := json.NewEncoder(s.in).Encode(question); err != nil {
		t.Fatal(err)
	}
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the script is gone: %v", err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		t.Fatal(err)
	}
}

var installing sync.Mutex

// install fetches what the folder's lockfile names, unless it is there.
func install(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed: run scripts/setup test")
	}
	installing.Lock()
	defer installing.Unlock()
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	stamp := filepath.Join(dir, "node_modules", ".installed")
	if installed, err := os.ReadFile(stamp); err == nil && bytes.Equal(installed, lock) {
		return
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.WriteFile(stamp, lock, 0o644); err != nil {
		t.Fatal(err)
	}
}
