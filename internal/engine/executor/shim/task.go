package shim

import (
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// task is a command that runs, and why and how it ends.
type task struct {
	folder  Folder
	launch  Launch
	log     *log
	signals chan os.Signal
	exit    Exit
	meter   *meter

	ending bool
	killAt time.Time // when TERM has had its time; zero while nothing ends
}

// run starts the command and returns when nothing of it is left.
func (t *task) run() {
	if _, asked := t.folder.StopAsked(); asked {
		t.exit.Stopped, t.exit.Code, t.exit.End = true, 128+int(unix.SIGTERM), time.Now()
		return
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	t.meter = newMeter(t.folder, t.launch)
	c, err := t.launch.start(t.log)
	if err != nil {
		t.exit.StartFailed, t.exit.Code, t.exit.End = err.Error(), 127, time.Now()
		return
	}
	if c.stray {
		t.launch.Cgroup = Cgroup{}
		t.meter.launch.Cgroup = Cgroup{} // so that the meter holds the memory
		t.exit.NotEnforced = append(t.exit.NotEnforced, "cpu")
	}
	t.watch(c)
	t.settle(c)
	t.log.close(time.Now().Add(2 * time.Second))
}

// watch returns when the command itself has ended, for whatever reason. One
// thread does everything: more of them would cost a short task more than the
// rest of the shim.
func (t *task) watch(c *command) {
	presence := newPresence(t.folder, t.launch.Away-t.launch.Grace)
	for next := time.Now().Add(tick); !c.ended; {
		t.wait(c, time.Until(next))
		now := time.Now()
		if now.Before(next) {
			continue
		}
		next = now.Add(tick)
		t.listen()
		select {
		case <-t.signals:
			t.end(&t.exit.Preempted, t.launch.Grace)
		default:
		}
		t.look(now, presence)
	}
}

// listen asks for signals only when the command has lived for a while. Doing so
// starts threads, which is a lot for a short task; and what a machine that goes
// down ends in its first moment is lost, and tried again, all the same.
func (t *task) listen() {
	if t.signals == nil {
		t.signals = make(chan os.Signal, 4)
		signal.Notify(t.signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	}
}

// wait keeps the log while it waits for something to end.
func (t *task) wait(c *command, most time.Duration) {
	if c.pidfd < 0 {
		most = min(most, 5*time.Millisecond)
	}
	ready := []unix.PollFd{{Fd: int32(c.pidfd), Events: unix.POLLIN}}
	for _, s := range t.log.streams {
		ready = append(ready, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
	}
	_, _ = unix.Poll(ready, int(max(0, most.Milliseconds()+1)))
	for i, s := range t.log.streams {
		if ready[i+1].Revents != 0 {
			s.read(t.log)
		}
	}
	if ready[0].Revents != 0 || c.pidfd < 0 {
		c.reap()
	}
}

// look is what the shim does all the time: nothing tells it of a stop, a limit
// or an absence.
func (t *task) look(now time.Time, p *presence) {
	if grace, asked := t.folder.StopAsked(); asked {
		t.end(&t.exit.Stopped, grace)
	}
	if t.launch.Timeout > 0 && now.Sub(t.exit.Start) >= t.launch.Timeout {
		t.end(&t.exit.TimedOut, t.launch.Grace)
	}
	if t.launch.Away > 0 && p.away(now) {
		t.end(&t.exit.Abandoned, t.launch.Grace)
	}
	switch t.meter.look(now) {
	case overMemory:
		t.end(&t.exit.OOM, 0)
	case overDisk:
		t.end(&t.exit.OutOfDisk, 0)
	}
	if t.ending && !now.Before(t.killAt) {
		signalTree(unix.SIGKILL, 0)
	}
}

// end sends TERM for the first reason there is; a later one can only shorten
// the grace.
func (t *task) end(why *bool, grace time.Duration) {
	killAt := time.Now().Add(grace)
	if t.ending {
		if killAt.Before(t.killAt) {
			t.killAt = killAt
		}
		return
	}
	*why, t.ending, t.killAt = true, true, killAt
	spared := 0
	if t.launch.Sandboxed {
		spared = 1 // bubblewrap itself would take everything with it
	}
	signalTree(unix.SIGTERM, spared)
}

// settle ends what the command left running, and fills in the record.
func (t *task) settle(c *command) {
	for tries := 0; !c.gone && tries < 500; tries++ {
		signalTree(unix.SIGKILL, 0)
		_, _ = unix.Poll(nil, min(tries, 10))
		c.reap()
	}
	t.exit.End = time.Now()
	t.exit.Code, t.exit.Signal = c.outcome()
	t.exit.CPUTime, t.exit.MaxRSS = c.cpu, c.maxRSS
	t.meter.finish(&t.exit)
	if t.launch.Sandboxed && !c.reported && !t.ending && !t.exit.OOM {
		t.exit.StartFailed = t.complaint()
	}
	if t.exit.OutOfDisk && t.exit.OOM {
		t.exit.OOM = false
	}
}

// complaint is what the sandbox said when it could not be set up.
func (t *task) complaint() string {
	text, _ := readFile(t.folder.Log())
	line, _, _ := strings.Cut(string(text[:min(len(text), 500)]), "\n")
	if line == "" {
		line = "it gave no reason"
	}
	return "the sandbox could not be set up: " + line
}

// presence notices when the server stays away.
type presence struct {
	folder  Folder
	patient time.Duration
	seen    time.Time // of the last renewal, by the file's own clock
	looked  time.Time // when the shim looked before
	since   time.Time // a time at which the server was certainly there no more than a look ago
}

func newPresence(f Folder, patient time.Duration) *presence {
	now := time.Now()
	p := &presence{folder: f, patient: patient, looked: now, since: now}
	p.seen = p.renewed()
	return p
}

func (p *presence) renewed() time.Time {
	info, err := os.Stat(p.folder.path(aliveFile))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// away counts from the look before a renewal was noticed: rather a little too
// early than a moment beside a second copy of the command.
func (p *presence) away(now time.Time) bool {
	if seen := p.renewed(); !seen.Equal(p.seen) {
		p.seen, p.since = seen, p.looked
	}
	p.looked = now
	return now.Sub(p.since) >= p.patient
}
