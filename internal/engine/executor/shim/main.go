package shim

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// hidden is the argument under which another program serves as shim.
const hidden = "__millrace-shim"

// Asked reports whether a program was started to serve as shim, in place of
// the small one. It then calls Main and exits with what that returns, before
// it does anything else.
func Asked(args []string) bool { return len(args) == 3 && args[1] == hidden }

// Command is how to start program as shim for the attempt in dir.
func Command(program, dir string, small bool) []string {
	if small {
		return []string{program, dir}
	}
	return []string{program, hidden, dir}
}

// Main carries out the attempt whose folder is the last argument, and returns
// the status to exit with.
func Main(args []string) int {
	if args[len(args)-1] == VersionFlag {
		return Version
	}
	folder := Folder(args[len(args)-1])
	lock, err := folder.take()
	if err != nil {
		return Doubled
	}
	defer unix.Close(lock)
	launch, err := folder.Launch()
	if err != nil {
		return Unusable
	}
	// Whoever comes second may find the lock free again, but never this.
	began := strconv.Itoa(os.Getpid()) + " " + launch.Fence + "\n"
	if writeFile(folder.path(startFile), unix.O_CREAT|unix.O_EXCL, []byte(began)) != nil {
		return Doubled
	}
	t := &task{
		folder: folder, launch: launch, log: newLog(folder, launch.Log),
		exit: Exit{Fence: launch.Fence, NotEnforced: launch.NotEnforced, Start: time.Now()},
	}
	t.run()
	t.exit.LogBytes = t.log.size
	if t.exit.StartFailed == "" {
		t.exit.Outputs, t.exit.Missing = Collect(folder.path(WorkFolder), launch.Outputs)
	}
	return t.record()
}

// record leaves the record even when the disk is full: the command is over, so
// its temporary files can make room.
func (t *task) record() int {
	err := t.folder.Record(t.exit)
	for tries := 0; err != nil && tries < 20; tries++ {
		_ = os.RemoveAll(filepath.Join(string(t.folder), TempFolder))
		if err = t.folder.Record(t.exit); err != nil {
			time.Sleep(500 * time.Millisecond)
		}
	}
	if err != nil {
		return Broken
	}
	return Done
}
