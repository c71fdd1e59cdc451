package stage

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// LeaveNetwork puts this thread into a new network namespace that has nothing
// but a loopback.
func LeaveNetwork() error {
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

// NetworkUnused reports whether nothing was ever sent in this thread's network
// namespace, and it has no more than some Unix sockets, so that the next command
// cannot tell it from a new one: no connection lingers on, and nothing was
// counted.
func NetworkUnused(sockets int) bool {
	if has, err := UnixSockets(); err != nil || has != sockets {
		return false
	}
	text, err := rawfile.Read("/proc/thread-self/net/dev")
	if err != nil {
		return false
	}
	_, after, found := strings.Cut(string(text), "lo:")
	received, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	return found && received == "0" && strings.Count(string(text), ":") == 1 && !hasFlowLabels()
}

// hasFlowLabels reports whether there are labels of IPv6, which can be kept for
// a minute after the socket that asked for them, and without any packet.
func hasFlowLabels() bool {
	text, err := rawfile.Read("/proc/thread-self/net/ip6_flowlabel")
	return !errors.Is(err, fs.ErrNotExist) && (err != nil || strings.Count(string(text), "\n") != 1)
}

// UnixSockets counts the Unix sockets in this thread's network namespace. Those
// that were sent through each other live on for a moment without any process.
func UnixSockets() (int, error) {
	text, err := rawfile.Read("/proc/thread-self/net/unix")
	return strings.Count(string(text), "\n") - 1, err
}
