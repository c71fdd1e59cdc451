package relay_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/relay"
)

// relayed has this program relay, in a network of its own, where the address is free.
const relayed = "MILLRACE_TEST_RELAY"

var taken net.Listener

func TestMain(m *testing.M) {
	socket := os.Getenv(relayed)
	switch {
	case socket == "":
		os.Exit(m.Run())
	case os.Getenv(relayed+"_TAKEN") != "":
		var err error
		if taken, err = net.Listen("tcp", relay.Address); err != nil {
			os.Exit(1)
		}
	}
	os.Exit(relay.Run(socket, os.Args[1:]))
}

// leaveNetwork moves this thread into a network namespace that has only a loopback device.
func leaveNetwork() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP)
	return os.NewSyscallError("ioctl", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, loopback))
}

// inRelay runs a command with the socket in reach, and returns what it printed and its
// status.
func inRelay(t *testing.T, socket string, env []string, argv ...string) (string, int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, argv...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.Env = append(append(os.Environ(), relayed+"="+socket), env...)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with its network
		if err := leaveNetwork(); err != nil {
			started <- err
			return
		}
		started <- c.Start()
	}()
	switch err := <-started; {
	case errors.Is(err, os.ErrPermission):
		t.Skipf("a network of its own needs root: %v", err)
	case err != nil:
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	return out.String(), c.ProcessState.ExitCode()
}

// echo answers on a socket, each line with what it is.
func echo(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, "hello ")
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return socket
}

// bash speaks to the address on one connection after the other.
const speak = `for word in one two; do exec 3<>/dev/tcp/127.0.0.1/8000 || exit 9; echo $word >&3; head -n 1 <&3; exec 3>&-; done`

func TestACommandReachesOneSocketAndNothingElse(t *testing.T) {
	t.Parallel()
	out, status := inRelay(t, echo(t), nil, "bash", "-c", speak)
	if status != 0 || out != "hello one\nhello two\n" {
		t.Errorf("%q, status %d", out, status)
	}
	// Nobody listens on the socket: the command's connections end, and it goes on.
	out, status = inRelay(t, filepath.Join(t.TempDir(), "none"), nil, "bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/8000; cat <&3; echo over`)
	if status != 0 || !strings.HasSuffix(out, "over\n") {
		t.Errorf("%q, status %d", out, status)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if out, status := inRelay(t, echo(t), nil, "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", other.Addr().(*net.TCPAddr).Port)); status == 0 {
		t.Errorf("it reaches the machine: %q", out)
	}
}

// The status is the command's own, as a shell counts it.
func TestARelayEndsAsItsCommand(t *testing.T) {
	t.Parallel()
	socket := echo(t)
	for name, tt := range map[string]struct {
		argv   []string
		env    []string
		status int
	}{
		"well":                {[]string{"true"}, nil, 0},
		"with a failure":      {[]string{"sh", "-c", "exit 3"}, nil, 3},
		"by a signal":         {[]string{"sh", "-c", "kill -KILL $$"}, nil, 128 + int(syscall.SIGKILL)},
		"no such program":     {[]string{"no-such-program"}, nil, 125},
		"the address is used": {[]string{"true"}, []string{relayed + "_TAKEN=1"}, 125},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, status := inRelay(t, socket, tt.env, tt.argv...); status != tt.status {
				t.Errorf("status %d, want %d; %q", status, tt.status, out)
			}
		})
	}
}
