package job

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/waittest"
)

// local is a job of the server's own machine.
func local(j *Job, _ *Control) { j.Local = true }

// beginLocal starts a local job as the server does, with a slot of its own.
func beginLocal(t *testing.T, f Folder, change ...func(*shim.Launch)) (c *exec.Cmd, slot string) {
	t.Helper()
	j, err := f.Job()
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range change {
		change(&j.Launch)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	slot = filepath.Join(t.TempDir(), "the-slot")
	file, err := os.Create(slot)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	inherited, err := Inherited(file, j.Launch)
	if err != nil {
		t.Fatal(err)
	}
	defer inherited[1].Close()
	argv := Command(shim.Self(self), f)
	c = exec.Command(argv[0], argv[1:]...)
	c.ExtraFiles = inherited
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c, slot
}

// isLocked reports whether somebody holds the lock of a file.
func isLocked(t *testing.T, path string) bool {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// awaitHolder returns the process that carries an attempt out, once there is one.
func awaitHolder(t *testing.T, f Folder) (h Holder) {
	t.Helper()
	if !waittest.Until(func() bool {
		found, lives, err := f.Holder()
		h = found
		return err == nil && lives
	}) {
		t.Fatal("nobody claims it")
	}
	return h
}

func TestALocalJobIsOneProcess(t *testing.T) {
	t.Parallel()
	f := submitted(t, "echo up; exec sleep 1000", local)
	if _, _, err := f.Holder(); !errors.Is(err, fs.ErrNotExist) || f.Claimed() {
		t.Errorf("before it begins: %v, claimed %t", err, f.Claimed())
	}
	c, _ := beginLocal(t, f)
	h := awaitHolder(t, f)
	want := Process(c.Process.Pid)
	if want.Fence = "fence"; h != want || h.Started == 0 || h.Boot == "" || !f.Claimed() {
		t.Errorf("it is held by %+v, want %+v", h, want)
	}
	awaitLog(t, f, "up")
	second, _ := beginLocal(t, f)
	if status, _, _ := end(t, f, second); status != shim.AlreadyRunning {
		t.Errorf("a second one ended with %d", status)
	}
	for name, other := range map[string]Holder{
		"an earlier process of its id": {Boot: h.Boot, PID: h.PID, Started: h.Started - 1},
		"one before the machine ended": {Boot: "another", PID: h.PID, Started: h.Started},
	} {
		if err := other.Signal(unix.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	fd, err := h.Descriptor()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	below := processes.Tree(h.PID)
	if err := h.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if _, lives, err := f.Holder(); err != nil || lives {
		t.Errorf("once it is killed it lives: %t, %v", lives, err)
	}
	if err := h.Kill(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("once it is killed: %v", err)
	}
	for _, pid := range below {
		if !waittest.Until(func() bool {
			state := processes.Stat(processes.Folder(pid))
			return len(state) == 0 || state[0] == "Z"
		}) {
			t.Errorf("%d outlives it", pid)
		}
	}
	if ours, err := f.Withdraw(); err != nil || ours {
		t.Errorf("it is withdrawn: %t, %v", ours, err)
	}
	withdrawn := submitted(t, "echo ran", local)
	if ours, err := withdrawn.Withdraw(); err != nil || !ours {
		t.Fatal(ours, err)
	}
	if _, _, err := withdrawn.Holder(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a withdrawn one is held: %v", err)
	}
	late, _ := beginLocal(t, withdrawn)
	if status, _, log := end(t, withdrawn, late); status != shim.AlreadyRunning || log != "" {
		t.Errorf("a withdrawn one ended with %d, %q", status, log)
	}
}

// The command has neither the slot nor the secrets, and the slot is free once the job has
// ended.
func TestALocalJobKeepsWhatItInherits(t *testing.T) {
	t.Parallel()
	f := submitted(t, `ls -l /proc/$$/fd | grep -e the-slot -e memfd; echo up; read line < fifo`, local)
	fifo := filepath.Join(string(f), shim.WorkFolder, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c, slot := beginLocal(t, f)
	awaitLog(t, f, "up")
	if !isLocked(t, slot) {
		t.Error("the slot is free while the job runs")
	}
	if err := os.WriteFile(fifo, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	if status, _, log := end(t, f, c); status != 0 || log != "up\n" {
		t.Errorf("status %d, log %q", status, log)
	}
	if isLocked(t, slot) {
		t.Error("the slot is held once the job has ended")
	}
}

// What is left in the control group of a job is ended, and the slot is held until it has.
func TestASlotIsHeldUntilItsGroupIsEmpty(t *testing.T) {
	t.Parallel()
	left := exec.Command("sleep", "1000")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = left.Process.Kill()
		_ = left.Wait()
	}()
	group := t.TempDir() // stands for one of version 1
	for name, text := range map[string]string{"tasks": "", "cgroup.procs": strconv.Itoa(left.Process.Pid)} {
		if err := os.WriteFile(filepath.Join(group, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := submitted(t, "true", func(j *Job, _ *Control) {
		j.Local, j.Launch.Cgroup.Threads = true, []string{filepath.Join(group, "tasks")}
	})
	c, slot := beginLocal(t, f)
	if !waittest.Until(func() bool {
		s, _ := f.State()
		return s.Exit != nil
	}) {
		t.Fatal("it does not say how it ended")
	}
	if state := processes.Stat(processes.Folder(left.Process.Pid)); len(state) == 0 || state[0] != "Z" {
		t.Errorf("what is left in the group is %v", state)
	}
	if !isLocked(t, slot) {
		t.Error("the slot is free while there is something in its group")
	}
	if err := os.Truncate(filepath.Join(group, "cgroup.procs"), 0); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := end(t, f, c); status != 0 || isLocked(t, slot) {
		t.Errorf("status %d, locked %t", status, isLocked(t, slot))
	}
}

// boxed has a script run in a sandbox.
func boxed(t *testing.T, l *shim.Launch) {
	t.Helper()
	program, err := exec.LookPath("bwrap")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("bubblewrap is not there")
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Sandbox = &shim.Sandbox{Options: []string{
		"--unshare-user", "--unshare-pid", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL",
		"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--proc", "/proc", "--dev", "/dev", "--bind", l.Dir, shim.WorkPath,
	}}
	l.Sandbox.Command, l.Sandbox.Env = l.Argv, l.Env
	l.Dir, l.Env = "/", nil
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l.Argv = append([]string{program, "--args", strconv.Itoa(shim.OptionsFD), "--"}, shim.Self(self).Init(*l)...)
}

// What a local job inherits reaches its command, in a sandbox or without one. Secrets in
// it reach neither the log nor any file of the folder.
func TestALocalJobInheritsWhatItIsToDo(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	for name, change := range map[string]func(*testing.T, *shim.Launch){
		"bare": func(*testing.T, *shim.Launch) {}, "in a sandbox": boxed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := submitted(t, "", local)
			c, _ := beginLocal(t, f, func(l *shim.Launch) {
				l.Argv = []string{"sh", "-c", `[ "$(pwd)" = /work ] && echo boxed; [ ${#TOKEN} = 21 ] && echo "it is $TOKEN"`}
				l.Env, l.Secrets = append(l.Env, "TOKEN="+secret), []string{secret}
				change(t, l)
			})
			want := "it is ***\n"
			if name != "bare" {
				want = "boxed\n" + want
			}
			if status, s, log := end(t, f, c); status != 0 || log != want {
				t.Errorf("status %d, %+v, log %q", status, s.Exit, log)
			}
			out, err := exec.Command("grep", "-rl", secret, string(f)).Output()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
				t.Errorf("the secret is in %s: %v", out, err)
			}
		})
	}
}

// A local job whose server hands it nothing, or what another one is to do, does not begin.
func TestALocalJobDoesWhatIsHandedToItAlone(t *testing.T) {
	t.Parallel()
	f := submitted(t, "echo ran", local)
	if status, s, log := end(t, f, begin(t, f)); status != 127 || s.Exit == nil || !strings.Contains(s.Exit.StartFailed, "launch") || log != "" {
		t.Errorf("nothing: status %d, %+v, log %q", status, s.Exit, log)
	}
	f = submitted(t, "echo ran", local)
	c, _ := beginLocal(t, f, func(l *shim.Launch) { l.Fence = "another" })
	if status, s, log := end(t, f, c); status != 127 || s.Exit == nil || !strings.Contains(s.Exit.StartFailed, "another attempt") || log != "" {
		t.Errorf("another's: status %d, %+v, log %q", status, s.Exit, log)
	}
}

// living are the processes of a job's command that are not stopped.
func living(b *shim.Before, h Holder) (pids []int) {
	for _, pid := range b.Command(h.PID) {
		if !processes.Stopped(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestALocalJobIsFrozenThawedAndEvicted(t *testing.T) {
	t.Parallel()
	f := submitted(t, "echo text > file; echo up; while [ ! -e go ]; do sleep 0.01; done; echo went; exec sleep 1000", local)
	c, _ := beginLocal(t, f)
	h := awaitHolder(t, f)
	awaitLog(t, f, "up")
	signal := func(s unix.Signal) {
		t.Helper()
		if err := h.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	said, err := f.State()
	if err != nil || said.Before == nil || said.Before.Wrappers != 0 || said.Before.Bytes == 0 {
		t.Fatalf("it says %+v, %v", said, err)
	}
	if pids := said.Before.Command(h.PID); len(pids) == 0 {
		t.Error("it has no processes")
	}
	signal(Freeze)
	if !waittest.Until(func() bool { return len(living(said.Before, h)) == 0 }) {
		t.Fatal("it is not frozen")
	}
	if size := said.Before.Size("a", shim.Folder(f), h.PID); size.ID != "a" || size.Files != 1 || size.Bytes < 5 || size.Bytes > 1<<20 {
		t.Errorf("it takes up %+v", size)
	}
	if err := os.WriteFile(filepath.Join(string(f), shim.WorkFolder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	signal(Thaw)
	awaitLog(t, f, "went")
	signal(Freeze)
	signal(Evict) // frozen or not
	status, s, _ := end(t, f, c)
	if s.Exit == nil || !s.Exit.Evicted || s.Exit.Stopped || s.Exit.Preempted || len(s.Exit.Suspended) == 0 {
		t.Errorf("status %d, %+v", status, s.Exit)
	}
	if _, err := os.Stat(filepath.Join(string(f), shim.WorkFolder)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its files are there: %v", err)
	}
}

// A frozen job that has not begun its command begins it when it is thawed.
func TestALocalJobIsFrozenBeforeItsCommandBegins(t *testing.T) {
	t.Parallel()
	r := claimed(t, Job{Local: true, Launch: shim.Launch{Argv: []string{"sh"}, Env: []string{"PATH=/bin"}}}, Control{})
	a := shim.NewAlone(r.job.Launch, r.sampled)
	for _, told := range []os.Signal{Freeze, Freeze, Thaw, Thaw, Freeze, Evict} {
		r.orders.take(told)
	}
	r.orders.give(a)
	if e := a.Run(); !e.Evicted {
		t.Errorf("%+v", e)
	}
}

// The server says again and again that a job is to stand still, until it sees that it does.
// What it says last counts, also before there is an attempt.
func TestOrdersBeforeAnAttemptAreRemembered(t *testing.T) {
	t.Parallel()
	var o orders
	for range 20 {
		o.take(Freeze)
	}
	o.take(Thaw)
	if o.frozen || o.evicted {
		t.Errorf("frozen %t, evicted %t", o.frozen, o.evicted)
	}
	o.take(Evict)
	o.take(Freeze)
	if !o.frozen || !o.evicted {
		t.Errorf("frozen %t, evicted %t", o.frozen, o.evicted)
	}
}

// Renewing a job takes no space, since another program may have filled the disk.
func TestAFullDiskDoesNotKeepAServerFromRenewingAJob(t *testing.T) {
	t.Parallel()
	f := Folder(smallDisk(t))
	if err := f.Create(Job{Local: true}, Control{}); err != nil {
		t.Fatal(err)
	}
	fill(t, string(f))
	if err := f.WriteControl(Control{Renewals: 1}); err == nil {
		t.Fatal("the disk is not full")
	}
	want := Control{Renewals: 1, Until: time.Now().UTC(), RunFence: 3, Seal: []byte("seal")}
	if err := f.OverwriteControl(want); err != nil {
		t.Fatal(err)
	}
	if c, err := f.Control(); err != nil || !cmp.Equal(c, want) {
		t.Errorf("%+v, %v", c, err)
	}
}

// A job of no sandbox could have put another name of a file of the server's there.
func TestOverwriteControlWritesToNoOtherFile(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]func(from, to string) error{"a link": os.Symlink, "another name": os.Link} {
		folder := t.TempDir()
		precious := filepath.Join(folder, "precious")
		if err := errors.Join(os.WriteFile(precious, []byte("precious"), 0o600), link(precious, filepath.Join(folder, controlFile))); err != nil {
			t.Fatal(err)
		}
		err := Folder(folder).OverwriteControl(Control{})
		if text, _ := os.ReadFile(precious); err == nil || string(text) != "precious" {
			t.Errorf("%s: %v, and the file has %q", name, err, text)
		}
	}
}

// The server may have heard how a command ended, and removed the folder, before the job has
// made sure that the record outlasts a loss of power.
func TestALocalJobEndsWhenItsFolderIsGone(t *testing.T) {
	t.Parallel()
	for _, reserves := range []bool{false, true} {
		r := claimed(t, Job{Local: true}, Control{})
		if reserves {
			last, err := r.folder.Reserve()
			if err != nil {
				t.Fatal(err)
			}
			r.last = last
		}
		if err := os.RemoveAll(string(r.folder)); err != nil {
			t.Fatal(err)
		}
		delivered := make(chan struct{})
		go func() {
			defer close(delivered)
			r.deliver(shim.Exit{})
		}()
		select {
		case <-delivered:
		case <-time.After(time.Minute):
			t.Fatal("it does not end")
		}
	}
}

// A look of the server of this machine ends nothing by itself; where the server is on
// another one, it cannot be sure that the job sees what it has written.
func TestALookEndsNothing(t *testing.T) {
	t.Parallel()
	for isLocal, stops := range map[bool]bool{true: false, false: true} {
		r := claimed(t, Job{Local: isLocal}, Control{}) // which has no command: it would be waited for with those of other tests
		r.signals = make(chan os.Signal)
		a := shim.NewAlone(r.job.Launch, r.sampled)
		listened := make(chan struct{})
		go func() {
			defer close(listened)
			r.listen(a)
		}()
		for range 2 { // the first is done with when the second is taken
			r.signals <- Look
		}
		close(r.done)
		<-listened
		if e := a.Run(); e.Stopped != stops || r.ended != stops {
			t.Errorf("local %t: stopped %t, by the cluster %t", isLocal, e.Stopped, r.ended)
		}
	}
}

// A server whose clock is another one than this process's has its tasks begin at once, and
// not when it renews them.
func TestALocalJobBeginsWhateverTheServersClockIs(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]time.Time{
		"past": time.Now().Add(-time.Hour), "further off than it can be": time.Now().Add(time.Hour),
	} {
		for _, stop := range []bool{false, true} {
			r := claimed(t, Job{Local: true, Launch: shim.Launch{AbandonAfter: 10 * time.Minute}}, Control{Until: until, Stop: stop})
			if err := r.awaitServer(); errors.Is(err, errStopped) != stop || err != nil && !stop {
				t.Errorf("%s, stopped %t: %v", name, stop, err)
			}
		}
	}
}

// smallDisk is a file system of one megabyte.
func smallDisk(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		if os.Getenv("CI") != "" && os.Getuid() == 0 {
			t.Fatal(err)
		}
		t.Skip("a file system of a test needs root: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	return folder
}

// fill fills a file system.
func fill(t *testing.T, folder string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "filler"), make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

// A job on a full disk says how its command ended.
func TestAFullDiskDoesNotKeepBackHowAJobEnded(t *testing.T) {
	t.Parallel()
	f := Folder(filepath.Join(smallDisk(t), "attempt"))
	work := filepath.Join(string(f), shim.WorkFolder)
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	err := f.Create(Job{Launch: shim.Launch{
		ID: "full", Fence: "fence", Folder: string(f), Dir: work, Env: []string{"PATH=/usr/bin:/bin"},
		Argv: []string{"sh", "-c", "head -c 10000000 /dev/zero > file 2> /dev/null; echo more > other || exit 3"},
	}}, Control{})
	if err != nil {
		t.Fatal(err)
	}
	status, s, _ := end(t, f, begin(t, f))
	if status != 3 || s.Exit == nil || s.Exit.Code != 3 {
		t.Errorf("status %d, %+v", status, s.Exit)
	}
	reserved, err := filepath.Glob(filepath.Join(string(f), ".state.json.*"))
	if err != nil || len(reserved) > 0 {
		t.Errorf("it leaves %v, %v", reserved, err)
	}
	fill(t, work)
	if _, err := f.Reserve(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("where there is no space: %v", err)
	}
}
