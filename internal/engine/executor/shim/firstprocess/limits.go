package firstprocess

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limits are those that the kernel holds every process of a command to, in
// bytes; 0 is no limit.
type Limits struct {
	FileSize int64 // of each file that it writes
	Data     int64 // of the memory of each process
}

// Arguments are how a program of ours is told limits, to be read by ParseLimits.
func (l Limits) Arguments() []string {
	return []string{strconv.FormatInt(l.FileSize, 10), strconv.FormatInt(l.Data, 10)}
}

// ParseLimits reads the arguments of Arguments.
func ParseLimits(fileSize, data string) (Limits, error) {
	f, err := strconv.ParseInt(fileSize, 10, 64)
	d, errData := strconv.ParseInt(data, 10, 64)
	return Limits{f, d}, errors.Join(err, errData)
}

// Set holds this process, and with it everything that it starts, to the limits.
// A process may always lower its own limits, while those of another user's
// process are only open to CAP_SYS_RESOURCE, which root lacks in a container.
func (l Limits) Set() error {
	return errors.Join(lower(unix.RLIMIT_FSIZE, l.FileSize), lower(unix.RLIMIT_DATA, l.Data))
}

// Exec puts a command in the place of this process, held to the limits. It returns the
// status to exit with if that fails.
func (l Limits) Exec(argv []string) int {
	if l.Set() == nil {
		_ = syscall.Exec(argv[0], argv, os.Environ())
	}
	return CannotStart
}

// lower sets a limit that is not lower already.
func lower(resource int, most int64) error {
	if most <= 0 {
		return nil
	}
	var is unix.Rlimit
	if err := unix.Getrlimit(resource, &is); err != nil {
		return err
	}
	is.Max = min(is.Max, uint64(most))
	is.Cur = is.Max
	return unix.Setrlimit(resource, &is)
}
