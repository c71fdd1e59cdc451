package firstprocess

import (
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inheritedSettings is what a command inherits and what one that runs as the
// same user can change on this process, or on this thread of it. The rest, such
// as what the kernel shows in /proc/1, is closed to it.
func inheritedSettings() (settings []uint64) {
	timerSlack, _, _ := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_TIMERSLACK, 0, 0)
	settings = append(threadSettings(0), uint64(timerSlack))
	for resource := range numberOfLimits {
		var l unix.Rlimit
		err := unix.Prlimit(0, resource, nil, &l)
		settings = append(settings, l.Cur, l.Max, failed(err))
	}
	return settings
}

// threadsDiffer reports whether any thread of this process has settings of its
// own. No command inherits them, but all of them wait for each of the threads.
func threadsDiffer() bool {
	list, err := unix.Open("/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(list)
	names, usual := make([]byte, 4096), threadSettings(0)
	for {
		n, err := unix.ReadDirent(list, names)
		if n <= 0 || err != nil {
			return err != nil
		}
		_, _, found := unix.ParseDirent(names[:n], -1, nil)
		for _, name := range found {
			if id, err := strconv.Atoi(name); err != nil || !slices.Equal(usual, threadSettings(id)) {
				return true
			}
		}
	}
}

// threadSettings are those of one thread, or of this one for 0.
func threadSettings(id int) (settings []uint64) {
	scheduling, err := unix.SchedGetAttr(id, 0)
	if err == nil {
		settings = append(settings, uint64(scheduling.Policy), scheduling.Flags, uint64(scheduling.Nice), uint64(scheduling.Priority),
			scheduling.Runtime, scheduling.Deadline, scheduling.Period, uint64(scheduling.Util_min), uint64(scheduling.Util_max))
	}
	settings = append(settings, failed(err))
	var cpus unix.CPUSet
	err = unix.SchedGetaffinity(id, &cpus)
	for _, mask := range cpus {
		settings = append(settings, uint64(mask))
	}
	settings = append(settings, failed(err))
	const ofProcess = 1
	ioPriority, _, _ := unix.RawSyscall(unix.SYS_IOPRIO_GET, ofProcess, uintptr(id), 0)
	return append(settings, uint64(ioPriority))
}

// numberOfLimits is that of the resources a process has a limit for.
const numberOfLimits = 16

func failed(err error) uint64 {
	if err != nil {
		return 1
	}
	return 0
}

// hasSharedMemory reports whether there is anything of System V in the sandbox:
// segments, semaphores or queues. The kernel counts them in the first number
// that it gives, or in the eighth.
func hasSharedMemory() bool {
	const shmInfo, semInfo, msgInfo = 14, 19, 12
	var numbers [32]int32 // enough for each
	some := func(err syscall.Errno, count int) bool {
		return err != 0 && err != unix.ENOSYS || numbers[count] != 0
	}
	_, _, err := unix.RawSyscall(unix.SYS_SHMCTL, 0, shmInfo, uintptr(unsafe.Pointer(&numbers)))
	if some(err, 0) {
		return true
	}
	_, _, err = unix.RawSyscall6(unix.SYS_SEMCTL, 0, 0, semInfo, uintptr(unsafe.Pointer(&numbers)), 0, 0)
	if some(err, 7) {
		return true
	}
	_, _, err = unix.RawSyscall(unix.SYS_MSGCTL, 0, msgInfo, uintptr(unsafe.Pointer(&numbers)))
	return some(err, 0)
}
