package shim

import (
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/clock/uptime"
	"github.com/millrace/millrace/internal/engine/executor/mask"
	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
)

// task is an attempt that is executed, and why and how it ends. One goroutine
// owns it; others only set the fields at the end.
type task struct {
	shim    *shim
	folder  Folder
	launch  Launch
	secrets *mask.Set // nil: none that can be masked
	log     *log
	exit    Exit
	meter   *meter
	freezer freezer
	began   time.Duration // as uptime.Read returns it

	ending     bool
	terminated bool      // the command has had TERM
	killAt     time.Time // when TERM has had its time; zero while nothing ends

	// Set by other goroutines.
	grace    atomic.Int64 // of a stop that was asked for, plus one
	renewals atomic.Int64
	evicted  atomic.Bool // it is stopped for the space that it takes up
}

func newTask(l Launch, s *shim) *task {
	f := Folder(l.Folder)
	secrets := mask.New(l.Secrets)
	l.Secrets = nil
	return &task{
		shim: s, folder: f, launch: l, secrets: secrets, log: newLog(f, l.Log, secrets),
		exit: Exit{Fence: l.Fence, NotEnforced: l.NotEnforced, Start: time.Now()}, began: uptime.Read(),
	}
}

// stop asks for the end of the command.
func (t *task) stop(grace time.Duration) {
	t.grace.Store(int64(grace) + 1)
	t.shim.wake()
}

// whyStopped is what the record says of a stop that was asked for.
func (t *task) whyStopped() *bool {
	if t.evicted.Load() {
		return &t.exit.Evicted
	}
	return &t.exit.Stopped
}

func (t *task) stopAsked() (grace time.Duration, asked bool) {
	n := t.grace.Load()
	return time.Duration(n - 1), n > 0
}

// neverStarted is the end of an attempt whose command did not run.
func (t *task) neverStarted(why error) Exit {
	t.exit.StartFailed, t.exit.Code, t.exit.End = why.Error(), 127, time.Now()
	t.exit.NoSpace = errors.Is(why, unix.ENOSPC) || errors.Is(why, unix.EDQUOT)
	return t.exit
}

// execute runs the command to its end and collects what it made.
func (t *task) execute() Exit {
	onThread(t.launch, t.run)
	t.exit.LogBytes = t.log.out.Size()
	if t.exit.StartFailed == "" && !t.evicted.Load() {
		t.collect()
	}
	if t.evicted.Load() { // also one that ended by itself meanwhile: its files go
		t.exit.Evicted = true
		t.discard()
	}
	t.noteNoSpace()
	t.exit.StartFailed, t.exit.Refused = t.secrets.Text(t.exit.StartFailed), t.secrets.Text(t.exit.Refused)
	return t.exit
}

// noteFull notes whether the file system is full at this moment.
func (t *task) noteFull(now time.Time) {
	if d := t.meter.disk; d != nil && d.free().full() {
		t.shim.fullAt.Store(&now)
	}
}

// noteNoSpace notes that a command has failed by itself while the file system
// was full: that is the machine's failure.
func (t *task) noteNoSpace() {
	e := &t.exit
	failed := e.StartFailed == "" && (e.Code != 0 || len(e.Missing) > 0)
	if failed && !t.ending && !e.OOM && !e.OutOfDisk && !e.Stopped && !e.Evicted && !e.TimedOut && t.meter.disk != nil {
		at := t.shim.fullAt.Load()
		e.NoSpace = at != nil && e.End.Sub(*at) < blamedFor
	}
}

// collect takes note of what the command made. Hashing it can take long, and
// ends as the command would have.
func (t *task) collect() {
	found, err := outputs.Within(t.folder.path(WorkFolder), t.launch.Outputs, t.launch.Disk, t.collecting)
	switch {
	case errors.Is(err, outputs.ErrTooLarge):
		t.exit.OutOfDisk = true
	case err == nil:
		t.exit.Outputs, t.exit.Missing, t.exit.Refused = found.Outputs, found.Missing, found.Refused
	}
}

func (t *task) collecting() error {
	if _, asked := t.stopAsked(); asked {
		*t.whyStopped() = true
		return errStopped
	}
	if t.overtime(time.Now()) {
		t.exit.TimedOut = true
		return errStopped
	}
	return nil
}

