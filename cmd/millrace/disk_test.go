package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A task fills the disk of a server: it ends with disk_full, another team's run
// beside it completes, and the server answers all the while.
func TestATaskThatFillsTheDiskHarmsOnlyItself(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("a file system of its own needs root")
	}
	data := t.TempDir()
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size=400m,mode=700"); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(data, syscall.MNT_DETACH) })
	s := start(t, "--data", data, "--min-free-disk", "100MB", "--capacity", "vcpu=8,ramGb=32")
	t.Cleanup(s.kill) // before the file system goes
	_, ada, _ := s.signUp("ada")
	_, eve, _ := s.signUp("eve")
	run := func(cookie, command string) string {
		w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[{"id":"n","command":%q,"outputs":{"o":{"path":"o"}}}]}}`, command), "Cookie", cookie)["id"].(string)
		return s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Cookie", cookie)["runId"].(string)
	}
	good := run(ada, "for i in $(seq 150); do echo $i >> o; sleep 0.1; done")
	bad := run(eve, "i=0; while :; do head -c 4000000 /dev/zero > f$i || true; i=$((i+1)); sleep 0.05; done")
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
	if r := s.endedFor(eve, run(eve, "echo again > o")); r["status"] != "completed" {
		t.Errorf("when there is room again, a run is %v: %v", r["status"], r["errorMessage"])
	}
}
