package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// plainUser is a user without any rights.
const plainUser = 65534

// diskAttack is a run whose items take the server's disk, and how much of it they
// leave.
type diskAttack struct {
	items   int
	command string
	leaves  int64 // bytes, or files, at most
	files   bool  // it takes the files that the disk may have, not its bytes
}

// free is how much the disk has left of what the attack takes.
func (a diskAttack) free(t *testing.T, folder string) int64 {
	t.Helper()
	bytes, files := freeSpace(t, folder)
	if a.files {
		return files
	}
	return bytes
}

// A run fills the server's disk, again and again: by sixteen items that reserve
// space, write as fast as they can, or create files, and by one that stops where the disk is low,
// to keep it so. The run ends, other teams can write, upload and start runs
// again within ten seconds, the run can be cancelled, and a server that is killed in
// the middle starts again.
func TestARunCannotFillTheDiskForOthers(t *testing.T) {
	if !long() {
		t.Skip("fills file systems of gigabytes: make chaos")
	}
	const gb = 1 << 30
	for _, size := range []struct {
		name        string
		bytes, left int64
	}{{"3 GB", 3 * gb, 3 * gb}, {"200 GB", 200 * gb, 12 * gb}} {
		leaves := size.bytes / 20 * 6 / 10
		for _, user := range []int{0, plainUser} {
			for name, attack := range map[string]diskAttack{
				"reserving": {items: 16, command: `i=0; while :; do fallocate -x -l 50M f$i; i=$((i+1)); done`, leaves: 1 << 20},
				"writing":   {items: 16, command: `i=0; while :; do head -c 50000000 /dev/zero > f$i; i=$((i+1)); done`, leaves: 1 << 20},
				"creating":  {items: 4, command: `i=0; while :; do true > f$i; i=$((i+1)); done`, leaves: 100, files: true},
				"pausing":   {items: 1, command: fmt.Sprintf(`head -c $(($(df -P -B1 . | awk 'NR==2 {print $4}') - %d)) /dev/zero > f; sleep 1000000`, leaves), leaves: leaves + 16<<20},
			} {
				if attack.files && size.bytes > size.left {
					continue // in which a disk has room for more files than tasks create in minutes
				}
				t.Run(fmt.Sprintf("%s by %s as user %d", size.name, name, user), func(t *testing.T) {
					attackDisk(t, loopDisk(t, size.bytes, size.left, user), user, attack)
				})
			}
		}
	}
}

// loopDisk is an empty folder for a user on a file system of its own, with so
// many bytes left.
func loopDisk(t *testing.T, size, left int64, user int) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a file system of its own needs root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("this machine has no loop devices")
	}
	under, err := os.MkdirTemp(os.Getenv("MILLRACE_TEST_DISK"), "millrace-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(under) })
	image, folder := filepath.Join(under, "image"), filepath.Join(under, "mount")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, size); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"chmod", "755", under},
		{"mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", image},
		{"mkdir", folder},
		{"mount", "-o", "loop", image, folder},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", command, err, out)
		}
	}
	data := filepath.Join(folder, "data")
	t.Cleanup(func() {
		killShim(data)
		await(t, "the end of the file system", func() bool { return syscall.Unmount(folder, 0) == nil })
	})
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, user, user); err != nil {
		t.Fatal(err)
	}
	if taken := freeBytes(t, folder) - left; taken > 0 {
		f, err := os.Create(filepath.Join(folder, "taken"))
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Fallocate(int(f.Fd()), 0, 0, taken); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return data
}

// killShim ends the tasks of a server that was killed.
func killShim(data string) {
	folders, _ := filepath.Glob(filepath.Join(data, "attempts", "*"))
	for _, folder := range folders {
		if h, lives, err := job.Folder(folder).Holder(); err == nil && lives {
			_ = h.Kill()
		}
	}
}

func freeSpace(t *testing.T, folder string) (bytes, files int64) {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Ffree)
}

