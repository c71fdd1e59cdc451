package sharedfolder

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// server is one of several on a folder.
type server struct {
	*Records
	now *time.Time
}

func newServer(t *testing.T, change ...func(*Config)) server {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	c := Config{
		Folder: t.TempDir(), Key: make([]byte, 32), JobName: func(id, fence string) string { return "job " + id + " " + fence },
		GPUVariables: []string{"CUDA_VISIBLE_DEVICES"}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	}
	for _, set := range change {
		set(&c)
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return server{r, &now}
}

// another is another server on the folder.
func (s server) another(t *testing.T) server {
	t.Helper()
	r, err := New(s.config)
	if err != nil {
		t.Fatal(err)
	}
	return server{r, s.now}
}

func (s server) later(d time.Duration) { *s.now = s.now.Add(d) }

// spec is an attempt, with its folder.
func (s server) spec(t *testing.T, node string) executor.Spec {
	t.Helper()
	spec := executor.Spec{Key: executor.Key{Run: "run_1", Node: node, Attempt: 1}, Fence: "f", Interpreter: "sh", Command: "true"}
	spec.Dir = s.dir(spec.Key.Folder())
	if err := s.Prepare(t.Context(), spec.Key); err != nil {
		t.Fatal(err)
	}
	return spec
}

func (s server) attemptOf(spec executor.Spec) reconciler.Attempt {
	id := spec.Key.Folder()
	return reconciler.Attempt{Job: reconciler.Job{Name: s.config.JobName(id, spec.Fence), ID: id, Fence: spec.Fence, Key: spec.Key, Image: spec.Root}, SubmittedAt: *s.now}
}

func (s server) add(t *testing.T, spec executor.Spec) reconciler.Ref {
	t.Helper()
	if err := s.Add(t.Context(), s.attemptOf(spec), spec, nil); err != nil {
		t.Fatal(err)
	}
	return reconciler.Ref{ID: spec.Key.Folder(), Fence: spec.Fence}
}

// list are the attempts that the server finds, by node.
func (s server) list(t *testing.T) map[string]reconciler.Attempt {
	t.Helper()
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]reconciler.Attempt{}
	for _, a := range list {
		all[a.Job.Key.Node] = a
	}
	return all
}

func (s server) folder(r reconciler.Ref) job.Folder { return job.Folder(s.dir(r.ID)) }

