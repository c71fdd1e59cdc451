package slurm

import (
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

func publicKeys(t *testing.T, n int) (keys [][]byte) {
	t.Helper()
	for range n {
		k, err := ecdh.X25519().GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k.PublicKey().Bytes())
	}
	return keys
}

// next is another server on the same folder.
func (d *deciding) next() *Driver {
	return &Driver{
		config: d.config, sealer: d.sealer, installation: d.installation, client: d.client, watchers: newWatchers(), attempts: map[string]*attempt{},
		queue: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
}

// What one server has submitted, stopped or seen to end, the next one knows.
func TestTheNextServerKnowsAllAttempts(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	if err := os.RemoveAll(string(d.a.folder)); err != nil {
		t.Fatal(err)
	}
	handles := map[string]executor.Handle{}
	for _, node := range []string{"waits", "stopped", "ended", "torn", "other"} {
		h, err := d.Submit(t.Context(), executor.NoRun, d.spec(t, node))
		if err != nil {
			t.Fatal(err)
		}
		handles[node] = h
	}
	if err := d.Stop(t.Context(), executor.NoRun, handles["stopped"], 0); err != nil {
		t.Fatal(err)
	}
	ended := d.attempts[handles["ended"].ID]
	d.handedOver(ended, "7")
	d.hear(t.Context(), ended, job.State{Fence: "g", Host: "node7", Exit: &shim.Exit{Fence: "g", Code: 3}})
	err := os.WriteFile(filepath.Join(d.dir(handles["torn"].ID), "job.json"), []byte("{torn"), 0o600)
	// A folder whose job is that of another attempt, as a task might copy it.
	text, readErr := os.ReadFile(filepath.Join(d.dir(handles["waits"].ID), "job.json"))
	err = errors.Join(err, readErr, os.WriteFile(filepath.Join(d.dir(handles["other"].ID), "job.json"), text, 0o600), os.Mkdir(d.dir("being-prepared"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	next := d.next()
	all, err := next.Snapshot(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("%d attempts, %v", len(all), err)
	}
	for _, seen := range all {
		want := map[string]executor.Reason{"waits": executor.Starting, "stopped": executor.Cancelled, "ended": executor.ExitedNonZero}[seen.Key.Node]
		if seen.Reason != want || seen.Fence != "g" || seen.Handle != handles[seen.Key.Node] {
			t.Errorf("%s: %s, %s", seen.Key.Node, seen.Phase, seen.Reason)
		}
		if seen.Key.Node == "ended" && (seen.Host != "node7" || seen.Exit == nil || seen.Exit.Code != 3) {
			t.Errorf("%+v", seen)
		}
	}
	// One that nobody handed to Slurm is handed over by whoever comes next, once.
	waits := next.attempts[handles["waits"].ID]
	if vanished := next.weigh(next.open(), nil, d.now); len(vanished) != 0 {
		t.Error("Slurm is not given the time to list it")
	}
	d.now = d.now.Add(d.config.Lag)
	if vanished := next.weigh(next.open(), nil, d.now); len(vanished) != 1 || vanished[0] != waits {
		t.Fatalf("%v", vanished)
	}
	next.client = saying(t, "exit 1")
	next.weighEnded(t.Context(), []*attempt{waits})
	if len(next.waiting) != 1 || next.waiting[0] != waits {
		t.Errorf("%d are submitted", len(next.waiting))
	}
	// What the next server releases, this one forgets.
	if err := next.Release(t.Context(), executor.NoRun, handles["ended"]); err != nil {
		t.Fatal(err)
	}
	if err := d.scan(); err != nil || d.attempts[handles["ended"].ID] != nil || d.attempts[handles["stopped"].ID] == nil {
		t.Errorf("%v, %v", d.attempts, err)
	}
}

func TestTheImagesThatAttemptsSeeAreListed(t *testing.T) {
	t.Parallel()
	if roots, err := Roots(filepath.Join(t.TempDir(), "none")); err != nil || len(roots) != 0 {
		t.Errorf("where nothing is: %v, %v", roots, err)
	}
	d := newDeciding(t)
	d.config.Container = []string{"box", "{root}", "{environment}"}
	if err := os.RemoveAll(string(d.a.folder)); err != nil {
		t.Fatal(err)
	}
	for node, root := range map[string]string{"a": "/images/a", "b": ""} {
		s := d.spec(t, node)
		s.Root, s.Environment = root, "/environments/"+node
		if _, err := d.Submit(t.Context(), executor.NoRun, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(d.dir("being-prepared"), 0o700), os.WriteFile(d.dir(".environment"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	roots, err := Roots(d.config.Folder)
	slices.Sort(roots)
	if err != nil || strings.Join(roots, " ") != "/environments/a /environments/b /images/a" {
		t.Errorf("%v, %v", roots, err)
	}
	// Of one that cannot be read nobody knows what it sees: nothing may be removed.
	if err := os.WriteFile(d.dir("being-prepared/job.json"), []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if roots, err := Roots(d.config.Folder); err == nil {
		t.Errorf("%v", roots)
	}
}

// Two servers that start at once are one installation.
func TestAFolderIsOneInstallation(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	names := make([]string, 8)
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() { names[i], _ = installation(folder) })
	}
	all.Wait()
	for _, name := range names {
		if name == "" || name != names[0] {
			t.Fatalf("%q", names)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("%v are left, %v", left, err)
	}
	for _, text := range []string{"", "short", "../../../", "ABCDEFGH", names[0] + "\n"} {
		if err := os.WriteFile(filepath.Join(folder, ".installation"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if name, err := installation(folder); err == nil || !strings.Contains(err.Error(), "remove it if no task runs") {
			t.Errorf("%q is installation %q, %v", text, name, err)
		}
	}
	if _, err := installation(filepath.Join(folder, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// What is paid for is never what a job says of itself.
func TestWhenAnAttemptRan(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time {
		return time.Unix(1_700_000_000, 0).Add(time.Duration(minutes) * time.Minute)
	}
	ended := func(start, end time.Time) slurmJob { return slurmJob{state: "FAILED", start: start, end: end} }
	var zero time.Time
	for name, tt := range map[string]struct {
		a          attempt
		start, end time.Time
	}{
		"nobody knows":              {attempt{}, at(60), at(60)},
		"seen to start":             {attempt{startedAt: at(10), notBegunAt: at(5)}, at(10), at(60)},
		"seen not to have begun":    {attempt{notBegunAt: at(5)}, at(5), at(60)},
		"only Slurm saw it":         {attempt{slurm: ended(at(20), at(30))}, at(20), at(30)},
		"Slurm saw its end":         {attempt{startedAt: at(10), slurm: ended(at(9), at(30))}, at(10), at(30)},
		"an end before the start":   {attempt{startedAt: at(10), slurm: ended(at(1), at(2))}, at(10), at(60)},
		"an end in the future":      {attempt{startedAt: at(10), slurm: ended(at(1), at(90))}, at(10), at(60)},
		"a start in the future":     {attempt{slurm: ended(at(70), at(80))}, at(60), at(60)},
		"times that are not known":  {attempt{slurm: ended(zero, zero)}, at(60), at(60)},
		"Slurm thinks that it runs": {attempt{slurm: slurmJob{state: "RUNNING", start: at(20), end: at(30)}}, at(60), at(60)},
	} {
		if start, end := tt.a.times(at(60)); !start.Equal(tt.start) || !end.Equal(tt.end) {
			t.Errorf("%s: from %s to %s", name, start, end)
		}
	}
}

// Slurm sends the same signal when it takes a machine back and at the site's time limit;
// it is asked which of them it was, for as long as its word may take.
func TestASignalOfSlurmsIsExplained(t *testing.T) {
	t.Parallel()
	taken := job.State{Fence: "f", Exit: &shim.Exit{Fence: "f", Code: 143, Signal: 15, Preempted: true}}
	for name, tt := range map[string]struct {
		state  string
		after  time.Duration
		reason executor.Reason
		detail string
	}{
		"not yet":             {"RUNNING", defaultLag - time.Second, executor.Starting, ""},
		"the site's limit":    {"TIMEOUT", 0, executor.TimedOut, "timeoutSeconds"},
		"it took it back":     {"PREEMPTED", 0, executor.Preempted, ""},
		"it does not say why": {"RUNNING", defaultLag, executor.Preempted, ""},
	} {
		d := newDeciding(t)
		d.hear(t.Context(), d.a, taken)
		if d.a.phase.Final() {
			t.Fatalf("%s: concluded at once", name)
		}
		d.a.slurm = slurmJob{state: tt.state}
		d.now = d.now.Add(tt.after)
		d.hear(t.Context(), d.a, taken)
		if d.a.reason != tt.reason || !strings.Contains(d.a.detail, tt.detail) {
			t.Errorf("%s: %s, %s, %q", name, d.a.phase, d.a.reason, d.a.detail)
		}
	}
}

func TestAnAttemptIsRenewedOftenEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	d.a.about.Away = time.Minute
	h := d.handle(d.a)
	renewals := func() int64 {
		if err := d.Renew(t.Context(), executor.Renewal{Handle: h, Permit: executor.NoRun}, executor.Renewal{Handle: executor.Handle{Key: executor.Key{Run: "run_none"}}, Permit: executor.NoRun}); err != nil {
			t.Fatal(err)
		}
		c, err := d.a.folder.Control()
		if err != nil {
			t.Fatal(err)
		}
		return c.Renewals
	}
	for _, tt := range []struct {
		after time.Duration
		want  int64
	}{{0, 1}, {10*time.Second - 1, 1}, {1, 2}, {time.Hour, 3}} {
		d.now = d.now.Add(tt.after)
		if got := renewals(); got != tt.want {
			t.Errorf("%s later: %d renewals, want %d", tt.after, got, tt.want)
		}
	}
	if c, err := d.a.folder.Control(); err != nil || !c.Until.Equal(d.now.Add(time.Minute)) {
		t.Errorf("until %s, %v", c.Until, err)
	}
	d.conclude(d.a, executor.Ended, executor.Cancelled, "")
	d.now = d.now.Add(time.Hour)
	if got := renewals(); got != 3 {
		t.Errorf("after its end: %d renewals", got)
	}
}

// Nothing is removed while a job of it might come back.
func TestReleasing(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	h := d.handle(d.a)
	if err := d.Release(t.Context(), executor.NoRun, h); !fault.Is(err, fault.KindConflict) {
		t.Errorf("while it waits: %v", err)
	}
	d.conclude(d.a, executor.Gone, executor.Lost, "")
	d.client = saying(t, "echo no controller >&2; exit 1")
	if err := d.Release(t.Context(), executor.NoRun, h); !isRefusal(err) || d.find(h) == nil {
		t.Errorf("while Slurm does not answer: %v", err)
	}
	said := filepath.Join(t.TempDir(), "said")
	d.client = saying(t, `echo "$@" > `+said)
	for range 2 {
		if err := d.Release(t.Context(), executor.NoRun, h); err != nil || d.find(h) != nil {
			t.Errorf("%v", err)
		}
	}
	if text, err := os.ReadFile(said); err != nil || strings.TrimSpace(string(text)) != "scancel --quiet --name="+d.a.name {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(string(d.a.folder)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
	_, logs := d.Logs(t.Context(), h, 0)
	_, usage := d.Usage(t.Context(), h)
	_, marks := d.Marks(t.Context(), h, 0)
	for _, err := range []error{logs, usage, marks} {
		if !fault.Is(err, fault.KindNotFound) {
			t.Errorf("of what was released: %v", err)
		}
	}
}

// TestServersKeepWhatOthersWantOfAJob has one server stop and renew an attempt after
// another one has read what is wanted of it.
func TestServersKeepWhatOthersWantOfAJob(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	s := d.spec(t, "secret")
	s.AbandonAfter, s.Env, s.Secrets = time.Minute, map[string]string{"A": "value"}, []string{"value"}
	h, err := d.Submit(t.Context(), executor.NoRun, s)
	if err != nil {
		t.Fatal(err)
	}
	other := d.next()
	if all, err := other.Snapshot(t.Context()); err != nil || len(all) != 1 {
		t.Fatalf("%d attempts, %v", len(all), err)
	}
	a := other.attempts[h.Key.Folder()]
	control := func() job.Control {
		c, err := a.folder.Control()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 2 {
		d.now = d.now.Add(time.Minute)
		if err := d.Renew(t.Context(), executor.Renewal{Handle: h, Permit: executor.NoRun}); err != nil {
			t.Fatal(err)
		}
	}
	keys := publicKeys(t, 2)
	if err := errors.Join(d.answer(d.attempts[h.Key.Folder()], keys[0]), d.Stop(t.Context(), executor.NoRun, h, time.Second)); err != nil {
		t.Fatal(err)
	}
	before := control()
	if err := errors.Join(other.answer(a, keys[1]), other.Renew(t.Context(), executor.Renewal{Handle: h, Permit: executor.NoRun})); err != nil {
		t.Fatal(err)
	}
	after := control()
	if !after.Stop || after.Grace != time.Second || after.Renewals != before.Renewals+1 || !slices.Equal(after.Secrets, before.Secrets) {
		t.Errorf("it was %+v and is %+v", before, after)
	}
}

// TestTheLaterOwnersOrdersStay has the former owner of a run write over what the later one
// wants of a job, as when both write at the same moment.
func TestTheLaterOwnersOrdersStay(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	s := d.spec(t, "a")
	s.AbandonAfter = time.Minute
	former, owner := &drivertest.Lease{Fence: 1}, &drivertest.Lease{Fence: 2}
	h, err := d.Submit(t.Context(), former, s)
	if err != nil {
		t.Fatal(err)
	}
	a := d.attempts[h.Key.Folder()]
	overwritten := a.control
	overwritten.Stop = true
	if err := d.Renew(t.Context(), executor.Renewal{Handle: h, Permit: owner}); err != nil { // at once, however short ago it was submitted
		t.Fatal(err)
	}
	if c, err := a.folder.Control(); err != nil || c.RunFence != 2 || c.Renewals != 1 {
		t.Errorf("after the adoption: %+v, %v", c, err)
	}
	if err := a.folder.WriteControl(overwritten); err != nil {
		t.Fatal(err)
	}
	d.now = d.now.Add(time.Minute)
	if err := d.Renew(t.Context(), executor.Renewal{Handle: h, Permit: owner}); err != nil {
		t.Fatal(err)
	}
	if c, err := a.folder.Control(); err != nil || c.RunFence != 2 || c.Renewals != 2 || c.Stop {
		t.Errorf("after the next renewal: %+v, %v", c, err)
	}
	other := d.next()
	if _, err := other.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.Stop(t.Context(), former, h, 0); err == nil {
		t.Error("the former owner stops it")
	}
}
