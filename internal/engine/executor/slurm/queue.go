package slurm

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// followSlurm asks Slurm about all jobs at once, from time to time.
func (d *Driver) followSlurm(ctx context.Context) {
	var probed time.Time
	for {
		began := time.Now()
		if d.probeDue(began.Sub(probed)) {
			d.probe(ctx)
			probed = began
		}
		d.lookAtSlurm(ctx)
		pause := max(slurmAtLeast, slurmPart*time.Since(began))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		case <-d.wake:
			if !sleep(ctx, filesAtLeast) { // several submissions come together
				return
			}
		}
	}
}

func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

func (d *Driver) probeDue(since time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return since >= probeEvery || !d.caps.Ready && since >= probeAgain
}

// probe asks what the cluster has.
func (d *Driver) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	vcpu, memory, gpus, err := d.client.machines(ctx, d.config.Partition)
	c := executor.Capabilities{Ready: true, Images: d.images(), System: "slurm", NoImages: noImages, NoEnvironments: d.noEnvironments(), ForgetsAfter: d.config.Lag, NotEnforced: d.notEnforced(), VCPU: vcpu, MemoryBytes: memory, GPU: gpus}
	switch {
	case err != nil:
		c.Ready, c.Problem = false, "Slurm does not answer: "+err.Error()
	case vcpu == 0:
		c.Ready, c.Problem = false, "Slurm has no machine for us: is the partition right?"
	}
	if d.config.VCPU > 0 {
		c.VCPU = d.config.VCPU
	}
	if d.config.MemoryBytes > 0 {
		c.MemoryBytes = d.config.MemoryBytes
	}
	if d.config.GPUs > 0 {
		c.GPU = d.config.GPUs
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.config.Now()
	if err != nil && d.caps.Ready && now.Sub(d.answered) < probeLasts {
		return
	}
	if err == nil {
		d.answered = now
	}
	d.caps = c
}

// lookAtSlurm compares what Slurm says with what we know.
func (d *Driver) lookAtSlurm(ctx context.Context) {
	list := d.open()
	at := d.config.Now()
	if len(list) == 0 && at.Sub(d.asked) < orphansEvery {
		return
	}
	d.asked = at
	all, err := d.client.jobs(ctx, namePrefix(d.installation))
	if err != nil {
		if ctx.Err() == nil {
			d.config.Log.WarnContext(ctx, "cannot ask Slurm for its jobs", slog.Any("error", err))
		}
		return // files tell how jobs end; the rest can wait
	}
	vanished := d.weigh(list, all, at)
	if len(vanished) > 0 {
		d.weighEnded(ctx, vanished)
	}
	d.sendStops(ctx, list)
	d.cancelOrphans(ctx, all)
}

// weigh takes in what Slurm says of attempts, and returns those that it has
// nothing to say of.
func (d *Driver) weigh(list []*attempt, all map[string][]slurmJob, at time.Time) (vanished []*attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range list {
		if a.phase.Final() {
			continue
		}
		if j, ok := best(all[a.name]); ok {
			d.listed(a, j)
		} else if !a.inQueue && a.handed.Before(at) && d.missed(a) && !a.asked {
			vanished = append(vanished, a)
		}
	}
	return vanished
}

