package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/waittest"
)

// smallDisk is an empty data folder on a file system of 400 MB.
func smallDisk(t *testing.T) string {
	t.Helper()
	data := t.TempDir()
	mountSmall(t, data)
	t.Cleanup(func() { killShim(data) })
	return data
}

// mountSmall mounts a file system of 400 MB until the test ends.
func mountSmall(t *testing.T, folder string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a file system of its own needs root")
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=400m,mode=700"); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
}

// Tasks on a file system of their own take no space from the server, and are
// ended when they fill theirs.
func TestTasksFillTheirOwnFileSystem(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	attempts := filepath.Join(data, "attempts")
	found := filepath.Join(attempts, "lost+found")
	if err := os.Mkdir(attempts, 0o700); err != nil {
		t.Fatal(err)
	}
	mountSmall(t, attempts)
	if err := os.Mkdir(found, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killShim(data) })
	s := start(t, "--data", data, "--min-free-disk", "100MB")
	token, cookie, _ := s.signUp("ada")
	bad := s.runOf(cookie, `i=0; while :; do head -c 4000000 /dev/zero > f$i || true; i=$((i+1)); done`)
	await(t, "the end of the run that fills the disk", func() bool {
		s.want(200, "GET", "/api/health/ready", "")
		return s.want(200, "GET", "/api/runs/"+bad, "", "Cookie", cookie)["status"] == "failed"
	})
	if r := s.want(200, "GET", "/api/runs/"+bad, "", "Cookie", cookie); r["errorCode"] != "disk_full" {
		t.Errorf("it is %v: %v", r["errorCode"], r["errorMessage"])
	}
	url, key := s.presign(token, "a.txt", 5)
	if got := put(t, url, strings.NewReader("hello"), 5); got != 200 {
		t.Fatal(got)
	}
	w := s.workflow(token, `{"inputs":{"x":{"type":"file"}},"nodes":[{"id":"n","command":"[ $(cat $INPUT_in) = hello ]","inputs":{"in":{"from":"inputs.x"}}}]}`)
	id := s.beginRun(cookie, fmt.Sprintf(`{"workflowId":%q,"inputs":{"x":%q}}`, w, key))
	if r := s.endedFor(cookie, id); r["status"] != "completed" {
		t.Errorf("a run with an input is %v: %v", r["status"], r["errorMessage"])
	}
	if _, err := os.Stat(found); err != nil {
		t.Error(err)
	}
}

