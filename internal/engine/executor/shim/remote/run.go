package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
)

// Main does what the arguments ask for, and returns the status to exit with.
func Main(args []string) int {
	switch {
	case len(args) == 2 && args[1] == attemptFlag:
		return carryOut()
	case len(args) == 3 && args[1] == copyFlag:
		return copySelf(args[2])
	case len(args) == 3 && args[1] == attendFlag:
		return attend(args[2])
	}
	return shim.Main(args)
}

func fail(err error) int {
	_, _ = io.WriteString(os.Stderr, "millrace: "+err.Error()+"\n") // for whoever looks at the machine's own log
	return shim.Failed
}

// runner is an attempt that is carried out.
type runner struct {
	client  *client
	task    Task
	node    string
	signals chan os.Signal

	mu        sync.Mutex
	state     State
	running   bool
	logged    int64 // how far a server has the log
	over      bool  // the command has ended, and its log is complete
	alone     *shim.Alone
	told      attempts.Answer    // the last
	unwanted  context.CancelFunc // ends staging
	preempted bool               // by the machine
	now       chan struct{}      // has the reporter report
}

func carryOut() int {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // the command runs as the same user
	rawfile.KeepDescriptors()
	runtime.LockOSThread() // so that no command's thread is the first of the process
	take := func(name string) string {
		value := os.Getenv(name)
		_ = os.Unsetenv(name)
		return value
	}
	c, err := newClient(take(URLVariable), take(IDVariable), take(CAVariable))
	if err != nil {
		return fail(err)
	}
	fence, ticket := take(FenceVariable), take(TicketVariable)
	r := &runner{client: c, node: take(NodeVariable), signals: make(chan os.Signal, 8), now: make(chan struct{}, 1)}
	signal.Notify(r.signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	ctx, cancel := context.WithTimeout(context.Background(), beginFor)
	err = again(ctx, func() (err error) {
		r.task, err = c.begin(ctx, fence, ticket)
		return err
	})
	cancel()
	if err != nil && !isRefused(err) {
		fail(err)
		return NoServer
	}
	if err != nil {
		return fail(err)
	}
	r.state.Host = r.node
	return r.execute()
}

// execute returns when a server knows how the attempt ended, or none will.
func (r *runner) execute() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.state.Staging = true
	var reporting sync.WaitGroup
	reporting.Go(func() { r.reportAll(ctx) })
	exit := r.run(ctx)
	if exit.Code == 0 && exit.StartFailed == "" && !exit.Stopped && !exit.TimedOut && len(exit.Missing) == 0 {
		r.send(ctx, &exit)
	}
	cancel()
	reporting.Wait()
	if err := r.deliver(exit); err != nil {
		return fail(err)
	}
	return shim.Done
}

// run stages, and executes the command to its end.
func (r *runner) run(ctx context.Context) shim.Exit {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	r.unwanted = cancel
	r.obey(r.told)
	if r.preempted {
		cancel()
	}
	r.mu.Unlock()
	why := stage(ctx, r.client, r.task)
	if why == nil {
		why = prepare(&r.task)
	}
	a := shim.NewAlone(r.task.Launch, r.sampled)
	if ctx.Err() != nil {
		return r.unstaged(a)
	}
	if why != nil {
		e := a.NeverStarted(why)
		e.NoProgram = errors.Is(why, exec.ErrNotFound)
		return e
	}
	r.mu.Lock()
	r.alone, r.running, r.state.Staging = a, true, false
	r.obey(r.told)
	if r.preempted { // a moment ago
		a.Preempt()
	}
	r.mu.Unlock()
	r.reportNow()
	return a.Run()
}

// unstaged is the end of an attempt whose inputs nobody waits for any more.
func (r *runner) unstaged(a *shim.Alone) shim.Exit {
	r.mu.Lock()
	preempted := r.preempted
	r.mu.Unlock()
	if !preempted {
		a.Stop(0)
		return a.Run()
	}
	e := a.NeverStarted(errors.New("the machine ends the attempt"))
	e.StartFailed, e.Preempted = "", true
	return e
}

