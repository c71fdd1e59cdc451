package job

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/clock/uptime"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// runFlag asks a shim for one attempt, whose folder follows.
const runFlag = "-run"

// Command is the command line of a job.
func Command(p shim.Program, f Folder) []string {
	return append(append([]string{}, p...), runFlag, string(f))
}

// IsJobCall reports whether a program was started as a job. It then calls Main and
// exits with what that returns, before it does anything else.
func IsJobCall(args []string) bool {
	return len(args) > 2 && args[len(args)-2] == runFlag && (len(args) == 3 || shim.IsShimCall(args))
}

// IsCall reports whether a program was started to be any of the shim's processes. It then
// calls Run and exits with what that returns, before it does anything else.
func IsCall(args []string) bool { return IsJobCall(args) || shim.IsShimCall(args) }

// Run is Main for a job, and otherwise shim.Main.
func Run(args []string) int {
	if IsJobCall(args) {
		return Main(args)
	}
	return shim.Main(args)
}

const (
	// beatEvery is how often a job says that it lives, and brings its log to where
	// the server can read it.
	beatEvery = 2 * time.Second
	// listenEvery is how often a job looks what the server wants. A signal comes
	// sooner, where the cluster can send one.
	listenEvery = 2 * time.Second
	// clockError is how far the clock of this machine may be behind the server's without
	// being suspicious.
	clockError = time.Minute
	// askEvery is how often it looks for what it needs to begin.
	askEvery = 100 * time.Millisecond
	// deliverFor is how long it tries to write down how the command ended, which
	// is all that the server believes.
	deliverFor = time.Hour
)

