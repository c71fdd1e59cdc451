package stage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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

func sample(t *testing.T, isRoot bool) Stage {
	t.Helper()
	return Stage{Folder: t.TempDir(), IsRoot: isRoot, Base: []Part{
		{Kind: EmptyFolder, Name: "work"},
		{Kind: EmptyFolder, Name: "dev"},
		{Kind: Symlink, Name: "bin", From: "usr/bin"},
		{Kind: ReadOnly, Name: "data", From: folderWith(t, "read")},
		{Kind: ReadOnly, Name: "one", From: filepath.Join(folderWith(t, "one"), "file")},
		{Kind: Device, Name: "dev/null", From: "/dev/null"},
		{Kind: Terminals, Name: "dev/pts"},
	}, Own: []Part{{Kind: Bound, Name: "work", From: folderWith(t, "own")}}}
}

func TestAStageShowsWhatItIsMadeOf(t *testing.T) {
	t.Parallel()
	s := sample(t, true)
	at := func(name string) string { return filepath.Join(s.Folder, name) }
	onThread(t, func() {
		if err := s.Make(); err != nil {
			t.Error(err)
			return
		}
		for name, want := range map[string]string{"data/file": "read", "one": "one", "work/file": "own"} {
			if text, err := os.ReadFile(at(name)); err != nil || string(text) != want {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
		if to, err := os.Readlink(at("bin")); err != nil || to != "usr/bin" {
			t.Errorf("bin: %q, %v", to, err)
		}
		for name, want := range map[string]error{"new": unix.EROFS, "data/new": unix.EROFS, "data/file": unix.EROFS, "one": unix.EROFS, "dev/new": unix.EROFS, "work/new": nil, "dev/null": nil} {
			if err := os.WriteFile(at(name), []byte("x"), 0o600); !errors.Is(err, want) {
				t.Errorf("writing %s: %v, want %v", name, err, want)
			}
		}
		for name, want := range map[string]int64{"data": unix.ST_NOSUID | unix.ST_NODEV | unix.ST_RDONLY, "work": unix.ST_NOSUID | unix.ST_NODEV, "dev/null": unix.ST_NOSUID} {
			var is unix.Statfs_t
			if err := unix.Statfs(at(name), &is); err != nil || is.Flags&want != want {
				t.Errorf("%s is mounted with %x, %v", name, is.Flags, err)
			}
		}
	})
	if seen, err := os.ReadDir(s.Folder); err != nil || len(seen) != 0 {
		t.Errorf("others see %v, %v", seen, err)
	}
	if text, err := os.ReadFile(filepath.Join(s.Own[0].From, "new")); err != nil || string(text) != "x" {
		t.Errorf("what was made: %q, %v", text, err)
	}
}

// Where bubblewrap picks what it needs, it also says what is read-only.
func TestAStageThatIsNoRootIsLeftOpen(t *testing.T) {
	t.Parallel()
	s := sample(t, false)
	onThread(t, func() {
		if err := s.Make(); err != nil {
			t.Error(err)
			return
		}
		if err := os.WriteFile(filepath.Join(s.Folder, "new"), nil, 0o600); err != nil {
			t.Error(err)
		}
	})
}

func TestAStageThatCannotBeMadeSaysWhy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Stage)
		names  string
	}{
		"no folder":          {func(s *Stage) { s.Folder = "/no/such/folder" }, "/no/such/folder"},
		"nothing to show":    {func(s *Stage) { s.Base[3].From = "/no/such/data" }, "/no/such/data"},
		"below nothing":      {func(s *Stage) { s.Base[0].Name = "none/work" }, "none/work"},
		"a link to be taken": {func(s *Stage) { s.Base[2].Name = "work" }, "work"},
	} {
		s := sample(t, true)
		tt.change(&s)
		onThread(t, func() {
			if err := s.Make(); err == nil || !strings.Contains(err.Error(), tt.names) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	s := sample(t, true)
	s.Own[0].From = "/no/such/own"
	onThread(t, func() {
		if err := s.Make(); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}

func TestANetworkOfOnesOwn(t *testing.T) {
	t.Parallel()
	onThread(t, func() {
		if err := LeaveNetwork(); err != nil {
			t.Error(err)
			return
		}

		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(fd)
		if err := unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Errorf("there is no loopback: %v", err)
		}
		text, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil || strings.Count(string(text), ":") != 1 || !strings.Contains(string(text), "lo:") {
			t.Errorf("it has the interfaces %s, %v", text, err)
		}
	})
}
