package slurm

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// spec is an attempt beside the one that a deciding driver has, with its folder.
func (d *deciding) spec(t *testing.T, node string) executor.Spec {
	t.Helper()
	s := executor.Spec{Key: executor.Key{Run: "run_2", Node: node, Attempt: 1}, Fence: "g", Interpreter: "sh", Command: "true"}
	s.Dir = d.dir(s.Key.Folder())
	if err := d.Prepare(t.Context(), s.Key); err != nil {
		t.Fatal(err)
	}
	return s
}

// A job that Slurm seemed to have lost may have begun while its attempt is submitted
// once more: whatever becomes of that, the first one counts.
func TestAJobThatHasBegunIsNotRefused(t *testing.T) {
	t.Parallel()
	submitting := map[string]func(d *deciding){
		"refused":  func(d *deciding) { d.refused(d.a, &refusal{"sbatch", "invalid partition"}) },
		"put off":  func(d *deciding) { d.waitFor(d.a, &refusal{"sbatch", "try later"}) },
		"stopped":  func(d *deciding) { d.a.stopAt = d.now; d.waitFor(d.a, &refusal{"sbatch", "try later"}) },
		"accepted": func(d *deciding) { d.handedOver(d.a, "8") },
	}
	for name, submit := range submitting {
		for how, state := range map[string]job.State{
			"claimed": {},
			"runs":    {Fence: "f", Beats: 1},
			"ended":   {Fence: "f", Beats: 2, Exit: &shim.Exit{Fence: "f"}},
		} {
			d := newDeciding(t)
			if err := d.a.folder.Claim("f"); err != nil {
				t.Fatal(err)
			}
			d.a.inQueue = true
			if state.Fence != "" {
				d.hear(t.Context(), d.a, state)
			}
			phase, at := d.a.phase, d.a.at
			d.now = d.now.Add(time.Minute)
			submit(d)
			if d.a.phase != phase || !d.a.at.Equal(at) || d.a.reason == executor.StartFailed || d.a.reason == executor.Cancelled || d.a.inQueue {
				t.Errorf("%s, and the first one %s: %s, %s, %q", name, how, d.a.phase, d.a.reason, d.a.detail)
			}
		}
	}
	for name, want := range map[string]executor.Reason{"refused": executor.StartFailed, "put off": executor.Queued, "stopped": executor.Cancelled, "accepted": executor.Queued} {
		d := newDeciding(t)
		if submitting[name](d); d.a.reason != want {
			t.Errorf("%s, and none has begun: %s, %q", name, d.a.reason, d.a.detail)
		}
	}
}

// A complaint of sbatch's does not mean that it has not heard us; a job of the same name
// that was lost before does not mean that it has.
func TestWhetherSlurmHasAJobAllTheSame(t *testing.T) {
	t.Parallel()
	for listed, want := range map[string]string{
		"":                         "",
		"7,NAME,NODE_FAIL,,0,0,x":  "",
		"7,NAME,PENDING,,0,0,None": "7",
		"7,NAME,NODE_FAIL,,0,0,x\n8,NAME,RUNNING,n,0,0,None": "8",
		"9,NAME-of-another,RUNNING,n,0,0,None":               "",
	} {
		d := newDeciding(t)
		d.client = saying(t, "cat <<'END'\n"+strings.ReplaceAll(listed, "NAME", d.a.name)+"\nEND\n")
		if id := d.accepted(t.Context(), d.a); id != want {
			t.Errorf("%q: %q", listed, id)
		}
	}
	d := newDeciding(t)
	d.client = saying(t, "exit 1")
	if id := d.accepted(t.Context(), d.a); id != "" {
		t.Errorf("from a controller that is away: %q", id)
	}
}

func TestWhatSbatchIsTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		about  about
		prefix []string
		want   string
		not    string
	}{
		"nothing is asked for":      {about: about{}, want: "--cpus-per-task=1 --mem=128M", not: "--time"},
		"part of a processor":       {about: about{VCPU: 1.25, Memory: 1 << 30}, want: "--cpus-per-task=2 --mem=1088M"},
		"a second counts a minute":  {about: about{Limit: time.Second}, want: "--time=3"},
		"whole minutes":             {about: about{Limit: time.Minute}, want: "--time=3", not: "--gres"},
		"GPUs":                      {about: about{GPU: 2}, want: "--gres=gpu:2"},
		"a folder that we share":    {want: "--export-file=", not: "NIL"},
		"a login node has its own":  {prefix: []string{"ssh", "login"}, want: "--export=NIL", not: "--export-file"},
		"it is never started again": {want: "--no-requeue"},
	} {
		d := newDeciding(t)
		tt.about.Key, d.config.Prefix = d.a.about.Key, tt.prefix
		d.a.about = tt.about
		told := strings.Join(d.options(d.a), " ")
		if !strings.Contains(told, tt.want) || tt.not != "" && strings.Contains(told, tt.not) || !strings.Contains(told, "--job-name="+d.a.name+" --comment="+d.a.about.Key.Folder()) {
			t.Errorf("%s: %s", name, told)
		}
	}
	d := newDeciding(t)
	d.config.Partition, d.config.Options, d.shim = "cpu", []string{"--reservation=course"}, shim.Small("/shim")
	want := "#!/bin/sh\n#SBATCH --partition=cpu\n#SBATCH --reservation=course\nexec '/shim' '-run' '" + string(d.a.folder) + "'\n"
	if got := d.script(d.a); got != want {
		t.Errorf("%s", got)
	}
}

