package firstprocess

import (
	"errors"
	"strconv"

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

// Start starts a process of this process's own user that is held to the limits, and with
// it everything that the process starts. This process is held to them as well meanwhile.
// The soft limits are inherited. A program with privileges of its own keeps its hard ones.
func (l Limits) Start(start func() (pid int, err error)) (pid int, err error) {
	for resource, most := range map[int]int64{unix.RLIMIT_FSIZE: l.FileSize, unix.RLIMIT_DATA: l.Data} {
		var is unix.Rlimit
		if err := unix.Getrlimit(resource, &is); err != nil {
			return 0, err
		}
		if most <= 0 || is.Cur <= uint64(most) && is.Max <= uint64(most) {
			continue
		}
		soft := unix.Rlimit{Cur: min(is.Cur, uint64(most)), Max: is.Max}
		if err := unix.Setrlimit(resource, &soft); err != nil {
			return 0, err
		}
		defer func() {
			_ = unix.Setrlimit(resource, &is)
			if err == nil {
				_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: soft.Cur, Max: min(is.Max, uint64(most))}, nil)
			}
		}()
	}
	return start()
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