// fill takes all that a file system has, also what is given up meanwhile, until
// free is called.
func fill(t *testing.T, data string) (free func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(data, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	full, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for block, told := make([]byte, 4096), false; ctx.Err() == nil; {
			if _, err := f.Write(block); err == nil {
				continue
			}
			if !told {
				told = true
				close(full)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
		}
	}()
	<-full
	free = sync.OnceFunc(func() {
		cancel()
		<-done
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(free)
	return free
}

// A server that finds its disk full says what to do, and starts when there is
// space. The doctor says the same.
func TestServerStartsWhenAFullDiskHasSpace(t *testing.T) {
	t.Parallel()
	data := smallDisk(t)
	s := start(t, "--data", data)
	_, cookie, _ := s.signUp("ada")
	s.kill()
	if err := os.Remove(filepath.Join(data, "reserve")); err != nil {
		t.Fatal(err)
	}
	free := fill(t, data)
	cmd := millrace(t, "serve", "--listen", "127.0.0.1:0", "--data", data)
	told := &lockedBuffer{}
	cmd.Stderr = told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !waittest.Until(func() bool {
		return strings.Contains(told.String(), "the disk is full: the server starts when there is space")
	}) {
		t.Fatalf("it says %s", told)
	}
	if out, _ := millrace(t, "admin", "doctor", "--data", data).CombinedOutput(); !strings.Contains(string(out), "the server does not start before there are") {
		t.Errorf("the doctor says %s", out)
	}
	if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err == nil {
		t.Error("a server that never started ends well")
	}
	if err := os.Remove(filepath.Join(data, "reserve")); err == nil {
		t.Error("a reserve is taken of nothing")
	}
	free()
	start(t, "--data", data).want(200, "GET", "/api/workflows", "", "Cookie", cookie)
}

// A server that finds no inodes left on its disk starts when there are some.
func TestServerStartsWhenThereIsRoomForFiles(t *testing.T) {
	t.Parallel()
	data := smallDisk(t)
	s := start(t, "--data", data)
	_, cookie, _ := s.signUp("ada")
	s.kill()
	if err := os.RemoveAll(filepath.Join(data, ".reserve")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", data, "", syscall.MS_REMOUNT, "nr_inodes=1000"); err != nil {
		t.Skip("the number of files cannot be limited here: ", err)
	}
	for file := range 1000 {
		if f, err := os.Create(filepath.Join(data, fmt.Sprint("filler", file))); err == nil {
			f.Close()
		}
	}
	cmd := millrace(t, "serve", "--listen", "127.0.0.1:0", "--data", data)
	told := &lockedBuffer{}
	cmd.Stderr = told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !waittest.Until(func() bool {
		return strings.Contains(told.String(), "the disk is full: the server starts when there is space")
	}) {
		t.Errorf("it says %s", told)
	}
	if out, _ := millrace(t, "admin", "doctor", "--data", data).CombinedOutput(); !strings.Contains(string(out), "the server does not start before there is room for") {
		t.Errorf("the doctor says %s", out)
	}
	if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err == nil {
		t.Error("a server that never started ends well")
	}
	for file := range 1000 {
		_ = os.Remove(filepath.Join(data, fmt.Sprint("filler", file)))
	}
	start(t, "--data", data).want(200, "GET", "/api/workflows", "", "Cookie", cookie)
}

// Tasks fill the disk while their server is dead. The next one starts all the
// same, the run ends for it, and the other team's run completes.
func TestServerStartsOnADiskThatItsTasksFilled(t *testing.T) {
	t.Parallel()
	data := smallDisk(t)
	args := []string{"--data", data, "--min-free-disk", "100MB"}
	s := start(t, args...)
	args = append(args, "--public-urls", s.base)
	_, ada, _ := s.signUp("ada")
	_, eve, _ := s.signUp("eve")
	good := s.runOf(ada, `touch up; while [ ! -e done ]; do sleep 0.01; done; echo fine > o`)
	bad := s.runOf(eve, `touch up; while [ ! -e go ]; do sleep 0.01; done; i=0; while :; do head -c 4000000 /dev/zero > f$i || true; i=$((i+1)); done`)
	work := func(id string) (folder string) {
		await(t, "a task", func() bool {
			folder = filepath.Join(data, "attempts", id+".n.0.1", "work")
			_, err := os.Stat(filepath.Join(folder, "up"))
			return err == nil
		})
		return folder
	}
	open := func(file string) {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goodWork, badWork := work(good), work(bad)
	s.kill()
	open(filepath.Join(badWork, "go"))
	await(t, "a full disk", func() bool { return freeBytes(t, data) < 1<<20 })
	s = start(t, args...)
	if r := s.endedFor(eve, bad); r["errorCode"] != "disk_full" {
		t.Errorf("the run that filled the disk is %v, %v: %v", r["status"], r["errorCode"], r["errorMessage"])
	}
	open(filepath.Join(goodWork, "done"))
	if r := s.endedFor(ada, good); r["status"] != "completed" {
		t.Errorf("the run beside it is %v: %v", r["status"], r["errorMessage"])
	}
}

// A server whose data disk is nearly full of what others wrote starts without
// ending tasks that have a file system of their own.
func TestServerSparesTasksOnTheirOwnFileSystem(t *testing.T) {
	t.Parallel()
	data := smallDisk(t)
	attempts := filepath.Join(data, "attempts")
	if err := os.Mkdir(attempts, 0o700); err != nil {
		t.Fatal(err)
	}
	mountSmall(t, attempts)
	t.Cleanup(func() { killShim(data) })
	args := []string{"--data", data, "--min-free-disk", "100MB"}
	s := start(t, args...)
	args = append(args, "--public-urls", s.base)
	_, cookie, _ := s.signUp("ada")
	id := s.runOf(cookie, `head -c 150000000 /dev/zero > large; touch up; while [ ! -e done ]; do sleep 0.01; done; rm large; echo fine > o`)
	work := filepath.Join(attempts, id+".n.0.1", "work")
	await(t, "a large task", func() bool { _, err := os.Stat(filepath.Join(work, "up")); return err == nil })
	s.kill()
	f, err := os.Create(filepath.Join(data, "foreign"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, freeBytes(t, data)-30<<20); err != nil {
		t.Fatal(err)
	}
	start(t, args...).kill()
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	s = start(t, args...)
	if err := os.WriteFile(filepath.Join(work, "done"), nil, 0o644); err != nil {
		t.Errorf("the task is gone: %v", err)
	}
	if r := s.endedFor(cookie, id); r["status"] != "completed" {
		t.Errorf("it is %v, %v: %v", r["status"], r["errorCode"], r["errorMessage"])
	}
}

// A run can be cancelled while nothing can be written: its tasks stop, and it is
// cancelled for good when there is space.
func TestCancelOnAFullDisk(t *testing.T) {
	t.Parallel()
	data := smallDisk(t)
	s := start(t, "--data", data)
	_, cookie, _ := s.signUp("ada")
	task := "sleep\x00" + strconv.Itoa(100_000_000+rand.IntN(100_000_000))
	id := s.runOf(cookie, strings.ReplaceAll(task, "\x00", " ")+"; true")
	await(t, "the task", func() bool { return alive(task) })
	free := fill(t, data)
	status, body, _ := s.call("POST", "/api/runs/"+id+"/cancel", "", "Cookie", cookie)
	if status != 200 && status != 503 {
		t.Errorf("cancel: %d %v", status, body)
	}
	await(t, "the end of the task", func() bool { return !alive(task) })
	free()
	if r := s.endedFor(cookie, id); r["status"] != "cancelled" {
		t.Errorf("it is %v: %v", r["status"], r["errorMessage"])
	}
}

// runOf starts a run of one command, whose output is the file o.
func (s *server) runOf(cookie, command string) string {
	s.t.Helper()
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[{"id":"n","command":%q,"outputs":{"o":{"path":"o","optional":true}}}]}}`, command), "Cookie", cookie)["id"].(string)
	return s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Cookie", cookie)["runId"].(string)
}

// A task fills the disk of a server: it ends with disk_full, another team's run
// beside it completes, and the server answers all the while.
func TestATaskThatFillsTheDiskHarmsOnlyItself(t *testing.T) {
	t.Parallel()
	data := smallDisk(t)
	s := start(t, "--data", data, "--min-free-disk", "100MB", "--capacity", "vcpu=8,ramGb=32")
	_, ada, _ := s.signUp("ada")
	_, eve, _ := s.signUp("eve")
	good := s.runOf(ada, "for i in $(seq 150); do echo $i >> o; sleep 0.1; done")
	bad := s.runOf(eve, "i=0; while :; do head -c 4000000 /dev/zero > f$i || true; i=$((i+1)); sleep 0.05; done")
	low := false
	await(t, "the end of the run that fills the disk", func() bool {
		r := s.want(200, "GET", "/api/runs/"+bad, "", "Cookie", eve)
		if status, _, _ := s.call("GET", "/api/health/ready", ""); status == 503 {
			low = true
			status, body, _ := s.call("POST", "/api/files/presign", `{"filename":"a.txt","contentType":"text/plain","size":5}`, "Cookie", ada)
			if status != 200 && (status != 503 || body["code"] != "disk_low") {
				t.Errorf("an upload gets %d %v", status, body)
			}
		}
		if r["status"] == "completed" || r["status"] == "interrupted" {
			t.Fatalf("the run is %v: %v", r["status"], r["errorMessage"])
		}
		return r["status"] == "failed"
	})
	r := s.want(200, "GET", "/api/runs/"+bad, "", "Cookie", eve)
	if r["errorCode"] != "disk_full" || !strings.Contains(r["errorMessage"].(string), "disk") {
		t.Errorf("it ended as %v: %v", r["errorCode"], r["errorMessage"])
	}
	if !low {
		t.Error("readiness never said that the disk was low")
	}
	if r := s.endedFor(ada, good); r["status"] != "completed" {
		t.Errorf("the run beside it is %v: %v", r["status"], r["errorMessage"])
	}
	await(t, "room on the disk", func() bool { status, _, _ := s.call("GET", "/api/health/ready", ""); return status == 200 })
	if r := s.endedFor(eve, s.runOf(eve, "echo again > o")); r["status"] != "completed" {
		t.Errorf("when there is room again, a run is %v: %v", r["status"], r["errorMessage"])
	}
}

// A task that leaves just enough for the disk to be low, and no more, does not keep
// others from working: it ends.
func TestATaskCannotKeepTheDiskLow(t *testing.T) {
	t.Parallel()
	data := smallDisk(t)
	s := start(t, "--data", data, "--min-free-disk", "100MB", "--capacity", "vcpu=8,ramGb=32")
	_, ada, _ := s.signUp("ada")
	_, eve, _ := s.signUp("eve")
	good := s.runOf(ada, "head -c 1000000 /dev/zero > large; while [ ! -e done ]; do sleep 0.01; done; echo fine > o")
	bad := s.runOf(eve, fmt.Sprintf(`head -c %d /dev/zero > large; sleep 100000`, freeBytes(t, data)-60<<20))
	await(t, "a low disk", func() bool { status, _, _ := s.call("GET", "/api/health/ready", ""); return status == 503 })
	if r := s.endedFor(eve, bad); r["errorCode"] != "disk_full" {
		t.Errorf("the task that keeps the disk low is %v, %v: %v", r["status"], r["errorCode"], r["errorMessage"])
	}
	await(t, "room on the disk", func() bool { status, _, _ := s.call("GET", "/api/health/ready", ""); return status == 200 })
	if err := os.WriteFile(filepath.Join(data, "attempts", good+".n.0.1", "work", "done"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := s.endedFor(ada, good); r["status"] != "completed" {
		t.Errorf("the run beside it is %v: %v", r["status"], r["errorMessage"])
	}
}

// Runs are accepted on a disk that is low, and wait for space.
func TestRunsWaitOnALowDisk(t *testing.T) {
	t.Parallel()
	data := smallDisk(t)
	s := start(t, "--data", data)
	_, cookie, _ := s.signUp("ada")
	w := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"n","command":"true"}]}}`, "Cookie", cookie)["id"]
	s.kill()
	s = start(t, "--data", data, "--min-free-disk", "500MB")
	id := s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Cookie", cookie)["runId"].(string)
	await(t, "the reason why it waits", func() bool {
		waiting, _ := s.want(200, "GET", "/api/runs/"+id, "", "Cookie", cookie)["waiting"].(map[string]any)
		return waiting["reason"] == "disk_low"
	})
	s.kill()
	s = start(t, "--data", data)
	if r := s.endedFor(cookie, id); r["status"] != "completed" {
		t.Errorf("with space it is %v: %v", r["status"], r["errorMessage"])
	}
}

// While the disk is nearly full the embedded database takes no more definitions. What is
// there can be read and deleted.
func TestWorkflowsAreNotChangedOnALowDisk(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data)
	token, cookie, _ := s.signUp("ada")
	id := s.workflow(token, `{"nodes":[]}`)
	s.kill()
	s = start(t, "--data", data, "--min-free-disk", "1000000GB")
	of := fmt.Sprintf(`{"workflowId":%q}`, id)
	for _, r := range [][3]string{
		{"POST", "/api/workflows", `{"name":"more"}`},
		{"PUT", "/api/workflows/" + id, `{"name":"more"}`},
		{"POST", "/api/workflows/" + id + "/revisions/1/restore", `{"name":"more"}`},
		{"POST", "/api/workflows/" + id + "/schedules", `{"cron":"0 * * * *"}`},
		{"POST", "/api/workflows/" + id + "/triggers", `{}`},
		{"POST", "/api/reported-runs", `{"key":"k","engine":"snakemake","project":"p"}`},
		{"POST", "/api/runs", of},
		{"POST", "/api/sweeps", fmt.Sprintf(`{"workflowId":%q,"vary":{"x":[1,2]}}`, id)},
	} {
		if got := s.want(503, r[0], r[1], r[2], "Cookie", cookie); got["code"] != "disk_low" {
			t.Errorf("%s %s: %v", r[0], r[1], got)
		}
	}
	s.want(200, "GET", "/api/workflows/"+id, "", "Cookie", cookie)
	s.want(200, "DELETE", "/api/workflows/"+id, "", "Cookie", cookie)
}
