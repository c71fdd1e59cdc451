package job

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// The test program is the job's, too.
func TestMain(m *testing.M) {
	if IsCall(os.Args) {
		os.Exit(Run(os.Args))
	}
	os.Exit(m.Run())
}

// pry tries to read the memory and the environment of every process of the job that
// is not the command's own.
const pry = `for p in /proc/[0-9]*; do
	case "$(tr '\0' ' ' 2>/dev/null < $p/cmdline)" in
	*"-run $1 ") echo found
		for file in environ maps mem auxv; do if head -c 1 $p/$file >/dev/null 2>&1; then echo "can read $file"; fi; done
		ls $p/fd >/dev/null 2>&1 && echo "can list descriptors" ;;
	esac
done; exit 0`

// A command runs as the same user as the job beside it, which has its secrets in its
// memory.
func TestACommandCannotReadItsJob(t *testing.T) {
	t.Parallel()
	dir, self := plainFolder(t)
	f := Folder(filepath.Join(dir, "attempt"))
	if err := os.MkdirAll(filepath.Join(string(f), shim.WorkFolder), 0o777); err != nil {
		t.Fatal(err)
	}
	j := Job{Launch: shim.Launch{
		ID: "run_1.a.0.1", Fence: "fence", Folder: string(f), Dir: filepath.Join(string(f), shim.WorkFolder),
		Argv: []string{"sh", "-c", pry, "sh", string(f)}, Env: []string{"PATH=/usr/bin:/bin"},
	}}
	if err := f.Create(j, Control{}); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, append(shim.Self(self)[1:], runFlag, string(f))...)
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plainUser, Gid: plainUser}}
		if out, err := exec.Command("chown", "-R", "65534:65534", string(f)).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	log, err := os.ReadFile(shim.Folder(f).Log())
	if err != nil || string(log) != "found\n" {
		t.Errorf("the command says %q, %v", log, err)
	}
}

const plainUser = 65534

// plainFolder is one that a plain user reaches, with a copy of this program in it.
func plainFolder(t *testing.T) (dir, self string) {
	t.Helper()
	dir = t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	self = filepath.Join(dir, "program")
	// Not by ourselves: what is open for writing anywhere cannot be started.
	if out, err := exec.Command("cp", program, self).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return dir, self
}