func freeBytes(t *testing.T, folder string) int64 {
	t.Helper()
	bytes, _ := freeSpace(t, folder)
	return bytes
}

// startAs runs a server as another user.
func startAs(t *testing.T, user int, args ...string) *server {
	t.Helper()
	cmd := millrace(t, append([]string{"serve", "--capacity", "vcpu=64,ramGb=256", "--runs-per-minute", "1000"}, args...)...)
	if user != 0 {
		cmd.Path = readableCopy(t, cmd.Path)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	}
	s := launch(t, cmd)
	t.Cleanup(func() {
		for line := range strings.Lines(s.log.String()) {
			if t.Failed() && strings.Contains(line, "disk") {
				t.Log(strings.TrimSpace(line))
			}
		}
	})
	return s
}

// readableCopy is a program that every user can start.
func readableCopy(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "millrace-program-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	from, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, "millrace"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return to.Name()
}

// outage is how long nobody could do something.
type outage struct {
	what   string
	mu     sync.Mutex
	failed time.Time // since when every request fails; zero: the last one was fine
	worst  time.Duration
	asked  int
	last   string
}

func (o *outage) note(ok bool, answer string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	if ok {
		o.failed = time.Time{}
		return
	}
	o.last = answer
	if o.failed.IsZero() {
		o.failed = time.Now()
	}
	o.worst = max(o.worst, time.Since(o.failed))
}

// forgive has what a dead server refused count for nothing.
func (o *outage) forgive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = time.Time{}
}

// check reports what others had to bear, and begins anew.
func (o *outage) check(t *testing.T, when string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	t.Logf("%s: of %d times that another team tried to %s none succeeded for %s at most; the last that failed: %s", when, o.asked, o.what, o.worst.Round(time.Millisecond), o.last)
	if o.worst > 10*time.Second {
		t.Errorf("%s: other teams could not %s for %s", when, o.what, o.worst)
	}
	o.failed, o.worst, o.asked, o.last = time.Time{}, 0, 0, ""
}