// Whoever can read the shared folder finds no secret in it.
func TestSecretsAreSealedInAJob(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse"
	d := newDeciding(t)
	s := d.spec(t, "n")
	s.Interpreter, s.Command, s.GPU, s.Secrets = "python3", "print(1)", 1, []string{secret}
	s.Env = map[string]string{"TOKEN": secret, "URL": "https://u:" + secret + "@host", "PLAIN": "x", "TMPDIR": "/scratch"}
	j, err := d.jobOf(s)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(j)
	if err != nil || strings.Contains(string(text), secret) {
		t.Errorf("the job is %s, %v", text, err)
	}
	var sealed job.Secrets
	if err := d.sealer.open(s.Fence, j.Sealed, &sealed); err != nil {
		t.Fatal(err)
	}
	slices.Sort(sealed.Env)
	if strings.Join(sealed.Env, " ") != "TOKEN="+secret+" URL=https://u:"+secret+"@host" || strings.Join(sealed.Values, " ") != secret {
		t.Errorf("sealed: %+v", sealed)
	}
	if err := d.sealer.open("another fence", j.Sealed, &sealed); err == nil {
		t.Error("it opens under another fence")
	}
	script := filepath.Join(s.Dir, shim.TempFolder, ".millrace-command")
	if got, err := os.ReadFile(script); err != nil || string(got) != "print(1)" || strings.Join(j.Launch.Argv, " ") != "python3 "+script {
		t.Errorf("%q runs %q, %v", j.Launch.Argv, got, err)
	}
	for _, variable := range []string{"HOME=" + filepath.Join(s.Dir, shim.TempFolder), "TMPDIR=/scratch", "PLAIN=x"} {
		if !slices.Contains(j.Launch.Env, variable) {
			t.Errorf("%s is not in %q", variable, j.Launch.Env)
		}
	}
	if !slices.Contains(j.Inherit, "CUDA_VISIBLE_DEVICES") {
		t.Errorf("its GPUs are hidden from it: %q", j.Inherit)
	}
}

// The first key that asks for secrets gets them, and no other: the file that asks is
// where the command can write.
func TestSecretsAreHandedOutOnce(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	secrets := job.Secrets{Env: []string{"A=correct-horse"}, Values: []string{"correct-horse"}}
	var err error
	if d.a.sealed, err = d.sealer.seal("f", secrets); err != nil {
		t.Fatal(err)
	}
	keys := publicKeys(t, 2)
	d.hear(t.Context(), d.a, job.State{Fence: "f", Key: []byte("no key")})
	if len(d.a.control.Secrets) != 0 {
		t.Error("they are sealed for nobody")
	}
	d.hear(t.Context(), d.a, job.State{Fence: "f", Key: keys[0]})
	first, err := d.a.folder.Control()
	if err != nil || len(first.Secrets) == 0 || d.a.phase != executor.Pending {
		t.Fatalf("%+v, %v; it is %s", first, err, d.a.phase)
	}
	d.hear(t.Context(), d.a, job.State{Fence: "f", Key: keys[1]})
	if again, err := d.a.folder.Control(); err != nil || string(again.Secrets) != string(first.Secrets) {
		t.Errorf("a second key has its answer, %v", err)
	}
}

func TestWhatIsNotSubmitted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*deciding, *executor.Spec)
		kind   fault.Kind
		says   string
	}{
		"another folder":         {func(_ *deciding, s *executor.Spec) { s.Dir += "x" }, fault.KindInvalid, "the folder of an attempt must be"},
		"odd characters":         {func(d *deciding, s *executor.Spec) { s.Key.Node = "a b"; s.Dir = d.dir(s.Key.Folder()) }, fault.KindInvalid, "characters"},
		"a quote":                {func(d *deciding, s *executor.Spec) { s.Key.Node = "a'b"; s.Dir = d.dir(s.Key.Folder()) }, fault.KindInvalid, "characters"},
		"no interpreter":         {func(_ *deciding, s *executor.Spec) { s.Interpreter = "" }, fault.KindInvalid, "interpreter"},
		"no fence":               {func(_ *deciding, s *executor.Spec) { s.Fence = "" }, fault.KindInvalid, "fence"},
		"an image":               {func(_ *deciding, s *executor.Spec) { s.Root = "/images/a" }, fault.KindUnavailable, "{root}"},
		"a hidden environment":   {func(d *deciding, s *executor.Spec) { d.config.Container = []string{"box"}; s.Environment = "/e" }, fault.KindUnavailable, "{environment}"},
		"more GPUs than are":     {func(d *deciding, s *executor.Spec) { d.caps = executor.Capabilities{Ready: true, GPU: 1}; s.GPU = 2 }, fault.KindConflict, "the cluster has 1"},
		"a NUL":                  {func(_ *deciding, s *executor.Spec) { s.Command = "a\x00" }, fault.KindInvalid, "NUL"},
		"at the end of a server": {func(d *deciding, _ *executor.Spec) { d.closed = true }, fault.KindUnavailable, "shutting down"},
		"under another fence":    {func(d *deciding, s *executor.Spec) { s.Key, s.Dir = d.a.about.Key, string(d.a.folder) }, fault.KindConflict, "another fence"},
	} {
		d := newDeciding(t)
		s := d.spec(t, "n")
		tt.change(d, &s)
		if _, err := d.Submit(t.Context(), executor.NoRun, s); !fault.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
		if len(d.waiting) != 0 {
			t.Errorf("%s: it is submitted", name)
		}
	}
	d := newDeciding(t)
	s := d.spec(t, "n")
	first, err := d.Submit(t.Context(), executor.NoRun, s)
	again, errAgain := d.Submit(t.Context(), executor.NoRun, s)
	if err := errors.Join(err, errAgain); err != nil || first != again || len(d.waiting) != 1 {
		t.Errorf("%+v and %+v, %v: %d are submitted", first, again, err, len(d.waiting))
	}
}
