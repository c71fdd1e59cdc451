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