// request sends a request to a server that may die meanwhile.
func request(ctx context.Context, method, url, cookie, body string) (status int, answer string) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Cookie", cookie)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// trying does something again and again as a team until the test ends. A request
// that gets no answer has failed. The address is that of the server at the time.
func trying(t *testing.T, what string, pause time.Duration, base func() string, try func(ctx context.Context, base string) (ok bool, answer string)) *outage {
	t.Helper()
	o := &outage{what: what}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			ok, answer := try(ctx, base())
			if ctx.Err() == nil {
				o.note(ok, answer)
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return o
}

// others is what another team tries all the time.
type others []*outage

// otherTeam writes, uploads and starts runs of a workflow.
func otherTeam(t *testing.T, base func() string, cookie, workflow string) others {
	post := func(path, body string, want int) func(context.Context, string) (bool, string) {
		return func(ctx context.Context, base string) (bool, string) {
			status, answer := request(ctx, "POST", base+path, cookie, body)
			return status == want, fmt.Sprint(status, " ", answer)
		}
	}
	upload := func(ctx context.Context, base string) (bool, string) {
		status, answer := request(ctx, "POST", base+"/api/files/presign", cookie, `{"filename":"a.json","contentType":"application/json","size":5}`)
		var signed struct{ Data struct{ URL string } }
		if status != 200 || json.Unmarshal([]byte(answer), &signed) != nil {
			return false, fmt.Sprint(status, " ", answer)
		}
		status, answer = request(ctx, "PUT", signed.Data.URL, "", "hello")
		return status == 200, fmt.Sprint(status, " ", answer)
	}
	return others{
		trying(t, "write", 20*time.Millisecond, base, post("/api/workflows", `{"name":"w"}`, 201)),
		trying(t, "upload", 50*time.Millisecond, base, upload),
		trying(t, "start a run", time.Second, base, post("/api/runs", fmt.Sprintf(`{"workflowId":%q}`, workflow), 202)),
	}
}

func (all others) check(t *testing.T, when string) {
	t.Helper()
	for _, o := range all {
		o.check(t, when)
	}
}

func (all others) forgive() {
	for _, o := range all {
		o.forgive()
	}
}

func attackDisk(t *testing.T, data string, user int, a diskAttack) {
	var mu sync.Mutex
	s := startAs(t, user, "--data", data, "--listen", "127.0.0.1:0")
	address := strings.TrimPrefix(s.base, "http://")
	current := func() *server { mu.Lock(); defer mu.Unlock(); return s }
	_, ada, _ := s.signUp("ada")
	_, eve, _ := s.signUp("eve")
	trivial := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"n","command":"echo fine"}]}}`, "Cookie", ada)["id"].(string)
	others := otherTeam(t, func() string { return current().base }, ada, trivial)
	definition, err := json.Marshal(map[string]any{"nodes": []any{map[string]any{
		"id": "n", "command": a.command, "scatter": map[string]any{"over": "[" + strings.Repeat("1,", a.items-1) + "1]"}, "resources": map[string]any{"vcpu": 0.25, "ramGb": 0.5},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":%s}`, definition), "Cookie", eve)["id"].(string)
	empty := a.free(t, data)
	start := func(cookie, body string) (id string) {
		await(t, "the start of a run", func() bool {
			status, answer, _ := current().call("POST", "/api/runs", body, "Cookie", cookie)
			id, _ = answer["runId"].(string)
			return status == 202 // after 503 for some seconds
		})
		return id
	}
	attack := func() string {
		await(t, "space on the disk", func() bool { return a.free(t, data) > empty*95/100 })
		return start(eve, fmt.Sprintf(`{"workflowId":%q,"compute":{"vcpu":4,"ramGb":16}}`, w))
	}
	statusOf := func(id string) map[string]any {
		_, r, _ := current().call("GET", "/api/runs/"+id, "", "Cookie", eve)
		return r
	}
	ended := func(id string) map[string]any {
		await(t, "the end of the attack", func() bool { s := statusOf(id)["status"]; return s != "queued" && s != "running" })
		return statusOf(id)
	}

	if r := ended(attack()); r["status"] != "failed" || r["errorCode"] != "disk_full" {
		t.Errorf("the attack is %v, %v: %v", r["status"], r["errorCode"], r["errorMessage"])
	}
	others.check(t, "an attack")

	id := attack()
	await(t, "a disk that fills up", func() bool { return a.free(t, data) < empty*9/10 })
	began := time.Now()
	await(t, "an answer to cancel", func() bool {
		status, _, _ := current().call("POST", "/api/runs/"+id+"/cancel", "", "Cookie", eve)
		return status == 200
	})
	t.Logf("cancel was accepted after %s", time.Since(began).Round(time.Millisecond))
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("cancel took %s", took)
	}
	if r := ended(id); r["status"] != "cancelled" && r["errorCode"] != "disk_full" {
		t.Errorf("the cancelled attack is %v, %v: %v", r["status"], r["errorCode"], r["errorMessage"])
	}
	others.check(t, "a cancelled attack")

	id = attack()
	await(t, "a disk that fills up", func() bool { return a.free(t, data) < empty*9/10 })
	mu.Lock()
	s.kill()
	await(t, "tasks that fill the disk without a server", func() bool { return a.free(t, data) < a.leaves })
	s = startAs(t, user, "--data", data, "--listen", address)
	others.forgive()
	mu.Unlock()
	if r := ended(id); r["errorCode"] != "disk_full" {
		t.Errorf("the attack that outlived its server is %v, %v: %v", r["status"], r["errorCode"], r["errorMessage"])
	}
	others.check(t, "an attack with a restart")
	if r := current().endedFor(ada, start(ada, fmt.Sprintf(`{"workflowId":%q}`, trivial))); r["status"] != "completed" {
		t.Errorf("a run after it is %v: %v", r["status"], r["errorMessage"])
	}
}