// weighEnded asks the site's accounts about jobs that Slurm has forgotten.
func (d *Driver) weighEnded(ctx context.Context, vanished []*attempt) {
	var names []string
	since := d.config.Now()
	for _, a := range vanished {
		names = append(names, a.name)
		if a.about.At.Before(since) {
			since = a.about.At
		}
	}
	known, err := d.client.ended(ctx, names, since.Add(-time.Hour))
	if err != nil && ctx.Err() == nil {
		d.config.Log.DebugContext(ctx, "the site keeps no accounts of jobs", slog.Any("error", err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range vanished {
		a.asked = true
		if a.phase.Final() {
			continue
		}
		if j, ok := known[a.name]; ok {
			a.slurm = j
			d.over(a, j)
			continue
		}
		d.forgotten(a)
	}
}

// best is the job that counts of several with one name: the second of a double
// submission ends at once.
func best(jobs []slurmJob) (slurmJob, bool) {
	if len(jobs) == 0 {
		return slurmJob{}, false
	}
	if i := slices.IndexFunc(jobs, func(j slurmJob) bool { return !j.ended() && !j.waits() }); i >= 0 {
		return jobs[i], true
	}
	if i := slices.IndexFunc(jobs, slurmJob.waits); i >= 0 {
		return jobs[i], true
	}
	return jobs[0], true
}

func (j slurmJob) waits() bool { return j.state == "PENDING" }

// ended reports whether Slurm thinks that a job is over. COMPLETING is not among
// them: something of it may still run.
func (j slurmJob) ended() bool { return endings[j.state] != "" }

// endings is what Slurm's words for the end of a job mean. That a command has
// succeeded, or failed by itself, Slurm cannot know: lost stands for both.
var endings = map[string]executor.Reason{
	"COMPLETED": executor.Lost, "FAILED": executor.Lost,
	"OUT_OF_MEMORY": executor.OutOfMemory, "TIMEOUT": executor.TimedOut, "DEADLINE": executor.TimedOut,
	"CANCELLED": executor.Cancelled, "PREEMPTED": executor.Preempted, "REVOKED": executor.Preempted, "REQUEUED": executor.Preempted,
	"SPECIAL_EXIT": executor.Preempted, "NODE_FAIL": executor.NodeLost, "BOOT_FAIL": executor.NodeLost,
}

// never are the reasons for which a job waits that do not pass by themselves.
var never = []string{"BadConstraints", "Partition", "InvalidAccount", "InvalidQOS", "NotAllowed", "ReqNodeNotAvail", "DependencyNeverSatisfied", "AccountingPolicy"}

// listed takes in a job that Slurm has in memory.
func (d *Driver) listed(a *attempt, j slurmJob) {
	a.noteSuspended(j, d.config.Now())
	a.slurm, a.receipt = j, j.id
	if j.node != "" && !strings.ContainsAny(j.node, "[,") {
		a.node = j.node
	}
	switch {
	case j.ended():
		d.missed(a)
		d.over(a, j)
		return
	case j.waits() && !a.claimed:
		d.waits(a, j)
		if a.phase.Final() {
			return
		}
	case !a.claimed:
		d.move(a, executor.Pending, executor.Starting, "")
	}
	a.missing, a.asked = time.Time{}, false
}

// waits takes in that a job is in Slurm's queue, and gives up what Slurm cannot
// start for too long.
func (d *Driver) waits(a *attempt, j slurmJob) {
	now := d.config.Now()
	if !slices.ContainsFunc(never, func(words string) bool { return strings.Contains(j.reason, words) }) {
		a.noteStuck(time.Time{})
		d.move(a, executor.Pending, executor.Queued, "waits in Slurm's queue: "+j.reason)
		return
	}
	a.noteStuck(now)
	d.move(a, executor.Pending, executor.Unschedulable, "Slurm cannot start it: "+j.reason)
	most := d.config.GiveUpAfter
	if most == 0 || now.Sub(a.stuck) < most || !a.stopAt.IsZero() {
		return
	}
	// Whatever Slurm does from here on, no job begins; releasing the attempt takes
	// this one out of the queue.
	if ours, err := a.folder.Withdraw(); err == nil && ours {
		d.conclude(a, executor.Ended, executor.StartFailed, fmt.Sprintf("Slurm could not start it for %s: %s", most, j.reason))
	}
}

// noteStuck notes since when an attempt cannot start, also for the next server;
// the zero time says that it can.
func (a *attempt) noteStuck(now time.Time) {
	path := string(a.folder) + stuckFile
	switch {
	case now.IsZero() && !a.stuck.IsZero():
		_ = os.Remove(path)
		a.stuck = now
	case !now.IsZero() && a.stuck.IsZero():
		_ = rawfile.Write(path, unix.O_CREAT|unix.O_EXCL, nil)
		a.stuck = now
	}
}

// missed notes since when Slurm does not have an attempt's job, and reports
// whether that is long enough to act on it: files take their time, and a job
// that is heard lives.
func (d *Driver) missed(a *attempt) bool {
	now := d.config.Now()
	if a.missing.IsZero() {
		a.missing = now
	}
	since := a.missing
	if a.heard.After(since) {
		since = a.heard
	}
	return now.Sub(since) >= d.config.Lag
}

// over takes in that Slurm thinks a job has ended, though it left no record.
func (d *Driver) over(a *attempt, j slurmJob) {
	stopped := !a.stopAt.IsZero()
	if stopped && j.state == "CANCELLED" && j.node == "" && !a.folder.Claimed() {
		d.conclude(a, executor.Ended, executor.Cancelled, "") // it was still in the queue
		return
	}
	if !d.missed(a) || d.recordedLately(a) {
		return
	}
	reason := endings[j.state]
	if reason == executor.Cancelled && !stopped {
		reason = executor.Preempted // by the site
	}
	switch {
	case a.folder.Claimed():
		phase, reason := executor.Outcome(a.about.Fence, nil, wordOf(reason))
		detail := "Slurm says " + j.state
		if reason == executor.TimedOut && a.about.Limit == 0 {
			detail = siteLimit
		}
		d.conclude(a, phase, reason, detail)
	case stopped:
		d.conclude(a, executor.Ended, executor.Cancelled, "")
	case reason == executor.Lost:
		d.conclude(a, executor.Ended, executor.StartFailed, "the job ended before the task began: does the machine "+j.node+" see the folder "+d.config.Folder+"?")
	default:
		d.again(a, reason)
	}
}

func wordOf(r executor.Reason) executor.DriverStatus {
	if r == executor.NodeLost || r == executor.Lost {
		return executor.DriverStatus{Phase: executor.Gone, Reason: r}
	}
	return executor.DriverStatus{Phase: executor.Ended, Reason: r}
}

// recordedLately looks for a record once more before anything is concluded without
// one: on a busy server the last look at the files may be long ago.
func (d *Driver) recordedLately(a *attempt) bool {
	s, err := a.folder.State()
	if err != nil || s.Fence != a.about.Fence || s.Exit == nil {
		return false
	}
	d.record(a, s.Exit, d.config.Now())
	return true
}

// forgotten is the end of waiting for a job that nobody knows.
func (d *Driver) forgotten(a *attempt) {
	switch {
	case d.recordedLately(a):
	case a.folder.Claimed():
		d.conclude(a, executor.Gone, executor.Lost, "Slurm has forgotten the job, and it left no record")
	case !a.stopAt.IsZero():
		d.conclude(a, executor.Ended, executor.Cancelled, "")
	default:
		d.again(a, executor.EngineForgot)
	}
}

// again submits an attempt once more that has never begun. Should Slurm still
// start the first job, the second finds the attempt claimed.
func (d *Driver) again(a *attempt, why executor.Reason) {
	if a.tries >= maxTries {
		d.conclude(a, executor.Gone, why, "Slurm has lost the job before it began, "+words[min(a.tries, len(words)-1)])
		return
	}
	a.missing, a.asked = time.Time{}, false
	d.submitLater(a)
}

var words = []string{"", "once", "twice", "three times"}
