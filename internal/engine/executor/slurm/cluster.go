package slurm

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/panics"
)

// How often Slurm is asked. One call is for all jobs.
const (
	listAtLeast = time.Second
	listPart    = 4 // times as long as the last listing took
	listSoon    = 100 * time.Millisecond
	probeEvery  = time.Minute
	probeAgain  = 5 * time.Second
	probeLasts  = 5 * time.Minute // while a controller restarts, runs are taken and wait
	firstList   = 5 * time.Second // bounds what a start waits for Slurm
)

// cluster is the reconciler.Cluster of a Slurm. It is asked in the background, since a
// controller may take a minute to answer.
type cluster struct {
	config       Config
	installation string
	client       client
	shim         shim.Program
	changed      chan struct{} // there is a new listing
	wanted       chan struct{} // somebody reads listings
	started      chan struct{} // a job was submitted

	mu       sync.Mutex
	caps     executor.Capabilities
	answered time.Time // when Slurm last said what it has
	jobs     map[string]reconciler.JobStatus
	listed   time.Time // when Slurm was asked for them
	problem  error     // of the last listing
}

var (
	_ reconciler.Cluster   = (*cluster)(nil)
	_ reconciler.Accounts  = (*cluster)(nil)
	_ reconciler.Signaller = (*cluster)(nil)
)

func newCluster(c Config, installation string, program shim.Program) *cluster {
	return &cluster{
		config: c, installation: installation, client: newClient(c.Prefix), shim: program,
		changed: make(chan struct{}, 1), wanted: make(chan struct{}, 1), started: make(chan struct{}, 1), problem: errNotListed,
	}
}

var errNotListed = errors.New("the jobs of Slurm are not listed yet")

// run asks Slurm until ctx ends.
func (c *cluster) run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { panics.Restart(ctx, c.config.Log, c.followJobs) })
	all.Go(func() { panics.Restart(ctx, c.config.Log, c.followMachines) })
	all.Wait()
}

// followJobs lists jobs while somebody wants to know.
func (c *cluster) followJobs(ctx context.Context) {
	for {
		began := time.Now()
		c.list(ctx)
		select {
		case <-ctx.Done():
			return
		case <-c.started: // several submissions come together
			sleep(ctx, listSoon)
		case <-time.After(max(listAtLeast, listPart*time.Since(began))):
			select {
			case <-ctx.Done():
				return
			case <-c.started:
				sleep(ctx, listSoon)
			case <-c.wanted:
			}
		}
	}
}

