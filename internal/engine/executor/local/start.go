package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/embedded"
)

// firstUser begins the uids of running attempts, beyond those that
// distributions and containers hand out.
const (
	firstUser = 1_900_000_000
	userBlock = 4096 // slots of one folder
)

// start brings an attempt that has its place to life.
func (d *Driver) start(a *attempt) {
	process, err := d.launch(a)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.startFailed(a, err)
		return
	}
	if a.phase == executor.Pending && a.reason == executor.Starting {
		d.move(a, executor.Running, executor.Executing)
	} else {
		a.phase = executor.Running // told to stop in the meantime
	}
	go d.await(a, process)
}

// startFailed leaves a record, since the attempt will not get any further. The
// lock is held.
func (d *Driver) startFailed(a *attempt, cause error) {
	exit := executor.Exit{Fence: a.spec.Fence, Code: 127, StartFailed: cause.Error(), Start: d.now(), End: d.now()}
	if err := a.folder.Record(exit); err != nil {
		cause = errors.Join(cause, err)
	}
	a.exit, a.detail = &exit, cause.Error()
	d.vacate(a)
	d.move(a, executor.Ended, executor.StartFailed)
}

// launch writes down what the shim is to do, and starts it.
func (d *Driver) launch(a *attempt) (*os.Process, error) {
	l, err := d.plan(a)
	if err != nil {
		return nil, err
	}
	if err := a.folder.Prepare(l); err != nil {
		return nil, err
	}
	if a.spec.Away > 0 {
		if err := a.folder.Renew(d.now()); err != nil {
			return nil, err
		}
	}
	argv := d.shim(string(a.folder))
	// A session of its own, so that nothing sent to the server's terminal
	// reaches it; no environment, so that nothing of the server's leaks.
	return os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{d.null, d.null, d.null}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

func (d *Driver) plan(a *attempt) (shim.Launch, error) {
	s := a.spec
	if err := os.Mkdir(filepath.Join(s.Dir, shim.TempFolder), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return shim.Launch{}, err
	}
	l := shim.Launch{
		Fence: s.Fence, Slot: a.slot, Memory: s.MemoryBytes, Disk: s.DiskBytes, Timeout: s.Timeout, Grace: s.Grace, Away: s.Away, Outputs: s.Outputs,
	}
	var not []string
	l.Cgroup, not = d.groups.slot(a.slot, s)
	a.group = l.Cgroup
	l.NotEnforced = slices.DeleteFunc(not, func(limit string) bool { return limit == "memory" })
	return l, d.box.fill(&l, s, a.devices)
}

// embeddedShim is the small shim of this build, if it can be run from folder.
func embeddedShim(folder string) (program string, ok bool) {
	program, err := embedded.Unpack(folder)
	if err != nil {
		return "", false
	}
	err = exec.Command(program, shim.VersionFlag).Run()
	exit, isExit := errors.AsType[*exec.ExitError](err)
	return program, isExit && exit.ExitCode() == shim.Version
}

// try runs a command that does nothing, the way every other will be.
func (d *Driver) try(ctx context.Context) error {
	if !d.box.contained() {
		return nil
	}
	dir, err := os.MkdirTemp(d.folder, ".try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, shim.WorkFolder), 0o700); err != nil {
		return err
	}
	a := &attempt{
		spec:   executor.Spec{Dir: dir, Fence: "try", Interpreter: "sh", Command: "exit 42", Timeout: 20 * time.Second},
		folder: shim.Folder(dir), slot: userBlock - 1,
	}
	process, err := d.launch(a)
	if err != nil {
		return err
	}
	// The timeout bounds the wait.
	if _, err := process.Wait(); err != nil {
		return err
	}
	exit, err := a.folder.Exit()
	switch {
	case err != nil:
		return errors.Join(ctx.Err(), err)
	case exit.StartFailed != "":
		return errors.New(exit.StartFailed)
	case exit.Code != 42:
		return errors.New("a command that does nothing did not come back from the sandbox")
	}
	return nil
}

func problem(err error) string {
	return "tasks cannot be isolated on this machine (" + err.Error() +
		"); install bubblewrap and allow it user namespaces, or ask for --sandbox none and trust every task"
}
