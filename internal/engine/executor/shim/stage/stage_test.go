package stage

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// onThread does something on a thread of its own, which ends with its namespaces.
func onThread(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root has namespaces without a user's")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never let go
		do()
	}()
	<-done
}

// folderWith is a folder with a file.
func folderWith(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func sample(t *testing.T) Stage {
	t.Helper()
	return Stage{Folder: t.TempDir(), Parts: []Part{
		{Name: "work", From: folderWith(t, "own")},
		{Name: "one", From: filepath.Join(folderWith(t, "one"), "file")},
	}}
}

func TestAStageShowsWhatItIsMadeOf(t *testing.T) {
	t.Parallel()
	s := sample(t)
	onThread(t, func() {
		if err := s.Make(); err != nil {
			t.Error(err)
			return
		}
		for name, want := range map[string]string{"work/file": "own", "one": "one"} {
			if text, err := os.ReadFile(filepath.Join(s.Folder, name)); err != nil || string(text) != want {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
		if err := os.WriteFile(filepath.Join(s.Folder, "work", "new"), []byte("x"), 0o600); err != nil {
			t.Error(err)
		}
	})
	if seen, err := os.ReadDir(s.Folder); err != nil || len(seen) != 0 {
		t.Errorf("others see %v, %v", seen, err)
	}
	if text, err := os.ReadFile(filepath.Join(s.Parts[0].From, "new")); err != nil || string(text) != "x" {
		t.Errorf("what was made: %q, %v", text, err)
	}
}

func TestAStageThatCannotBeMadeSaysWhy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Stage)
		names  string
	}{
		"no folder":       {func(s *Stage) { s.Folder = "/no/such/folder" }, "/no/such/folder"},
		"nothing to show": {func(s *Stage) { s.Parts[0].From = "/no/such/data" }, "/no/such/data"},
		"below nothing":   {func(s *Stage) { s.Parts[0].Name = "none/work" }, "none/work"},
	} {
		s := sample(t)
		tt.change(&s)
		onThread(t, func() {
			if err := s.Make(); err == nil || !strings.Contains(err.Error(), tt.names) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
