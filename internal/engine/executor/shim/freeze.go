package shim

import (
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
	"github.com/millrace/millrace/internal/engine/executor/shim/remove"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
)

// A server whose disk is nearly full freezes all commands, so that none writes
// while the server makes room. A command stays frozen without a server, too,
// until one thaws it, or until it is ended.

// freezer halts the command of one task.
type freezer struct {
	halted  bool
	still   bool         // nothing of it runs
	stopped map[int]bool // processes that were stopped by a signal
}

// followFreeze halts the command or lets it go on, as is wanted.
func (t *task) followFreeze(c *command) {
	f := &t.freezer
	if !t.shim.frozen.Load() {
		t.thaw(c)
		return
	}
	if !f.halted {
		f.halted = true
		t.meter.still.freeze(time.Now())
	}
	for tries := 0; !f.still && tries < 10; tries++ {
		f.still = t.halt(c)
		if !f.still {
			_, _ = unix.Poll(nil, 1)
		}
	}
}

// halt stops everything that belongs to the command, and reports whether it had
// all stopped: by the group of version 2, or else by a signal to each process.
func (t *task) halt(c *command) (still bool) {
	if group := t.launch.Cgroup.Folder; group != "" && rawfile.Write(group+"/cgroup.freeze", 0, []byte("1")) == nil {
		return line(group+"/cgroup.events", "frozen") == 1
	}
	still = true
	for _, pid := range c.tree.command() {
		if processes.Stopped(pid) {
			continue
		}
		still = false // another may have been started meanwhile
		if t.freezer.stopped == nil {
			t.freezer.stopped = map[int]bool{}
		}
		t.freezer.stopped[pid] = true
		_ = unix.Kill(pid, unix.SIGSTOP)
	}
	return still
}

// thaw lets the command go on. What has stopped itself stays so.
func (t *task) thaw(c *command) {
	if !t.freezer.halted {
		return
	}
	if group := t.launch.Cgroup.Folder; group != "" {
		_ = rawfile.Write(group+"/cgroup.freeze", 0, []byte("0"))
	}
	if len(t.freezer.stopped) > 0 {
		for _, pid := range c.tree.command() {
			if t.freezer.stopped[pid] {
				_ = unix.Kill(pid, unix.SIGCONT)
			}
		}
	}
	t.freezer = freezer{}
	t.meter.still.thaw(time.Now())
}

// Size is what an attempt takes up on the disk.
type Size struct {
	ID    string `json:"id"`
	Bytes int64  `json:"bytes"`
	Files int64  `json:"files"`
}

// Before is what is known of an attempt before its command begins: how many levels of
// processes are above that, and what its file system had left.
type Before struct {
	Wrappers int   `json:"wrappers"`
	Bytes    int64 `json:"bytes"`
	Files    int64 `json:"files"`
}

// Before is what is known of the attempt of a launch that is complete.
func (l Launch) Before() *Before {
	first := newDisk(Folder(l.Folder), math.MaxInt64).first
	return &Before{Wrappers: l.wrappers(), Bytes: first.bytes, Files: first.files}
}

// Command are the processes of the command of an attempt that a process of its own
// carries out.
func (b Before) Command(pid int) []int { return b.tree(pid).command() }

func (b Before) tree(pid int) tree { return tree{top: pid, above: 1, around: b.Wrappers} }

// Size is what an attempt takes up whose command is below a process. One that hides files
// is held to account for all that the file system has lost since it began.
func (b Before) Size(id string, f Folder, pid int) Size {
	d := newDisk(f, math.MaxInt64)
	d.first = space{bytes: b.Bytes, files: b.Files}
	return d.size(id, f, b.tree(pid))
}

// size is what the command takes up, with what it was given and its log.
func (d *disk) size(id string, f Folder, t tree) Size {
	d.left = d.free()
	_, hidden := d.count(t)
	s := Size{ID: id, Bytes: d.used.bytes, Files: d.used.files}
	if hidden {
		s.Bytes, s.Files = max(s.Bytes, d.lost()), max(s.Files, d.first.files-d.left.files)
	}
	given := copiedInputs(f) // which its limit does not count
	s.Bytes, s.Files = s.Bytes+given.bytes+tasklog.Used(string(f)), s.Files+given.files
	return s
}

// discard removes the files of a command that was ended for them.
func (t *task) discard() {
	_ = remove.All(t.folder.path(WorkFolder))
	_ = remove.All(t.folder.path(TempFolder))
	_ = remove.All(t.folder.path(InputFolder))
}
