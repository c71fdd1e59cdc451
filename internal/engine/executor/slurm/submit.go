package slurm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

const (
	submitters = 4 // calls of sbatch at the same time
	maxTries   = 3 // of an attempt that Slurm loses before it begins

	// A complaint of sbatch's that we do not know is taken for passing trouble
	// for so long.
	patient = 10 * time.Minute

	leastMemory = 64 << 20        // without any, Slurm takes a machine's whole memory
	slackMemory = 64 << 20        // for the shim, so that it can tell of a command that needs too much
	slackTime   = 2 * time.Minute // beyond what the shim itself holds
)

// submitLater puts an attempt into the line. The lock is held.
func (d *Driver) submitLater(a *attempt) {
	a.inQueue = true
	d.waiting = append(d.waiting, a)
	signalOn(d.queue)
}

func signalOn(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// submitAll hands attempts to Slurm, one after the other.
func (d *Driver) submitAll(ctx context.Context) {
	for {
		a := d.nextWaiting()
		if a == nil {
			select {
			case <-ctx.Done():
				return
			case <-d.queue:
			}
			continue
		}
		d.submit(ctx, a)
		if ctx.Err() != nil {
			return
		}
	}
}

func (d *Driver) nextWaiting() *attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		return nil
	}
	a := d.waiting[0]
	d.waiting = slices.Delete(d.waiting, 0, 1)
	if len(d.waiting) > 0 {
		signalOn(d.queue) // for the next submitter
	}
	return a
}

// submit hands an attempt to Slurm. It tries again until Slurm has it, refuses
// it for good, or nobody wants it any more.
func (d *Driver) submit(ctx context.Context, a *attempt) {
	began := d.config.Now()
	for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
		if !d.mayHandOver(a) {
			return
		}
		id, err := d.client.submit(ctx, d.script(a), d.options(a))
		if err != nil && ctx.Err() == nil {
			id = d.accepted(ctx, a) // it may have heard us all the same
		}
		switch {
		case id != "":
			d.handedOver(a, id)
			return
		case ctx.Err() != nil:
			return
		case final(err) || d.config.Now().Sub(began) > patient && isRefusal(err):
			d.refused(a, err)
			return
		}
		if gone := d.waitFor(a, err); gone {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// mayHandOver reports whether this server may still hand an attempt to Slurm. Where it
// may not, whichever server finds that Slurm does not have the attempt does so.
func (d *Driver) mayHandOver(a *attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	may := a.permit == nil || a.permit.Check() == nil
	if !may {
		a.inQueue, a.permit = false, nil
	}
	return may
}

// accepted is the number of a job that Slurm has of an attempt.
func (d *Driver) accepted(ctx context.Context, a *attempt) string {
	all, _ := d.client.jobs(ctx, a.name)
	if j, ok := best(all[a.name]); ok && !j.ended() { // not one that was lost before
		return j.id
	}
	return ""
}

func (d *Driver) handedOver(a *attempt, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.inQueue, a.handed, a.receipt, a.missing, a.asked = false, d.config.Now(), id, time.Time{}, false
	a.tries++
	_ = rawfile.Write(string(a.folder)+receiptFile, unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK, []byte(id+"\n")) // for people alone
	if a.phase == executor.Pending {
		d.move(a, executor.Pending, executor.Queued, "")
	}
	if !a.stopAt.IsZero() {
		a.stopSent = time.Time{}
	}
	signalOn(d.wake)
}

func (d *Driver) refused(a *attempt, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.inQueue = false
	if !a.begun() {
		d.conclude(a, executor.Ended, executor.StartFailed, "Slurm refused the task: "+err.Error())
	}
}

// begun reports whether a job has begun with the attempt: when one is submitted again,
// the one that Slurm seemed to have lost may be at work.
func (a *attempt) begun() bool { return a.phase != executor.Pending || a.folder.Claimed() }

// waitFor says why an attempt waits, and reports whether it does not any more: it was
// stopped, or has begun.
func (d *Driver) waitFor(a *attempt, err error) (gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if begun := a.begun(); begun || !a.stopAt.IsZero() {
		a.inQueue = false
		if !begun {
			d.conclude(a, executor.Ended, executor.Cancelled, "")
		}
		return true
	}
	d.move(a, executor.Pending, executor.Queued, "Slurm does not take it at the moment: "+err.Error())
	return false
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// impossible are complaints of sbatch's that do not pass by themselves.
var impossible = []string{
	"requested node configuration is not available", "memory specification can not be satisfied", "more processors requested than permitted",
	"requested time limit is invalid", "node count specification invalid", "invalid partition", "invalid account", "invalid qos", "invalid feature",
	"invalid generic resource", "invalid constraint", "unrecognized option", "invalid option", "group not permitted", "access/permission denied",
	"invalid trackable resource", "invalid --",
}

func final(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return false
	}
	said := strings.ToLower(r.said)
	return slices.ContainsFunc(impossible, func(words string) bool { return strings.Contains(said, words) })
}

// options are what sbatch is told of an attempt. Nothing of them was written by
// people, but what a definition may call its nodes.
func (d *Driver) options(a *attempt) []string {
	s := a.about
	list := []string{
		"--job-name=" + a.name, "--comment=" + s.Key.Folder(), "--no-requeue", d.export(), "--nodes=1", "--ntasks=1",
		"--cpus-per-task=" + strconv.Itoa(max(1, int(math.Ceil(s.VCPU)))),
		"--mem=" + strconv.FormatInt((max(s.Memory, leastMemory)+slackMemory)>>20, 10) + "M",
		"--chdir=" + string(a.folder), "--output=" + string(a.folder) + "/slurm.out", "--open-mode=append",
	}
	if s.Limit > 0 {
		list = append(list, "--time="+strconv.Itoa(int(math.Ceil((s.Limit+slackTime).Minutes()))))
	}
	if s.GPU > 0 {
		list = append(list, "--gres=gpu:"+strconv.Itoa(s.GPU))
	}
	return list
}

// export has Slurm give a job no environment of anybody's: what its command gets
// is in the order. With NONE, and in older versions with everything but a file,
// a login shell reads the user's files before every task, which takes several
// times as long as starting it. A file of ours may be none that a login node sees.
func (d *Driver) export() string {
	if len(d.config.Prefix) > 0 {
		return "--export=NIL"
	}
	return "--export-file=" + d.config.Folder + environmentFile
}

// environmentFile is all that a shim needs to find of an environment.
const environmentFile = "/.environment"

func writeEnvironment(folder string) error {
	path := folder + environmentFile
	part := path + "." + rand.Text()
	if err := os.WriteFile(part, []byte("PATH=/usr/local/bin:/usr/bin:/bin\x00"), 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// writeScript writes a command that has to be a file, and to nowhere else: an earlier
// attempt may have made the folder of this one, with links in it.
func (d *Driver) writeScript(s executor.Spec, path string) error {
	root, err := os.OpenRoot(d.config.Folder)
	if err != nil {
		return err
	}
	defer root.Close()
	name, err := filepath.Rel(d.config.Folder, path)
	if err != nil {
		return err
	}
	return root.WriteFile(name, []byte(s.Command), 0o600)
}

// script is what Slurm runs: the site's options, and the shim in its own place.
func (d *Driver) script(a *attempt) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for _, option := range d.config.site() {
		fmt.Fprintf(&b, "#SBATCH %s\n", option)
	}
	b.WriteString("exec")
	for _, word := range job.Command(d.shim, a.folder) {
		fmt.Fprintf(&b, " '%s'", word)
	}
	b.WriteString("\n")
	return b.String()
}