// control is what the job of an attempt reads.
func (s server) control(t *testing.T, r reconciler.Ref) job.Control {
	t.Helper()
	c, err := s.folder(r).Control()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s server) end(t *testing.T, r reconciler.Ref) reconciler.End {
	t.Helper()
	e, err := s.End(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func outcome(reason executor.Reason) reconciler.Outcome {
	return reconciler.Outcome{Phase: executor.Ended, Reason: reason, Exit: &executor.Exit{Fence: "f"}}
}

// What one server has submitted, stopped or seen to end, the next one knows.
func TestTheNextServerKnowsAllAttempts(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	refs := map[string]reconciler.Ref{}
	for _, node := range []string{"waits", "stopped", "ended", "torn", "other", "blocked"} {
		refs[node] = s.add(t, s.spec(t, node))
	}
	o := outcome(executor.ExitedNonZero)
	o.Recorded, o.Node = true, "node7"
	text, err := os.ReadFile(s.dir(refs["waits"].ID) + "/job.json")
	err = errors.Join(err,
		s.Stop(t.Context(), refs["stopped"], time.Second), s.Conclude(t.Context(), refs["ended"], o), s.Block(t.Context(), refs["blocked"], true),
		os.WriteFile(s.dir(refs["torn"].ID)+"/job.json", []byte("{torn"), 0o600),
		os.WriteFile(s.dir(refs["other"].ID)+"/job.json", text, 0o600), // that of another attempt, as a task might copy it
		os.Mkdir(s.dir("being-prepared"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	next := s.another(t)
	all := next.list(t)
	if len(all) != 4 {
		t.Errorf("%d attempts", len(all))
	}
	for _, node := range []string{"waits", "stopped", "ended", "blocked"} {
		a := all[node]
		if a.Ref() != refs[node] || a.Job.Name != s.config.JobName(refs[node].ID, "f") || !a.SubmittedAt.Equal(*s.now) || a.Stopping != (node == "stopped") || a.Decided != (node == "ended") || a.BlockedAt.IsZero() == (node == "blocked") {
			t.Errorf("%s: %+v", node, a)
		}
	}
	if a := all["stopped"]; a.Grace != time.Second {
		t.Errorf("its grace is %s", a.Grace)
	}
	if e := next.end(t, refs["ended"]); e.Outcome == nil || e.Outcome.Reason != executor.ExitedNonZero || e.Outcome.Node != "node7" || !e.Outcome.Recorded {
		t.Errorf("%+v", e.Outcome)
	}
	// What the next server releases, this one forgets.
	for range 2 {
		if err := next.Remove(t.Context(), refs["ended"]); err != nil {
			t.Fatal(err)
		}
	}
	s.later(time.Second)
	if _, there := s.list(t)["ended"]; there {
		t.Error("a released attempt is listed")
	}
	if _, err := os.Stat(s.dir(refs["ended"].ID)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
}

// A task outlives an upgrade of its server, whose next release reads what this one has
// written: these are the files of an attempt as they are since the first release.
func TestFilesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := "run_1.n.2.1"
	dir := s.dir(id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_699_999_000, 0).UTC()
	outcome, err := s.sealer.seal("outcome f", json.RawMessage(`{"phase":"ended","reason":"exited_non_zero","node":"node7","exit":{"fence":"f","code":3},"recorded":true,"at":"2023-11-14T22:00:00Z"}`))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"job.json": `{"launch":{"id":"` + id + `","fence":"f","argv":["sh"],"grace":1000000000,"about":{"key":{"run":"run_1","node":"n","shard":2,"attempt":1},"fence":"f","vcpu":1.5,"memory":1024,"gpu":1,
			"away":60000000000,"limit":3600000000000,"root":"/images/a","environment":"/environments/b","at":"` + at.Format(time.RFC3339) + `"}},"hostVariable":"SLURMD_NODENAME"}`,
		"control.json": `{"renewals":4,"until":"2023-11-14T22:01:00Z","stop":true,"grace":5000000000}`,
		"state.json":   `{"fence":"f","host":"node7","beats":9,"usage":{"cpu":1000000000,"memory":77}}`,
		"claim":        "f\n",
		"stuck":        "",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key := executor.Key{Run: "run_1", Node: "n", Shard: 2, Attempt: 1}
	want := reconciler.Job{Name: s.config.JobName(id, "f"), ID: id, Fence: "f", Key: key, Image: "/images/a", VCPU: 1.5, MemoryBytes: 1024, GPU: 1, Timeout: time.Hour, Grace: time.Second}
	a := s.list(t)["n"]
	if a.Job != want || !a.SubmittedAt.Equal(at) || !a.Stopping || a.Grace != 5*time.Second || a.RunningAt.IsZero() || a.Host != "node7" || a.Usage == nil || a.Usage.Memory != 77 || a.BlockedAt.IsZero() {
		t.Errorf("%+v", a)
	}
	if err := s.Renew(t.Context(), []reconciler.Ref{a.Ref()}); err != nil || s.control(t, a.Ref()).Renewals != 5 {
		t.Errorf("%+v, %v", s.control(t, a.Ref()), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "outcome"), outcome, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := s.end(t, a.Ref()); !e.Began || e.Outcome == nil || e.Outcome.Exit.Code != 3 || !e.Outcome.Recorded || e.Outcome.Node != "node7" {
		t.Errorf("%+v", e.Outcome)
	}
}

// A server that was away learns what others have made of attempts that both knew.
func TestServersHearOfEachOther(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ref := s.add(t, s.spec(t, "n"))
	other := s.another(t)
	other.list(t)
	s.list(t)
	if err := other.Stop(t.Context(), ref, time.Minute); err != nil {
		t.Fatal(err)
	}
	s.later(checkEvery)
	if a := s.list(t)["n"]; !a.Stopping || a.Grace != time.Minute {
		t.Errorf("%+v", a)
	}
	if err := errors.Join(other.Conclude(t.Context(), ref, outcome(executor.Cancelled)), s.Conclude(t.Context(), ref, outcome(executor.StartFailed))); err != nil {
		t.Fatal(err)
	}
	for name, server := range map[string]server{"the first": other, "the second": s, "a third": s.another(t)} {
		server.list(t)
		if e := server.end(t, ref); e.Outcome == nil || e.Outcome.Reason != executor.Cancelled {
			t.Errorf("%s server knows %+v", name, e.Outcome)
		}
	}
	if left, err := filepath.Glob(s.dir(ref.ID) + "/.outcome*"); err != nil || len(left) != 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// With an attempt that was concluded before it began no job begins, and one that has
// begun is not concluded as if it had not.
func TestAnAttemptIsWithdrawnBeforeItIsConcluded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ref := s.add(t, s.spec(t, "withdrawn"))
	if err := s.Conclude(t.Context(), ref, outcome(executor.Cancelled)); err != nil {
		t.Fatal(err)
	}
	if err := s.folder(ref).Claim("f"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a job may still begin: %v", err)
	}
	ref = s.add(t, s.spec(t, "begun"))
	if e := s.end(t, ref); e.Began {
		t.Error("it has begun before it has")
	}
	if err := s.folder(ref).Claim("f"); err != nil {
		t.Fatal(err)
	}
	if err := s.Conclude(t.Context(), ref, outcome(executor.Cancelled)); !fault.Is(err, fault.KindConflict) {
		t.Errorf("it is concluded: %v", err)
	}
	if e := s.end(t, ref); !e.Began || e.Outcome != nil || s.list(t)["begun"].BeganAt.IsZero() {
		t.Errorf("%+v", e)
	}
	if err := s.Conclude(t.Context(), ref, outcome(executor.Preempted)); err != nil || s.end(t, ref).Outcome == nil {
		t.Errorf("now that it is known to have begun: %v", err)
	}
	// A server that went down between the two leaves it to the next one.
	ref = s.add(t, s.spec(t, "half"))
	if _, err := s.folder(ref).Withdraw(); err != nil {
		t.Fatal(err)
	}
	next := s.another(t)
	next.list(t)
	if e := next.end(t, ref); e.Began {
		t.Error("a claim of the server's is one of a job")
	}
	if err := next.Conclude(t.Context(), ref, outcome(executor.Cancelled)); err != nil {
		t.Error(err)
	}
}

// Times are when the server heard, never what a job says, and of another's report
// nothing is taken.
func TestWhatAJobReports(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ref := s.add(t, s.spec(t, "n"))
	begin := *s.now
	say := func(state job.State) reconciler.Attempt {
		t.Helper()
		s.later(time.Second)
		if err := s.folder(ref).WriteState(state); err != nil {
			t.Fatal(err)
		}
		return s.list(t)["n"]
	}
	at := func(seconds time.Duration) time.Time { return begin.Add(seconds * time.Second) }
	if a := say(job.State{Fence: "another", Beats: 1, Exit: &shim.Exit{Fence: "another"}}); !a.BeganAt.IsZero() || a.Reported {
		t.Errorf("another's: %+v", a)
	}
	if a := say(job.State{Fence: "f", Beats: 1, Host: "node7"}); !a.BeganAt.Equal(at(2)) || !a.RunningAt.Equal(at(2)) || !a.HeardAt.Equal(at(2)) || a.Host != "node7" {
		t.Errorf("it runs: %+v", a)
	}
	if a := say(job.State{Fence: "f", Beats: 1}); !a.HeardAt.Equal(at(2)) {
		t.Errorf("it is silent: %+v", a)
	}
	if a := say(job.State{Fence: "f", Beats: 2, Usage: &shim.Usage{Memory: 7}}); !a.HeardAt.Equal(at(4)) || !a.RunningAt.Equal(at(2)) || a.Usage == nil || a.Usage.Memory != 7 {
		t.Errorf("it lives: %+v", a)
	}
	if a := say(job.State{Fence: "f", Beats: 3, Exit: &shim.Exit{Fence: "f", Code: 3, End: at(1000)}}); !a.EndedAt.Equal(at(5)) || !a.Reported || !a.HeardAt.Equal(at(4)) {
		t.Errorf("it has ended: %+v", a)
	}
	if a := say(job.State{Fence: "f", Beats: 4, Exit: &shim.Exit{Fence: "f"}}); !a.EndedAt.Equal(at(5)) {
		t.Errorf("it says so again: %+v", a)
	}
	var exit executor.Exit
	if err := json.Unmarshal(s.end(t, ref).Exit, &exit); err != nil || exit.Code != 3 {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestTheImagesThatAttemptsSeeAreListed(t *testing.T) {
	t.Parallel()
	if roots, err := Roots(filepath.Join(t.TempDir(), "none")); err != nil || len(roots) != 0 {
		t.Errorf("where nothing is: %v, %v", roots, err)
	}
	s := newServer(t)
	for node, root := range map[string]string{"a": "/images/a", "b": ""} {
		spec := s.spec(t, node)
		spec.Root, spec.Environment = root, "/environments/"+node
		s.add(t, spec)
	}
	if err := errors.Join(os.Mkdir(s.dir("being-prepared"), 0o700), os.WriteFile(s.dir(".environment"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	roots, err := Roots(s.config.Folder)
	slices.Sort(roots)
	if err != nil || strings.Join(roots, " ") != "/environments/a /environments/b /images/a" {
		t.Errorf("%v, %v", roots, err)
	}
	// Of one that cannot be read nobody knows what it sees: nothing may be removed.
	if err := os.WriteFile(s.dir("being-prepared/job.json"), []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if roots, err := Roots(s.config.Folder); err == nil {
		t.Errorf("%v", roots)
	}
}

func TestAnAttemptIsRenewedOftenEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	spec := s.spec(t, "n")
	spec.AbandonAfter = time.Minute
	ref := s.add(t, spec)
	renewals := func() int64 {
		if err := s.Renew(t.Context(), []reconciler.Ref{ref, {ID: "run_none"}}); err != nil {
			t.Fatal(err)
		}
		return s.control(t, ref).Renewals
	}
	for _, tt := range []struct {
		after time.Duration
		want  int64
	}{{0, 0}, {10*time.Second - 1, 0}, {1, 1}, {10*time.Second - 1, 1}, {1, 2}, {time.Hour, 3}} {
		s.later(tt.after)
		if got := renewals(); got != tt.want {
			t.Errorf("%s later: %d renewals, want %d", tt.after, got, tt.want)
		}
	}
	if c := s.control(t, ref); !c.Until.Equal(s.now.Add(time.Minute)) {
		t.Errorf("until %s", c.Until)
	}
	if err := s.Conclude(t.Context(), ref, outcome(executor.Cancelled)); err != nil {
		t.Fatal(err)
	}
	s.later(time.Hour)
	if got := renewals(); got != 3 {
		t.Errorf("after its end: %d renewals", got)
	}
}

// A stop stays, with the shortest grace; what has ended is not stopped.
func TestAStopIsKept(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ref := s.add(t, s.spec(t, "n"))
	for _, tt := range []struct{ grace, want time.Duration }{{time.Minute, time.Minute}, {time.Hour, time.Minute}, {time.Second, time.Second}} {
		if err := s.Stop(t.Context(), ref, tt.grace); err != nil {
			t.Fatal(err)
		}
		if c := s.control(t, ref); !c.Stop || c.Grace != tt.want {
			t.Errorf("after a stop with %s: %+v", tt.grace, c)
		}
	}
	for _, stale := range []reconciler.Ref{{ID: ref.ID, Fence: "g"}, {ID: "none", Fence: "f"}} {
		if err := s.Stop(t.Context(), stale, 0); err != nil || s.control(t, ref).Grace != time.Second {
			t.Errorf("%+v: %v", stale, err)
		}
	}
	if err := errors.Join(s.Conclude(t.Context(), ref, outcome(executor.Cancelled)), s.Stop(t.Context(), ref, 0)); err != nil {
		t.Fatal(err)
	}
	if c := s.control(t, ref); c.Grace != time.Second {
		t.Errorf("what has ended is told %+v", c)
	}
}

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

// TestServersKeepWhatOthersWantOfAJob has one server stop and renew an attempt after
// another one has read what is wanted of it.
func TestServersKeepWhatOthersWantOfAJob(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	spec := s.spec(t, "secret")
	spec.AbandonAfter, spec.Env, spec.Secrets = time.Minute, map[string]string{"A": "value"}, []string{"value"}
	ref := s.add(t, spec)
	other := s.another(t)
	other.list(t)
	keys := publicKeys(t, 2)
	for range 2 {
		s.later(time.Minute)
		if err := s.Renew(t.Context(), []reconciler.Ref{ref}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.answer(s.find(ref), keys[0]), s.Stop(t.Context(), ref, time.Second)); err != nil {
		t.Fatal(err)
	}
	before := s.control(t, ref)
	if err := errors.Join(other.answer(other.find(ref), keys[1]), other.Renew(t.Context(), []reconciler.Ref{ref})); err != nil {
		t.Fatal(err)
	}
	after := s.control(t, ref)
	if !after.Stop || after.Grace != time.Second || after.Renewals != before.Renewals+1 || !slices.Equal(after.Secrets, before.Secrets) {
		t.Errorf("it was %+v and is %+v", before, after)
	}
}

// TestTheLaterOwnersOrdersStay has the former owner of a run write over what the later one
// wants of a job, as when both write at the same moment.
func TestTheLaterOwnersOrdersStay(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	spec := s.spec(t, "n")
	spec.AbandonAfter = time.Minute
	former := s.add(t, spec)
	former.RunFence = 1
	owner := former
	owner.RunFence = 2
	if err := s.Renew(t.Context(), []reconciler.Ref{former}); err != nil {
		t.Fatal(err)
	}
	overwritten := s.control(t, former)
	overwritten.Stop = true
	renew := func() job.Control {
		t.Helper()
		if err := s.Renew(t.Context(), []reconciler.Ref{owner, former}); err != nil {
			t.Fatal(err)
		}
		return s.control(t, owner)
	}
	if c := renew(); c.RunFence != 2 || c.Renewals != 2 { // at once, however short ago it was submitted
		t.Errorf("after the adoption: %+v", c)
	}
	if err := s.folder(owner).WriteControl(overwritten); err != nil {
		t.Fatal(err)
	}
	s.later(time.Minute)
	if c := renew(); c.RunFence != 2 || c.Renewals != 3 || c.Stop {
		t.Errorf("after the next renewal: %+v", c)
	}
	other := s.another(t)
	other.list(t)
	for name, err := range map[string]error{"stops it": other.Stop(t.Context(), former, 0), "may end it": other.Allow(t.Context(), former), "removes it": other.Remove(t.Context(), former)} {
		if err == nil {
			t.Errorf("the former owner %s", name)
		}
	}
	if err := other.Allow(t.Context(), owner); err != nil {
		t.Error(err)
	}
}

// A task can write to its own folder, and is stopped all the same.
func TestAForgedFenceCountsForNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	owner := s.add(t, s.spec(t, "n"))
	owner.RunFence = 2
	if err := s.Renew(t.Context(), []reconciler.Ref{owner}); err != nil {
		t.Fatal(err)
	}
	forged := s.control(t, owner)
	forged.RunFence = math.MaxInt64
	if err := s.folder(owner).WriteControl(forged); err != nil {
		t.Fatal(err)
	}
	next := s.another(t)
	next.list(t)
	for name, server := range map[string]server{"that has adopted it": s, "that comes later": next} {
		if err := server.Stop(t.Context(), owner, 0); err != nil {
			t.Errorf("a server %s: %v", name, err)
		}
	}
	if c := s.control(t, owner); c.RunFence != 2 || !c.Stop {
		t.Errorf("after a forgery: %+v", c)
	}
}

// The first key that asks for secrets gets them, and no other: the file that asks is
// where the command can write.
func TestSecretsAreHandedOutOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	spec := s.spec(t, "n")
	spec.Env, spec.Secrets = map[string]string{"A": "correct-horse"}, []string{"correct-horse"}
	ref := s.add(t, spec)
	ask := func(key []byte) job.Control {
		t.Helper()
		if err := s.folder(ref).WriteState(job.State{Fence: "f", Key: key}); err != nil {
			t.Fatal(err)
		}
		if a := s.list(t)["n"]; !a.RunningAt.IsZero() {
			t.Error("it runs before it has its secrets")
		}
		return s.control(t, ref)
	}
	if c := ask([]byte("no key")); len(c.Secrets) != 0 {
		t.Error("they are sealed for nobody")
	}
	keys := publicKeys(t, 2)
	first := ask(keys[0])
	if len(first.Secrets) == 0 {
		t.Fatal("there is no answer")
	}
	if again := ask(keys[1]); string(again.Secrets) != string(first.Secrets) {
		t.Error("a second key has its answer")
	}
}

// Whoever can read the shared folder finds no secret in it.
func TestSecretsAreSealedInAJob(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse"
	s := newServer(t)
	spec := s.spec(t, "n")
	spec.Interpreter, spec.Command, spec.GPU, spec.Secrets = "python3", "print(1)", 1, []string{secret}
	spec.Env = map[string]string{"TOKEN": secret, "URL": "https://u:" + secret + "@host", "PLAIN": "x", "TMPDIR": "/scratch"}
	ref := s.add(t, spec)
	text, err := os.ReadFile(s.dir(ref.ID) + "/job.json")
	if err != nil || strings.Contains(string(text), secret) {
		t.Errorf("the job is %s, %v", text, err)
	}
	j, err := s.folder(ref).Job()
	if err != nil {
		t.Fatal(err)
	}
	var sealed job.Secrets
	if err := s.sealer.open(spec.Fence, j.Sealed, &sealed); err != nil {
		t.Fatal(err)
	}
	slices.Sort(sealed.Env)
	if strings.Join(sealed.Env, " ") != "TOKEN="+secret+" URL=https://u:"+secret+"@host" || strings.Join(sealed.Values, " ") != secret {
		t.Errorf("sealed: %+v", sealed)
	}
	if err := s.sealer.open("another fence", j.Sealed, &sealed); err == nil {
		t.Error("it opens under another fence")
	}
	script := filepath.Join(spec.Dir, shim.TempFolder, ".millrace-command")
	if got, err := os.ReadFile(script); err != nil || string(got) != "print(1)" || strings.Join(j.Launch.Argv, " ") != "python3 "+script {
		t.Errorf("%q runs %q, %v", j.Launch.Argv, got, err)
	}
	for _, variable := range []string{"HOME=" + filepath.Join(spec.Dir, shim.TempFolder), "TMPDIR=/scratch", "PLAIN=x"} {
		if !slices.Contains(j.Launch.Env, variable) {
			t.Errorf("%s is not in %q", variable, j.Launch.Env)
		}
	}
	if !slices.Contains(j.Inherit, "CUDA_VISIBLE_DEVICES") {
		t.Errorf("its GPUs are hidden from it: %q", j.Inherit)
	}
}

func TestWhatIsNotSubmitted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for name, tt := range map[string]struct {
		change func(*executor.Spec)
		kind   fault.Kind
		says   string
	}{
		"another folder": {func(x *executor.Spec) { x.Dir += "x" }, fault.KindInvalid, "the folder of an attempt must be"},
		"odd characters": {func(x *executor.Spec) { x.Key.Node = "a b"; x.Dir = s.dir(x.Key.Folder()) }, fault.KindInvalid, "characters"},
		"a quote":        {func(x *executor.Spec) { x.Key.Node = "a'b"; x.Dir = s.dir(x.Key.Folder()) }, fault.KindInvalid, "characters"},
	} {
		spec := s.spec(t, "n")
		tt.change(&spec)
		if err := s.Add(t.Context(), s.attemptOf(spec), spec, nil); !fault.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all := s.list(t); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	spec := s.spec(t, "twice")
	ref := s.add(t, spec)
	before, err := os.ReadFile(s.dir(ref.ID) + "/job.json")
	if err != nil {
		t.Fatal(err)
	}
	s.later(time.Hour)
	for name, server := range map[string]server{"the same": s, "another": s.another(t)} {
		server.add(t, spec)
		if after, err := os.ReadFile(s.dir(ref.ID) + "/job.json"); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s server has changed the order, %v", name, err)
		}
		changed := spec
		changed.Fence = "g"
		if err := server.Add(t.Context(), server.attemptOf(changed), changed, nil); !fault.Is(err, fault.KindConflict) {
			t.Errorf("%s server, under another fence: %v", name, err)
		}
	}
}

// A task may reach the folder of its attempt; it cannot say how that ended, nor keep
// servers from it.
func TestAnOutcomeCannotBeForged(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ref, other := s.add(t, s.spec(t, "a")), s.spec(t, "b")
	other.Fence = "g"
	theirs := s.add(t, other)
	if err := errors.Join(s.Conclude(t.Context(), ref, outcome(executor.Cancelled)), s.Conclude(t.Context(), theirs, outcome(executor.Preempted))); err != nil {
		t.Fatal(err)
	}
	file := s.dir(ref.ID) + outcomeFile
	sealed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	another, err := os.ReadFile(s.dir(theirs.ID) + outcomeFile)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, text := range map[string][]byte{"changed": changed, "another attempt's": another, "plain": []byte(`{"phase":"ended"}`), "empty": {}, "cut": sealed[:10]} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		next := s.another(t)
		if a := next.list(t)["a"]; a.Decided || next.end(t, ref).Outcome != nil {
			t.Errorf("%s: %+v", name, a)
		}
		if err := next.Conclude(t.Context(), ref, outcome(executor.Cancelled)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e := s.another(t); !e.list(t)["a"].Decided || e.end(t, ref).Outcome.Reason != executor.Cancelled {
			t.Errorf("%s: the next server does not know its end", name)
		}
	}
}

// places are what a task without a container around it can put where the server reads: it
// may write to the folder of its attempt, and the server sees more of its own machine.
func places(t *testing.T) map[string]func(path string) error {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(`{"stop":true,"fence":"f","exit":{"fence":"f"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]func(path string) error{
		"a pipe":             func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a link to a file":   func(path string) error { return os.Symlink(secret, path) },
		"a link to a device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"a folder":           func(path string) error { return os.Mkdir(path, 0o700) },
		"a huge file": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		},
	}
}

// One task must not hold up the others of a server, nor have it read what it could not read
// itself: whatever it puts into its folder is looked at and left.
func TestWhatATaskPutsIntoItsFolderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for name, put := range places(t) {
		for _, file := range []string{"state.json", "control.json", "claim", "outcome", "job.json"} {
			s := newServer(t)
			ref := s.add(t, s.spec(t, "n"))
			path := filepath.Join(s.dir(ref.ID), file)
			if err := errors.Join(os.RemoveAll(path), put(path)); err != nil {
				t.Fatal(err)
			}
			if a := s.list(t)["n"]; a.Reported || a.Decided || a.Stopping {
				t.Errorf("%s at %s: %+v", name, file, a)
			}
			if e := s.end(t, ref); e.Exit != nil || e.Outcome != nil {
				t.Errorf("%s at %s: %+v", name, file, e)
			}
			if ours, err := s.folder(ref).Withdraw(); file == "claim" && (ours || err == nil) {
				t.Errorf("%s at %s is a claim of the server's: %t, %v", name, file, ours, err)
			}
			s.another(t).list(t) // of a server that starts
		}
	}
}

func TestALogThatIsSomethingElseIsEmpty(t *testing.T) {
	t.Parallel()
	for name, put := range places(t) {
		if name == "a huge file" { // is a log, which is read as it comes
			continue
		}
		s := newServer(t)
		ref := s.add(t, s.spec(t, "n"))
		if err := errors.Join(put(filepath.Join(s.dir(ref.ID), "log")), s.folder(ref).WriteState(job.State{Fence: "f", Beats: 1})); err != nil {
			t.Fatal(err)
		}
		r, err := s.Log(t.Context(), s.list(t)["n"], 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text, err := io.ReadAll(io.LimitReader(r, 100)); err != nil || len(text) != 0 {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What the server writes into a task's folder reaches no file of the server's own.
func TestALinkThatATaskPlantsIsNotWrittenThrough(t *testing.T) {
	t.Parallel()
	victim := filepath.Join(t.TempDir(), "database")
	if err := os.WriteFile(victim, []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	ref := s.add(t, s.spec(t, "n"))
	for _, name := range []string{outcomeFile, outcomeFile + ".new", blockedFile, "/control.json", "/state.json"} {
		path := s.dir(ref.ID) + name
		if err := errors.Join(os.RemoveAll(path), os.Symlink(victim, path)); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(s.Block(t.Context(), ref, true), s.Stop(t.Context(), ref, 0), s.folder(ref).WriteState(job.State{}), s.Conclude(t.Context(), ref, outcome(executor.Cancelled)))
	if err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "rows" {
		t.Errorf("it is %q now, %v", text, err)
	}
	next := s.another(t)
	next.list(t)
	if e := next.end(t, ref); e.Outcome == nil || e.Outcome.Reason != executor.Cancelled {
		t.Errorf("the next server learns %+v", e.Outcome)
	}
}

// The folder of the next attempt can be made by the one before it, links included.
func TestACommandIsWrittenToItsOwnFolderAlone(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(temp, victim string) error{
		"the file": func(temp, victim string) error { return os.Symlink(victim, filepath.Join(temp, filepath.Base(victim))) },
		"its folder": func(temp, victim string) error {
			return errors.Join(os.Remove(temp), os.Symlink(filepath.Dir(victim), temp))
		},
	} {
		victim := filepath.Join(t.TempDir(), ".millrace-command")
		if err := os.WriteFile(victim, []byte("rows"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newServer(t)
		spec := s.spec(t, "n")
		spec.Interpreter, spec.Command = "python3", "print(1)"
		if err := plant(spec.Places().Temp, victim); err != nil {
			t.Fatal(err)
		}
		if err := s.Add(t.Context(), s.attemptOf(spec), spec, nil); err == nil {
			t.Errorf("%s: it is submitted", name)
		}
		if text, err := os.ReadFile(victim); err != nil || string(text) != "rows" {
			t.Errorf("%s: it is %q now, %v", name, text, err)
		}
	}
}

// What was made before the server came is not where it brings inputs to.
func TestTheFolderOfAnAttemptIsNew(t *testing.T) {
	t.Parallel()
	victim := t.TempDir()
	if err := os.WriteFile(filepath.Join(victim, "file"), []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	spec := s.spec(t, "n")
	for name, plant := range map[string]func() error{
		"inputs elsewhere": func() error { return os.Symlink(victim, spec.Places().Inputs) },
		"work elsewhere":   func() error { return errors.Join(os.RemoveAll(spec.Work()), os.Symlink(victim, spec.Work())) },
		"all of it elsewhere": func() error {
			return errors.Join(os.RemoveAll(spec.Dir), os.Symlink(victim, spec.Dir))
		},
		"nothing but a folder": func() error { return nil },
	} {
		if err := errors.Join(plant(), s.Prepare(t.Context(), spec.Key)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, dir := range []string{spec.Dir, spec.Work(), spec.Places().Temp} {
			if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
				t.Errorf("%s: %s is %v, %v", name, dir, info, err)
			}
		}
		if _, err := os.Lstat(spec.Places().Inputs); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: inputs are there: %v", name, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(victim, "file")); err != nil || string(text) != "rows" {
		t.Errorf("what is elsewhere is %q, %v", text, err)
	}
	// One that was submitted is left, whoever prepares it once more.
	s.add(t, spec)
	made := filepath.Join(spec.Work(), "made")
	if err := errors.Join(os.WriteFile(made, nil, 0o600), s.Prepare(t.Context(), spec.Key)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(made); err != nil {
		t.Errorf("what it made: %v", err)
	}
}

// A folder that was made anew since this server looked belongs to the new attempt.
func TestAnAttemptThatIsSubmittedAnewIsAnother(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ref := s.add(t, s.spec(t, "n"))
	if err := os.RemoveAll(s.dir(ref.ID)); err != nil { // by another server
		t.Fatal(err)
	}
	spec := s.spec(t, "n")
	spec.Fence = "g"
	s.add(t, spec)
	if a := s.list(t)["n"]; a.Job.Fence != "g" {
		t.Errorf("%+v", a)
	}
}
