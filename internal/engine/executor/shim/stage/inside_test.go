package stage

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// world is a process with file systems and queues of its own, as a sandbox has them.
func world(t *testing.T) (process string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root has namespaces without a user's")
	}
	c := exec.Command("sh", "-c", "set -e; for f in /run /dev/shm /mnt; do mount -t tmpfs -o mode=755 none $f; done; rm -rf /run/mount; mkdir /mnt/own; echo ready; read -r line")
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS | unix.CLONE_NEWIPC}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "ready" {
		t.Fatal("it has no file systems of its own")
	}
	return "/proc/" + strconv.Itoa(c.Process.Pid)
}

// inside opens a world on a thread that can visit it.
func inside(t *testing.T, process string, do func(in *Inside)) {
	t.Helper()
	onThread(t, func() {
		if err := unix.Unshare(unix.CLONE_FS); err != nil { // as making a stage does
			t.Error(err)
			return
		}
		in, err := Enter(process)
		if err != nil {
			t.Error(err)
			return
		}
		defer in.Close()
		if in.once {
			t.Error("it could not be looked into")
			return
		}
		do(in)
	})
}

func TestAnAttemptsOwnComesAndGoes(t *testing.T) {
	t.Parallel()
	process, from := world(t), folderWith(t, "own")
	own := []Part{{Kind: ReadOnly, Name: "mnt/own", From: from}}
	inside(t, process, func(in *Inside) {
		for range 2 { // one attempt after the other
			if err := in.Mount(own); err != nil {
				t.Error(err)
				return
			}
			if text, err := os.ReadFile(filepath.Join(process, "root", "mnt/own/file")); err != nil || string(text) != "own" {
				t.Errorf("%q, %v", text, err)
			}
			if err := os.WriteFile(filepath.Join(process, "root", "mnt/own/new"), nil, 0o600); !errors.Is(err, unix.EROFS) {
				t.Errorf("it can be changed: %v", err)
			}
			if err := in.Restore(own); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(filepath.Join(process, "root", "mnt/own")); err != nil || len(left) != 0 {
				t.Errorf("%v are left, %v", left, err)
			}
		}
		if _, err := os.Stat("/mnt/own"); err == nil {
			t.Error("the thread is still inside")
		}
		// A file that somebody holds keeps its mount, and the sandbox serves nobody else.
		if err := in.Mount(own); err != nil {
			t.Error(err)
			return
		}
		held, err := os.Open(filepath.Join(process, "root", "mnt/own/file"))
		if err != nil {
			t.Error(err)
			return
		}
		if err := in.Restore(own); !errors.Is(err, unix.EBUSY) {
			t.Errorf("while a file is held: %v", err)
		}
		if err := errors.Join(held.Close(), in.Restore(own)); err != nil {
			t.Error(err)
		}
		for _, wrong := range []Part{{Kind: Bound, Name: "mnt/own", From: "/no/such/folder"}, {Kind: Bound, Name: "mnt/none", From: from}} {
			if err := in.Mount([]Part{wrong}); !errors.Is(err, unix.ENOENT) {
				t.Errorf("%+v: %v", wrong, err)
			}
		}
	})
}

// Whatever a command leaves where the next one could find it is noticed, and is no more
// once it is gone.
func TestWhatIsLeftIsNoticed(t *testing.T) {
	t.Parallel()
	process := world(t)
	run, shm := filepath.Join(process, "root", "run"), filepath.Join(process, "root", "dev/shm")
	xattr := func(do func() error) func() error {
		return func() error {
			if err := do(); !errors.Is(err, unix.ENOTSUP) {
				return err
			}
			return nil
		}
	}
	inside(t, process, func(in *Inside) {
		for name, trace := range map[string]struct{ leave, remove func() error }{
			"a file":   {func() error { return os.WriteFile(filepath.Join(run, "a"), nil, 0o600) }, func() error { return os.Remove(filepath.Join(run, "a")) }},
			"a folder": {func() error { return os.Mkdir(filepath.Join(shm, ".a"), 0o700) }, func() error { return os.Remove(filepath.Join(shm, ".a")) }},
			"a mode":   {func() error { return os.Chmod(run, 0o711) }, func() error { return os.Chmod(run, 0o755) }},
			"an owner": {func() error { return os.Chown(shm, 1, 0) }, func() error { return os.Chown(shm, 0, 0) }},
			"an attribute": {
				xattr(func() error { return unix.Setxattr(run, "trusted.a", []byte("x"), 0) }), xattr(func() error { return unix.Removexattr(run, "trusted.a") }),
			},
			"a queue": {func() error { return inQueues(process, unix.SYS_MQ_OPEN) }, func() error { return inQueues(process, unix.SYS_MQ_UNLINK) }},
		} {
			if err := in.Restore(nil); err != nil {
				t.Errorf("before %s: %v", name, err)
			}
			if err := trace.leave(); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if err := in.Restore(nil); !errors.Is(err, errChanged) {
				t.Errorf("%s is not noticed: %v", name, err)
			}
			if err := trace.remove(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := in.Restore(nil); err != nil {
				t.Errorf("after %s: %v", name, err)
			}
		}
	})
}

// inQueues makes or removes a message queue where a process has its own.
func inQueues(process string, call uintptr) error {
	failed := make(chan error)
	go func() {
		// The thread is not given back.
		failed <- func() error {
			runtime.LockOSThread()
			ns, err := os.Open(process + "/ns/ipc")
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWIPC); err != nil {
				return err
			}
			name := []byte("queue\x00")
			fd, _, no := unix.Syscall6(call, uintptr(unsafe.Pointer(&name[0])), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600, 0, 0, 0)
			if no != 0 {
				return no
			}
			if call == unix.SYS_MQ_OPEN {
				return unix.Close(int(fd))
			}
			return nil
		}()
	}()
	return <-failed
}

func TestAProcessThatIsGoneHasNoInside(t *testing.T) {
	t.Parallel()
	onThread(t, func() {
		if in, err := Enter("/proc/" + strconv.Itoa(1<<30)); err == nil {
			in.Close()
			t.Error("it is there")
		}
	})
}