// overtime reports whether an attempt has taken longer than it may. The time in which
// its command stood still does not count, of which that of a suspended machine is a part.
func (t *task) overtime(now time.Time) bool {
	return t.launch.Timeout > 0 && t.lasted(now) >= t.launch.Timeout
}

func (t *task) lasted(now time.Time) time.Duration {
	return uptime.Read() - t.began - t.meter.still.length(now)
}

var errStopped = errors.New("it was stopped")

// run starts the command on this thread, and returns when nothing of it is left.
func (t *task) run(joined bool) {
	defer t.log.close()
	if _, asked := t.stopAsked(); asked {
		*t.whyStopped(), t.exit.Code, t.exit.End = true, 128+int(unix.SIGTERM), time.Now()
		return
	}
	c, err := t.follow(joined)
	if err != nil {
		t.neverStarted(err)
		t.exit.NoProgram = t.launch.Sandbox == nil && firstprocess.IsNoProgram(err)
		return
	}
	defer c.close()
	t.exit.End = time.Now()
	t.log.drain(t.exit.End.Add(2 * time.Second))
	t.fillExit(c)
}

// follow starts the command and returns when it has ended, and nothing of it is
// left.
func (t *task) follow(joined bool) (*command, error) {
	t.meter = newMeter(t.folder, t.launch)
	c, err := t.begin(joined)
	if err != nil {
		return nil, err
	}
	t.meter.tree = c.tree
	if c.outsideGroup {
		t.launch.Cgroup = Cgroup{}
		t.meter.launch.Cgroup = Cgroup{} // so that the meter holds the memory
		t.exit.NotEnforced = append(t.exit.NotEnforced, "cpu")
	}
	t.watch(c)
	t.thaw(c) // the group serves another one
	c.clear()
	t.launch.clear()
	return c, nil
}