// prepare makes a launch what it has to be on this machine.
func prepare(t *Task) (err error) {
	l := &t.Launch
	if t.Inherit {
		addVariables(l, slices.DeleteFunc(os.Environ(), isOurs))
	}
	addVariables(l, t.Defaults)
	if l.Argv[0], err = firstprocess.LookPath(l.Argv[0], l.Env, l.Dir); err != nil {
		return err
	}
	l.Cgroup.OOM = oomFile()
	self, err := os.Executable()
	if err == nil {
		err = shim.Small(self).Limit(l)
	}
	return err
}

// isOurs are variables that the machine sets, and no image.
func isOurs(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "MILLRACE_") || strings.HasPrefix(name, "KUBERNETES_") || name == "HOSTNAME" || name == "HOME" || name == "TMPDIR" || name == "USER"
}

// addVariables adds those that are not set.
func addVariables(l *shim.Launch, list []string) {
	set := map[string]bool{}
	for _, variable := range l.Env {
		name, _, _ := strings.Cut(variable, "=")
		set[name] = true
	}
	for _, variable := range list {
		if name, _, _ := strings.Cut(variable, "="); !set[name] {
			l.Env = append(l.Env, variable)
		}
	}
}

// oomFile is where the container's group counts what the kernel has killed. Who is
// not the first process is in no container of its own.
func oomFile() string {
	if os.Getpid() != 1 {
		return ""
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// sampled takes in what the command uses.
func (r *runner) sampled(u shim.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Usage = &u
}

// send sends what the command has made. What cannot be sent has not been made.
func (r *runner) send(ctx context.Context, exit *shim.Exit) {
	ctx, cancel := context.WithTimeout(ctx, transferFor)
	defer cancel()
	if err := send(ctx, r.client, filepath.Join(r.task.Launch.Folder, shim.WorkFolder), exit.Outputs); err != nil {
		r.refuse(exit, err.Error())
	}
}

func (r *runner) refuse(exit *shim.Exit, why string) {
	exit.Outputs, exit.Refused = nil, why
	for _, o := range r.task.Launch.Outputs {
		exit.Missing = append(exit.Missing, o.Port)
	}
}

const transferFor = 24 * time.Hour

// deliver says how the attempt ended, with all of its log before. It does not give
// up soon.
func (r *runner) deliver(e shim.Exit) error {
	ctx, cancel := context.WithTimeout(context.Background(), deliverFor)
	defer cancel()
	text, err := json.Marshal(e)
	if err == nil && len(text) > attempts.MaxExit {
		r.refuse(&e, "the list of outputs is too long")
		text, err = json.Marshal(e)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	err = again(ctx, func() error {
		for r.logged < e.LogBytes {
			before := r.logged
			if err := r.report(ctx); err != nil {
				return err
			}
			if r.logged == before { // it is not there to be read
				break
			}
		}
		_, err := r.client.report(ctx, attempts.Report{Exit: text})
		return err
	})
	if answer, ok := errors.AsType[refused](err); ok && answer.status == 410 {
		return nil // it was heard before, or nobody wants to know
	}
	return err
}

// logPiece is the next piece of the log, or nil.
func (r *runner) logPiece() *attempts.Log {
	log, err := tasklog.Open(r.task.Launch.Folder, r.logged, r.over)
	if err != nil {
		return nil
	}
	defer log.Close()
	text := make([]byte, attempts.MaxLog)
	n, _ := io.ReadFull(log, text)
	if n == 0 {
		return nil
	}
	marks, _ := tasklog.Marks(r.task.Launch.Folder, log.Offset)
	marks = slices.DeleteFunc(marks, func(m tasklog.Mark) bool { return m.Offset >= log.Offset+int64(n) })
	return &attempts.Log{Offset: log.Offset, Missing: log.Offset - r.logged, Text: text[:n], Marks: marksOf(marks)}
}