// Main carries an attempt out, and returns the status to exit with: the
// command's own, or one of the shim's.
func Main(args []string) int {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // the command runs as the same user
	rawfile.KeepDescriptors()
	runtime.LockOSThread() // so that no command's thread is the first of the process
	folder := Folder(filepath.Clean(args[len(args)-1]))
	j, err := folder.Job()
	if err != nil {
		return shim.BadArguments
	}
	r := &runner{folder: folder, job: j, signals: make(chan os.Signal, 8), done: make(chan struct{})}
	signal.Notify(r.signals, unix.SIGUSR1, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	claim := folder.Claim
	if j.Local {
		r.orders.receive() // before the server sees the claim
		claim = folder.Hold
	}
	switch err := claim(j.Launch.Fence); {
	case errors.Is(err, fs.ErrExist):
		return shim.AlreadyRunning
	case err != nil:
		return shim.Failed
	}
	exit := r.carryOut(program(args))
	r.deliver(exit)
	if j.Local {
		r.attempt.AwaitEmpty() // the slot goes with this process
	}
	return exit.Code
}

// program is this one, as it was started.
func program(args []string) shim.Program {
	self, _ := os.Executable()
	if shim.IsShimCall(args) {
		return shim.Self(self)
	}
	return shim.Small(self)
}

// runner is a job that runs.
type runner struct {
	folder  Folder
	job     Job
	attempt *shim.Alone
	last    *os.File // reserved for how the command ended; nil: nothing is
	signals chan os.Signal
	orders  orders        // of the server of this machine
	done    chan struct{} // closed when the command has ended
	ended   bool          // by the cluster, as it said itself
	control Control       // what the server wants
	state   State
	beat    time.Time
}

func (r *runner) carryOut(p shim.Program) shim.Exit {
	r.state = State{Fence: r.job.Launch.Fence, Host: r.host()}
	l := &r.job.Launch
	var why error
	if r.last, why = r.folder.Reserve(); why == nil {
		why = r.prepare(l, p)
	}
	a := shim.NewAlone(*l, r.sampled)
	r.attempt = a
	r.orders.give(a)
	switch {
	case errors.Is(why, errStopped):
		a.Stop(0)
	case errors.Is(why, errLate):
		e := a.NeverStarted(why)
		e.StartFailed, e.Abandoned = "", true
		return e
	case why != nil:
		e := a.NeverStarted(why)
		e.NoProgram = errors.Is(why, exec.ErrNotFound)
		return e
	}
	var listening sync.WaitGroup
	listening.Go(func() { r.listen(a) })
	exit := a.Run()
	close(r.done)
	listening.Wait()
	r.attribute(&exit)
	return exit
}

// host is what the cluster calls this machine.
func (r *runner) host() string {
	if r.job.Local {
		return ""
	}
	if host := os.Getenv(r.job.HostVariable); host != "" {
		return host
	}
	host, _ := os.Hostname()
	return host
}

// attribute finds out who ended a command that failed. A cluster sends its TERM
// to all processes of a job at once, and the command may have ended before the
// shim has heard of it.
func (r *runner) attribute(e *shim.Exit) {
	if e.Code == 0 || e.Stopped || e.TimedOut || e.OOM || e.OutOfDisk || e.Abandoned || e.Preempted || e.StartFailed != "" {
		return
	}
	if e.Signal == int(unix.SIGTERM) && !r.ended {
		select {
		case <-r.signals:
			r.ended = true
		case <-time.After(hearsay):
		}
	}
	if !r.ended {
		return
	}
	c, _ := r.readControl()
	e.Stopped, e.Preempted = c.Stop, !c.Stop
}

// hearsay is how much later than the command the shim may hear of a signal that
// was sent to both.
const hearsay = 300 * time.Millisecond

var (
	errStopped = errors.New("it was stopped before it began")
	errLate    = errors.New("nobody wants it any more")
)

// prepare makes a launch what it has to be on this machine.
func (r *runner) prepare(l *shim.Launch, p shim.Program) error {
	if err := r.awaitServer(); err != nil {
		return err
	}
	for _, name := range r.job.Inherit {
		if value, ok := os.LookupEnv(name); ok {
			l.Env = append(l.Env, name+"="+value)
		}
	}
	complete := r.askSecrets
	if r.job.Local {
		complete = inheritLaunch
	}
	if err := complete(l); err != nil {
		return err
	}
	if l.Sandbox == nil {
		var err error
		if l.Argv[0], err = firstprocess.LookPath(l.Argv[0], l.Env, l.Dir); err != nil {
			return err
		}
		if err := p.Limit(l); err != nil {
			return err
		}
	}
	return r.say(func(s *State) {
		s.Key = nil
		if r.job.Local {
			s.Before = l.Before()
		}
	})
}

// awaitServer returns when a server is certain to want the job. The server has written
// until when it does, by its own clock. Where that is past by the clock of this machine, or
// further off than it can be, only a renewal can tell. The server of this machine has just
// started the process, so it wants it, whatever its clock says.
func (r *runner) awaitServer() error {
	away, first := r.job.Launch.AbandonAfter, int64(-1)
	_, err := r.follow(away/3, func(c Control) bool { // servers renew after a sixth of it
		if first < 0 {
			first = c.Renewals
		}
		left := time.Until(c.Until)
		return r.job.Local || c.Until.IsZero() || left > 0 && left <= away+clockError || c.Renewals != first
	})
	return err
}

// readControl reads what the server wants. What a former owner of the run has written
// after a later one does not count.
func (r *runner) readControl() (Control, error) {
	c, err := r.folder.Control()
	if err == nil && (c.RunFence == 0 || c.RunFence >= r.control.RunFence) {
		c.RunFence = max(c.RunFence, r.control.RunFence)
		r.control = c
	}
	return r.control, err
}

// follow reads what the server wants until enough reports that this will do. Where it has
// seen no renewal for as long as patience, nobody wants the job any more.
func (r *runner) follow(patience time.Duration, enough func(Control) bool) (Control, error) {
	for seen, since := int64(-1), uptime.Read(); ; {
		c, err := r.readControl()
		if c.Renewals != seen {
			seen, since = c.Renewals, uptime.Read()
		}
		switch {
		case err != nil:
			return c, err
		case c.Stop:
			return c, errStopped
		case !c.Until.IsZero() && uptime.Read()-since >= patience: // maybe the machine was suspended
			return c, errLate
		case enough(c):
			return c, nil
		}
		select {
		case s := <-r.signals:
			if s == unix.SIGUSR1 {
				return c, errStopped
			}
			return c, errors.New("the machine ended the job before it began")
		case <-time.After(askEvery):
		}
	}
}

// askSecrets waits for what the server has sealed for this job alone. While no
// server is there the command does not begin.
func (r *runner) askSecrets(l *shim.Launch) error {
	if len(r.job.Sealed) == 0 {
		return nil
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	if err := r.say(func(s *State) { s.Key = key.PublicKey().Bytes() }); err != nil {
		return err
	}
	c, err := r.follow(l.AbandonAfter, func(c Control) bool { return len(c.Secrets) > 0 })
	if err != nil {
		return err
	}
	s, err := key.open(l.Fence, c.Secrets)
	l.Env, l.Secrets = append(l.Env, s.Env...), s.Values
	return err
}

// isLook reports whether a signal says no more than that the server wants something.
func (r *runner) isLook(s os.Signal) bool { return s == Look && r.job.Local }

// listen heeds the server and the cluster while the command runs.
func (r *runner) listen(a *shim.Alone) {
	every := listenEvery
	if away := r.job.Launch.AbandonAfter; away > 0 {
		every = min(every, max(away/10, 10*time.Millisecond))
	}
	look := time.NewTicker(every)
	defer look.Stop()
	for {
		var told os.Signal
		select {
		case <-r.done:
			return
		case told = <-r.signals:
			r.ended = r.ended || !r.isLook(told)
		case <-look.C:
		}
		c, err := r.readControl()
		switch {
		case err == nil && c.Stop:
			a.Stop(c.Grace)
		case told == nil || r.isLook(told):
		case told == unix.SIGUSR1:
			a.Stop(r.job.Launch.Grace)
		default:
			a.Preempt()
		}
		if err == nil {
			a.Renewed(c.Renewals)
		}
	}
}

// sampled says that the job lives, and what it uses.
func (r *runner) sampled(u shim.Usage) {
	now := time.Now()
	if now.Sub(r.beat) < beatEvery {
		return
	}
	r.beat = now
	if !r.job.Local {
		r.attempt.SyncLog()
	}
	_ = r.say(func(s *State) { s.Usage = &u }) // the next one tells as much
}

// say changes what is known of the job.
func (r *runner) say(change func(*State)) error {
	r.state.Beats++
	change(&r.state)
	if last := r.last; last != nil && r.state.Exit != nil {
		r.last = nil
		return r.folder.WriteLast(r.state, last, !r.job.Local) // a local one ends with its machine
	}
	return r.folder.WriteState(r.state)
}

// deliver writes down how the command ended, and does not give up soon: the
// folder may be full or away for a while.
func (r *runner) deliver(e shim.Exit) {
	until := time.Now().Add(deliverFor)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		err := r.say(func(s *State) { s.Exit, s.Key = &e, nil })
		heard := r.job.Local && errors.Is(err, fs.ErrNotExist) // by the server, which has removed the folder since
		if err == nil || heard || time.Now().After(until) {
			return
		}
		time.Sleep(wait)
	}
}
