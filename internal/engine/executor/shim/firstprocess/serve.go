package firstprocess

import (
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// maxKeptOrder bounds the orders after which a sandbox serves another command.
// What the first process takes up counts as its commands' memory, so a long
// order must not be on the bill of the next.
const maxKeptOrder = 64 << 10

// serveOrders runs one command after the other. After one that failed, or that
// has changed what the next would inherit, it ends as that command did.
func serveOrders() int {
	if _, err := unix.Write(SocketFD, []byte{Waiting}); err != nil {
		return badArguments
	}
	atFirst := inheritedSettings()
	for {
		streams, err := receiveStreams()
		if err != nil {
			return badArguments
		}
		order, err := readOrder()
		if err != nil {
			return badArguments
		}
		o, err := decode(order)
		if err != nil {
			return badArguments
		}
		status, used := o.execute(streams)
		killOthers(&used)
		o.removeScript()
		word := byte(ended)
		if status != 0 || len(order) > maxKeptOrder || hasSharedMemory() || !slices.Equal(atFirst, inheritedSettings()) || threadsDiffer() {
			word = leaves
		}
		if _, err := unix.Write(SocketFD, encodeEnd(word, used)); err != nil || word == leaves {
			return status
		}
	}
}

// receiveStreams waits for an order, and returns the streams of its command.
func receiveStreams() ([]uintptr, error) {
	var word [1]byte
	rights := make([]byte, unix.CmsgSpace(3*4))
	for {
		n, size, _, _, err := unix.Recvmsg(SocketFD, word[:], rights, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n != 1 || word[0] != Go { // nobody comes any more
			return nil, errOrder
		}
		messages, err := unix.ParseSocketControlMessage(rights[:size])
		if err != nil || len(messages) != 1 {
			return nil, errOrder
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 3 {
			return nil, errOrder
		}
		return []uintptr{uintptr(fds[0]), uintptr(fds[1]), uintptr(fds[2])}, nil
	}
}

func readOrder() ([]byte, error) {
	if _, err := unix.Seek(OrderFD, 0, 0); err != nil {
		return nil, err
	}
	return rawfile.ReadDescriptor(OrderFD)
}

// killOthers ends what the command has left, and returns when this process is
// the only one of the sandbox: all others are below it.
func killOthers(used *syscall.Rusage) {
	for options := unix.WNOHANG; ; {
		var one syscall.Rusage
		pid, err := syscall.Wait4(-1, nil, options|unix.WALL, &one)
		switch {
		case err == syscall.ECHILD:
			return
		case err == nil && pid > 0:
			addUsage(used, one)
			options = unix.WNOHANG
		default: // there are some, and none has ended
			_ = unix.Kill(-1, unix.SIGKILL)
			options = 0
		}
	}
}

func addUsage(sum *syscall.Rusage, one syscall.Rusage) {
	cpu := sum.Utime.Nano() + sum.Stime.Nano() + one.Utime.Nano() + one.Stime.Nano()
	sum.Utime, sum.Stime = syscall.NsecToTimeval(cpu), syscall.Timeval{}
	sum.Maxrss = max(sum.Maxrss, one.Maxrss)
}

// removeScript removes the file of a command. Where it cannot, something is
// left for the shim to find.
func (o Order) removeScript() {
	if o.Script != "" {
		_ = unix.Unlink(ScriptPath)
		_ = unix.Rmdir(filepath.Dir(ScriptPath))
	}
}