// begin starts the command.
func (t *task) begin(joined bool) (*command, error) {
	c := newCommand()
	c.outsideGroup = !joined
	var err error
	if t.launch.Stage != nil {
		err = t.launch.Stage.Make()
	}
	if err == nil {
		err = c.begin(t.launch, t.log)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// watch returns when the command itself has ended, for whatever reason.
func (t *task) watch(c *command) {
	defer t.meter.still.watch()()
	presence := newServerPresence(t.launch.AbandonAfter-t.launch.Grace, uptime.Read())
	next := time.Now().Add(tick)
	for soon := time.Now().Add(leastDiskTick); !c.gone(); {
		news := t.wait(c, time.Until(soon))
		now := time.Now()
		if now.Before(soon) && !news {
			continue
		}
		t.followFreeze(c)
		t.noteFull(now)
		if t.launch.Disk > 0 && t.meter.disk.over(now, c.tree, t.meter.cpu+c.cpu) {
			t.end(c, &t.exit.OutOfDisk, 0)
			next = now
		}
		if !now.Before(next) || news {
			t.look(c, now, presence)
			next = now.Add(t.lookAfter(now))
		}
		soon = now.Add(min(t.meter.disk.lookAfter(), next.Sub(now)))
	}
	t.noteFull(time.Now()) // since the last look
}

// lookAfter is how long the command need not be looked at.
func (t *task) lookAfter(now time.Time) time.Duration {
	after := t.shim.rest()
	if t.ending || t.meter.alone() || t.freezer.halted && !t.freezer.still {
		after = tick
	}
	if left := t.launch.Timeout - t.lasted(now); t.launch.Timeout > 0 {
		after = max(leastDiskTick, min(after, left))
	}
	return after
}

// wait keeps the log while it waits for something to end. It reports whether there is
// news of what is wanted of the attempt.
func (t *task) wait(c *command, most time.Duration) (news bool) {
	if c.pidfd < 0 {
		most = min(most, 5*time.Millisecond)
	}
	ready := []unix.PollFd{{Fd: int32(c.pidfd), Events: unix.POLLIN}}
	pause := time.Until(t.log.resume)
	for _, s := range t.log.streams {
		fd := s.fd
		if pause > 0 {
			fd = -1 // which is not looked at
		}
		ready = append(ready, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if pause > 0 {
		most = min(most, pause)
	}
	ready = append(ready, unix.PollFd{Fd: int32(t.shim.news), Events: unix.POLLIN})
	_, _ = unix.Poll(ready, int(max(0, most.Milliseconds()+1)))
	for i, s := range t.log.streams {
		if ready[i+1].Revents != 0 {
			s.read(t.log)
		}
	}
	if news = ready[len(ready)-1].Revents != 0; news {
		_, _ = unix.Read(t.shim.news, make([]byte, 8))
	}
	return news
}

// look checks what the shim has to poll for: limits, and whether the server is
// still there.
func (t *task) look(c *command, now time.Time, p *serverPresence) {
	t.meter.still.note(now)
	if grace, asked := t.stopAsked(); asked {
		t.end(c, t.whyStopped(), grace)
	}
	if t.shim.shutdown.Load() {
		t.end(c, &t.exit.Preempted, t.launch.Grace)
	}
	if t.overtime(now) {
		t.end(c, &t.exit.TimedOut, t.launch.Grace)
	}
	if t.launch.AbandonAfter > 0 && p.stayedAway(uptime.Read(), t.renewals.Load()) {
		t.end(c, &t.exit.Abandoned, t.launch.Grace)
	}
	usage, overMemory := t.meter.look(now)
	if usage != nil {
		t.shim.sampled(*usage)
	}
	if overMemory {
		t.end(c, &t.exit.OOM, 0)
	}
	if t.ending && !t.terminated { // what stands around the command had not started it
		t.terminated = c.tree.terminate()
	}
	if t.ending && !now.Before(t.killAt) {
		c.tree.kill()
	}
}

// end sends TERM for the first reason there is; a later one can only shorten
// the grace.
func (t *task) end(c *command, why *bool, grace time.Duration) {
	killAt := time.Now().Add(grace)
	if t.ending {
		if killAt.Before(t.killAt) {
			t.killAt = killAt
		}
		return
	}
	*why, t.ending, t.killAt = true, true, killAt
	t.terminated = c.tree.terminate()
}

// fillExit fills in the exit record, once the log is complete: the error of a
// sandbox is in it.
func (t *task) fillExit(c *command) {
	t.exit.Code, t.exit.Signal = c.outcome()
	t.exit.CPUTime, t.exit.MaxRSS = max(c.cpu, t.meter.cpu), c.maxRSS // nobody has waited for what was killed
	t.meter.finish(&t.exit)
	if t.launch.Sandbox != nil && !t.ending && !t.exit.OOM {
		t.notStarted(c)
	}
	if t.exit.OutOfDisk && t.exit.OOM {
		t.exit.OOM = false
	}
}

// notStarted takes note of a command that never ran.
func (t *task) notStarted(c *command) {
	switch kind, reason := firstprocess.ReadStartResult(c.order); kind {
	case firstprocess.Started:
	case firstprocess.NoProgram:
		t.exit.NoProgram = true
		fallthrough
	case firstprocess.Failed:
		t.exit.StartFailed = reason
	default:
		t.exit.StartFailed = t.log.sandboxError()
	}
}

// serverPresence notices when the server stays away. Its times are those of uptime.Read.
type serverPresence struct {
	limit  time.Duration
	seen   int64         // renewals
	looked time.Duration // when the shim looked before
	since  time.Duration // a time at which the server was certainly there no more than a look ago
}

// A shim that has not looked for awakeAfter stood still, maybe with its whole machine. It
// gives a server that stood still with it, or has renewed the attempt meanwhile, as long as
// hearAfter to say so.
const (
	awakeAfter = 10 * time.Second
	hearAfter  = 20 * time.Second
)

func newServerPresence(limit, now time.Duration) *serverPresence {
	return &serverPresence{limit: limit, looked: now, since: now}
}

// stayedAway counts from the look before a renewal was noticed: rather a little too
// early than a moment beside a second copy of the command.
func (p *serverPresence) stayedAway(now time.Duration, renewals int64) bool {
	if renewals != p.seen {
		p.seen, p.since = renewals, p.looked
	}
	if now-p.looked >= awakeAfter {
		p.since = max(p.since, min(now, now-p.limit+hearAfter))
	}
	p.looked = now
	return now-p.since >= p.limit
}