func sleep(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

func (c *cluster) list(ctx context.Context) {
	began := time.Now()
	found, err := c.client.jobs(ctx, namePrefix(c.installation))
	jobs := map[string]reconciler.JobStatus{}
	for name, several := range found {
		if j, ok := best(several); ok {
			jobs[name] = c.statusOf(j)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.problem = err; err == nil {
		c.jobs, c.listed = jobs, began
	}
	signalOn(c.changed)
}

// Jobs are those of this installation, as Slurm last listed them.
func (c *cluster) Jobs(context.Context) (reconciler.Listing, error) {
	signalOn(c.wanted)
	c.mu.Lock()
	defer c.mu.Unlock()
	return reconciler.Listing{Jobs: c.jobs, Age: time.Since(c.listed)}, c.problem
}

// Changed receives when Slurm has listed its jobs.
func (c *cluster) Changed() <-chan struct{} { return c.changed }

// Start submits a job. One that Slurm has accepted though its answer was lost is not
// submitted again.
func (c *cluster) Start(ctx context.Context, j reconciler.Job) (string, error) {
	dir := job.Folder(filepath.Join(c.config.Folder, j.ID))
	number, err := c.client.submit(ctx, c.script(dir), c.options(j, dir))
	if err == nil && number == "" {
		err = errors.New("sbatch tells no number")
	}
	if err != nil && ctx.Err() == nil {
		number = c.accepted(ctx, j.Name)
	}
	if number == "" {
		return "", refusalOf(err)
	}
	writeReceipt(dir, number)
	signalOn(c.started)
	return number, nil
}

// accepted is the number of a job that Slurm has all the same.
func (c *cluster) accepted(ctx context.Context, name string) string {
	all, _ := c.client.jobs(ctx, name)
	if j, ok := best(all[name]); ok && !j.ended() { // not one that was lost before
		return j.id
	}
	return ""
}

// End cancels all jobs of a name.
func (c *cluster) End(ctx context.Context, name string) error { return c.client.cancel(ctx, name) }

// Forget has nothing to do: Slurm forgets jobs by itself.
func (c *cluster) Forget(context.Context, string) error { return nil }

// Signal has a job look into its folder.
func (c *cluster) Signal(ctx context.Context, name string) error {
	return c.client.cancel(ctx, name, "--signal=USR1", "--batch", "--state=RUNNING")
}

// Ended asks the site's accounts about jobs that Slurm has forgotten.
func (c *cluster) Ended(ctx context.Context, names []string, since time.Time) (map[string]reconciler.JobStatus, error) {
	found, err := c.client.ended(ctx, names, since)
	all := map[string]reconciler.JobStatus{}
	for name, j := range found {
		if j.ended() {
			all[name] = c.statusOf(j)
		}
	}
	return all, err
}

// followMachines asks what the cluster has.
func (c *cluster) followMachines(ctx context.Context) {
	for {
		pause := probeEvery
		if !c.Capabilities(ctx).Ready {
			pause = probeAgain
		}
		sleep(ctx, pause)
		if ctx.Err() != nil {
			return
		}
		c.probe(ctx)
	}
}

// Capabilities tells what the cluster has, as it was last asked.
func (c *cluster) Capabilities(context.Context) executor.Capabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caps
}

// probe asks what the cluster has.
func (c *cluster) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	vcpu, memory, gpus, err := c.client.machines(ctx, c.config.Partition)
	caps := c.config.capabilities()
	switch {
	case err != nil:
		caps.Ready, caps.Problem = false, "Slurm does not answer: "+err.Error()
	case vcpu == 0:
		caps.Ready, caps.Problem = false, "Slurm has no machine for us: is the partition right?"
	}
	if caps.VCPU == 0 {
		caps.VCPU = vcpu
	}
	if caps.MemoryBytes == 0 {
		caps.MemoryBytes = memory
	}
	if caps.GPU == 0 {
		caps.GPU = gpus
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.config.Now()
	if err != nil && c.caps.Ready && now.Sub(c.answered) < probeLasts {
		return
	}
	if err == nil {
		c.answered = now
	}
	c.caps = caps
}

// statusOf is what Slurm says of a job.
func (c *cluster) statusOf(j slurmJob) reconciler.JobStatus {
	s := reconciler.JobStatus{Number: j.id, Waits: j.waits(), Suspended: j.state == "SUSPENDED", Leaving: j.ended() || j.state == "COMPLETING", Start: j.start, End: j.end}
	if !strings.ContainsAny(j.node, "[, ") {
		s.Node = j.node
	}
	blocked := slices.ContainsFunc(never, func(words string) bool { return strings.Contains(j.reason, words) })
	switch {
	case j.ended():
		s.Ended, s.Reason, s.Detail = true, endings[j.state], "Slurm says "+j.state
		s.Again = s.Reason != executor.Lost
		s.NotBegun = "does the machine " + j.node + " see the folder " + c.config.Folder + "?"
	case s.Waits && blocked:
		s.Blocked, s.Reason, s.Detail = true, executor.Unschedulable, "Slurm cannot start it: "+j.reason
	case s.Waits:
		s.Reason, s.Detail = executor.Queued, "waits in Slurm's queue: "+j.reason
	}
	return s
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
// succeeded, or failed by itself, Slurm cannot know: lost stands for both. What we
// cancel ourselves is known to be stopped; the rest was cancelled by the site.
var endings = map[string]executor.Reason{
	"COMPLETED": executor.Lost, "FAILED": executor.Lost,
	"OUT_OF_MEMORY": executor.OutOfMemory, "TIMEOUT": executor.TimedOut, "DEADLINE": executor.TimedOut,
	"CANCELLED": executor.Preempted, "PREEMPTED": executor.Preempted, "REVOKED": executor.Preempted, "REQUEUED": executor.Preempted,
	"SPECIAL_EXIT": executor.Preempted, "NODE_FAIL": executor.NodeLost, "BOOT_FAIL": executor.NodeLost,
}

// never are the reasons for which a job waits that do not pass by themselves.
var never = []string{"BadConstraints", "Partition", "InvalidAccount", "InvalidQOS", "NotAllowed", "ReqNodeNotAvail", "DependencyNeverSatisfied", "AccountingPolicy"}

func signalOn(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
