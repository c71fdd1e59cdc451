// Package tool runs one program on one file of a stranger, in the sandbox that
// tasks run in and by the same driver: without network, with limits on
// processor time, memory, disk, processes and time. What is run, and what its
// output means, is the caller's business.
package tool

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/oneshot"
)

// File stands for the file's path among the arguments of a program that Run
// runs.
const File = "{" + inputFile + "}"

// The statuses of a program that was ended, as a shell counts them.
const (
	NotFound    = 127 // there is no such program in the sandbox
	TimedOut    = 124
	OutOfCPU    = 152
	OutOfDisk   = 153
	OutOfMemory = 137
)

// Limits are what one program may use.
type Limits struct {
	CPU    time.Duration // of the processor, in whole seconds
	Time   time.Duration
	Memory int64 // bytes
	Disk   int64 // bytes of what it prints and writes
	Output int   // bytes of what it printed that Run gives back

	Threads bool // it has threads of its own; else it cannot start anything
}

// maxStderr is how much is kept of what a program complains about.
const maxStderr = 4 << 10

// Runner runs programs. Its driver starts with the first of them.
type Runner struct {
	commands *oneshot.Runner
	limits   Limits
}

// New makes a runner on a folder of its own, an absolute path. The caller closes
// it.
func New(c local.Config, l Limits) *Runner { return &Runner{oneshot.New(c), l} }

// Close ends the driver, if it ever began.
func (r *Runner) Close() error { return r.commands.Close() }

// Recover clears away what a server that was killed has left, if it has left
// anything.
func (r *Runner) Recover(ctx context.Context) error { return r.commands.Recover(ctx) }

// Run runs a program on a file and returns what it printed, what it
// complained, and its status. A program that fails, or that is ended because
// of its limits, is no error. Where there is no working sandbox it is
// fault.KindUnavailable, unless none was asked for. When ctx ends, so does the
// program.
func (r *Runner) Run(ctx context.Context, file string, argv ...string) (out []byte, complaint string, status int, err error) {
	complaint, status, err = r.RunFiles(ctx, map[string]string{inputFile: file}, argv, func(printed io.Reader) error {
		out, err = io.ReadAll(io.LimitReader(printed, int64(r.limits.Output)))
		return err
	})
	return out, complaint, status, err
}

// RunFiles runs a program like Run, on several files: among its arguments {name}
// stands for the path of one. read gets all that it has printed, whatever its
// status is.
func (r *Runner) RunFiles(ctx context.Context, files map[string]string, argv []string, read func(io.Reader) error) (complaint string, status int, err error) {
	program := oneshot.Command{Prepare: func(s *executor.Spec, seen executor.Places) error {
		s.Command = script(seen.Inputs, r.limits, files, argv)
		s.MemoryBytes, s.DiskBytes, s.LogBytes = r.limits.Memory, r.limits.Disk, maxStderr
		s.Timeout, s.AbandonAfter = r.limits.Time, r.limits.Time+10*oneshot.Grace
		return stageAll(files, s.Places().Inputs)
	}}
	err = r.commands.Run(ctx, program, func(s executor.Spec, end executor.Status) error {
		if status, err = statusOf(end); err == nil {
			complaint, err = readOutput(s.Work(), read)
		}
		return err
	})
	return complaint, status, err
}

// statusOf is how a program ended, or why it never ran.
func statusOf(s executor.Status) (int, error) {
	switch s.Reason {
	case executor.ExitedZero, executor.ExitedNonZero, executor.Signaled:
		return s.Exit.Code, nil
	case executor.OutOfMemory:
		return OutOfMemory, nil
	case executor.OutOfDisk:
		return OutOfDisk, nil
	case executor.TimedOut:
		return TimedOut, nil
	case executor.StartFailed:
		return 0, fault.Unavailable("the sandbox did not start: %s", s.Detail).WithCode("no_sandbox")
	}
	return 0, fmt.Errorf("the program ended as %s: %s", s.Reason, s.Detail)
}
