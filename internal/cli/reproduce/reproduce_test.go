package reproduce_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/reproduce"
)

// tinyImage is an image with a shell, cat and what they are linked to, taken
// from this machine; no registry is asked.
const tinyImage = `set -euo pipefail
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
for program in bash cat; do
  file=$(command -v "$program")
  mkdir -p "$root/bin" && cp -L "$file" "$root/bin/$program"
  ldd "$file" | grep -oE '/[^ )]+' | while read -r library; do
    mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"
  done
done
ln -s bash "$root/bin/sh"
tar -C "$root" -c . | podman import - "$1"
podman run --rm --network none "$1" /bin/sh -c true`

// What run.sh does with a container tool, where one works.
func TestAStepWithAnImageIsDoneAgainByPodman(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("podman"); err != nil {
		t.Skip("there is no podman")
	}
	image := "localhost/millrace-reproduce:" + strings.ToLower(t.Name())
	if out, err := exec.Command("bash", "-c", tinyImage, "bash", image).CombinedOutput(); err != nil {
		t.Skipf("podman does not work here: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("podman", "rmi", "--force", image).Run() })
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "in", "a", "0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "in", "a", "0", "a.txt"), []byte("given\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := reproduce.Write(folder, reproduce.Step{Run: "run_1", Node: "n", Recipe: api.Recipe{
		Image: &image, Interpreter: "sh", Folder: "/elsewhere", Command: `cat "$INPUT_a"; echo "$PARAM_x" > out.txt; exit 3`,
		Env: map[string]string{"INPUT_a": "/elsewhere/in/a/0/a.txt", "PARAM_x": "it's $HOME"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(filepath.Join(folder, "run.sh"))
	out, err := run.CombinedOutput()
	if run.ProcessState.ExitCode() != 3 || string(out) != "given\n" {
		t.Errorf("%v %s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "work", "out.txt")); string(text) != "it's $HOME\n" {
		t.Errorf("%q %v", text, err)
	}
}

// programs puts shell scripts of these names into a folder, which is the only one of a PATH
// beside those of the system's own programs.
func programs(t *testing.T, scripts map[string]string) (path string) {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"bash", "sh", "env", "cat", "rm", "mkdir", "dirname", "tail", "cp", "uname"} {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// A program that is installed and cannot run the image gives way to the next one.
func TestAStepIsDoneAgainByAContainerProgramThatWorks(t *testing.T) {
	t.Parallel()
	const broken, works = `echo "cannot connect to the daemon" >&2; exit 125`, `case "$*" in *" -c :") exit 0 ;; esac; echo "${0##*/} runs $1"`
	for name, tt := range map[string]struct {
		scripts map[string]string
		how     []string
		want    string
		status  int
	}{
		"the first":        {map[string]string{"podman": works, "docker": works}, nil, "podman runs run", 0},
		"the second":       {map[string]string{"podman": broken, "docker": works}, nil, "docker runs run", 0},
		"the third":        {map[string]string{"podman": broken, "docker": broken, "apptainer": works}, nil, "apptainer runs exec", 0},
		"none of them":     {map[string]string{"podman": broken, "docker": broken}, nil, "none of podman docker can run the image", 2},
		"the one named":    {map[string]string{"podman": works, "docker": works}, []string{"docker"}, "docker runs run", 0},
		"none and no need": {map[string]string{"podman": broken}, []string{"plain"}, "plainly", 0},
		"none is there":    {nil, nil, "plainly", 0},
	} {
		folder := t.TempDir()
		image := "lab/tool:1"
		step := reproduce.Step{Run: "run_1", Node: "n", Recipe: api.Recipe{Image: &image, Interpreter: "sh", Folder: "/elsewhere", Command: "echo plainly"}}
		if err := reproduce.Write(folder, step); err != nil {
			t.Fatal(err)
		}
		run := exec.Command(filepath.Join(folder, "run.sh"), tt.how...)
		run.Env = []string{"HOME=" + folder, "PATH=" + programs(t, tt.scripts)}
		out, _ := run.CombinedOutput()
		if !strings.Contains(string(out), tt.want) || run.ProcessState.ExitCode() != tt.status {
			t.Errorf("%s: status %d: %s", name, run.ProcessState.ExitCode(), out)
		}
		if strings.Contains(name, "second") && !strings.Contains(string(out), "podman cannot run the image lab/tool:1: cannot connect to the daemon") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// A pipeline is done again by the engine of the machine, without what Millrace adds to
// follow it.
func TestAPipelineIsDoneAgainByTheEngineOfTheMachine(t *testing.T) {
	t.Parallel()
	const says = `echo "${0##*/}" "$@"`
	for engine, tt := range map[api.PipelineEngine]struct{ command, want string }{
		"nextflow":  {"$NEXTFLOW_PROGRAM run main.nf -params-file \"$PARAMS_FILE\"", "nextflow run main.nf -params-file /in/.parameters.json"},
		"snakemake": {"$SNAKEMAKE_PROGRAM --cores $VCPU --logger millrace --logger-millrace-events-file \"$EVENTS_FILE\" --keep-going", "snakemake --cores 8 --keep-going"},
	} {
		folder := t.TempDir()
		err := reproduce.Write(folder, reproduce.Step{Run: "run_1", Node: "pipeline", Recipe: api.Recipe{
			Engine: &engine, Interpreter: "bash", Folder: "/elsewhere", Command: tt.command,
			Env: map[string]string{strings.ToUpper(string(engine)) + "_PROGRAM": string(engine), "VCPU": "8", "EVENTS_FILE": "/elsewhere/tmp/events", "PARAMS_FILE": "/elsewhere/in/.parameters.json"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, installed := range []bool{true, false} {
			scripts, want, status := map[string]string{string(engine): says}, strings.ReplaceAll(tt.want, "/in/", folder+"/in/"), 0
			if !installed {
				scripts, want, status = nil, "install it, so that "+string(engine)+" is in your PATH", 2
			}
			run := exec.Command(filepath.Join(folder, "run.sh"))
			run.Env = []string{"HOME=" + folder, "PATH=" + programs(t, scripts)}
			out, _ := run.CombinedOutput()
			if !strings.Contains(string(out), want) || run.ProcessState.ExitCode() != status {
				t.Errorf("%s, installed %v: status %d: %s", engine, installed, run.ProcessState.ExitCode(), out)
			}
		}
	}
}

// Each line of a lock becomes a path and an address, whatever the server says.
func TestALockOfCondaPackagesHasNothingElse(t *testing.T) {
	t.Parallel()
	hash := " --hash=sha256:" + strings.Repeat("0", 64)
	for _, lock := range []string{
		"", "own/noarch/a-1-0.conda" + hash, "# conda linux-64'; touch x'\n", "# conda linux-64\n../../a-1-0.conda" + hash, "# conda linux-64\nown/noarch/..%2fa" + hash,
		"# conda linux-64\n-o/noarch/a-1-0.conda" + hash, "# conda linux-64\nown/noarch/a-1-0.conda", "# conda linux-64\nown/noarch/a b.conda" + hash, "# conda linux-64\nhttps://evil.example/a-1-0.conda" + hash,
		"# conda linux-64\nown/noarch/../a" + hash,
	} {
		folder := t.TempDir()
		err := reproduce.Write(folder, reproduce.Step{Run: "run_1", Node: "n", Recipe: api.Recipe{Interpreter: "sh"}, Software: &reproduce.Software{Lock: lock}})
		if _, there := os.Stat(filepath.Join(folder, "run.sh")); err == nil || there == nil {
			t.Errorf("%q is taken: %v", lock, err)
		}
	}
}

// A folder of somebody's own loses nothing to a step, and a step is written whole or not.
func TestWhatIsInTheWayOfAStepIsNotReplaced(t *testing.T) {
	t.Parallel()
	lists := map[string]string{"in/reads.list": "/elsewhere/in/a\n/elsewhere/in/b\n"}
	step := reproduce.Step{Run: "run_1", Node: "n", Recipe: api.Recipe{Interpreter: "sh", Folder: "/elsewhere", Command: "true", Lists: lists}}
	for name, tt := range map[string]struct {
		there string // a file of somebody's own
		force bool
		fails string
	}{
		"nothing":              {"", false, ""},
		"a script":             {"run.sh", false, "run.sh already exists and differs: replace it with --force, or choose another folder with --to"},
		"the last to write":    {"start.sh", false, "start.sh already exists and differs"},
		"a list":               {"in/reads.list", false, "in/reads.list already exists and differs"},
		"a script, by force":   {"run.sh", true, ""},
		"what is not in a way": {"other.sh", false, ""},
	} {
		folder := t.TempDir()
		if tt.there != "" {
			if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(tt.there)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, tt.there), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		step.Force = tt.force
		for range 2 { // the same is in nobody's way
			err := reproduce.Write(folder, step)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := os.Stat(filepath.Join(folder, "command")); (err == nil) != (tt.fails == "") {
			t.Errorf("%s: half of it is there: %v", name, err)
		}
		if tt.fails != "" || tt.there == "other.sh" {
			if text, err := os.ReadFile(filepath.Join(folder, tt.there)); err != nil || string(text) != "mine" {
				t.Errorf("%s: it is %q now, %v", name, text, err)
			}
			continue
		}
		if text, err := os.ReadFile(filepath.Join(folder, "in", "reads.list")); err != nil || string(text) != folder+"/in/a\n"+folder+"/in/b\n" {
			t.Errorf("%s: the list is %q, %v", name, text, err)
		}
		if info, err := os.Stat(filepath.Join(folder, "run.sh")); err != nil || info.Mode() != 0o755 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// Names of lists come from the server, and links may lie in the folder.
func TestAStepStaysInItsFolder(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	mine := filepath.Join(outside, "mine")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../evil", "/evil", "link/evil", "link/mine", "a/../../evil"} {
		folder := filepath.Join(outside, "to")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Symlink(outside, filepath.Join(folder, "link"))
		step := reproduce.Step{Run: "run_1", Node: "n", Force: true, Recipe: api.Recipe{Interpreter: "sh", Folder: "/x", Lists: map[string]string{name: "theirs"}}}
		if err := reproduce.Write(folder, step); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	entries, err := os.ReadDir(outside)
	if text, readErr := os.ReadFile(mine); err != nil || readErr != nil || len(entries) != 2 || string(text) != "mine" {
		t.Errorf("outside there are %v, %q, %v", entries, text, errors.Join(err, readErr))
	}
}
