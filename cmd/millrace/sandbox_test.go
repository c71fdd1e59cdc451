package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A task tries everything it must not be able to do; what it can do it prints.
func TestATaskIsAlone(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	socket := filepath.Join(t.TempDir(), "host.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := start(t, "--data", data, "--task-disk", "50MB")
	token, _, _ := s.signUp("ada")
	address := strings.TrimPrefix(s.base, "http://")
	host, port, _ := strings.Cut(address, ":")
	script := fmt.Sprintf(`
leak() { echo "LEAK: $*"; }
ls %[1]s >/dev/null 2>&1 && leak the data folder
cat %[1]s/millrace.db >/dev/null 2>&1 && leak the database
find / -name '*.attempt' -o -name millrace.db 2>/dev/null | grep -q . && leak files of others
env | grep -q BE_MILLRACE && leak the environment of the server
cat /proc/*/environ 2>/dev/null | tr '\0' '\n' | grep -q BE_MILLRACE && leak the environment of a process
[ "$(ls -d /proc/[0-9]* | wc -l)" -gt 12 ] && leak the processes of the host
(exec 3<>/dev/tcp/%[2]s/%[3]s) 2>/dev/null && leak the server
(exec 3<>/dev/tcp/127.0.0.1/22) 2>/dev/null && leak the network
python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect("%[4]s")' 2>/dev/null && leak a socket of the host
find / -type s 2>/dev/null | grep -q . && leak sockets
grep -q '^CapEff:	0000000000000000' /proc/self/status || leak capabilities
unshare -U true 2>/dev/null && unshare -Ur id 2>/dev/null | grep -q 'uid=0' && unshare -Ur mount -t tmpfs x /mnt 2>/dev/null && leak a mount
touch /usr/x 2>/dev/null && leak a write outside
[ "$(id -u)" = 0 ] && [ "$(awk '{print $2}' /proc/self/uid_map | head -1)" = 0 ] && leak root
setsid nohup sleep 98765 >/dev/null 2>&1 &
echo tried`, data, host, port, socket)
	w := s.workflow(token, fmt.Sprintf(`{"nodes":[{"id":"burglar","interpreter":"bash","command":%q}]}`, "set +e +o pipefail\n"+script))
	r := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w)))
	if log := r["logs"].(string); !strings.Contains(log, "tried") || strings.Contains(log, "LEAK") {
		t.Errorf("%v %v\n%s", r["status"], r["errorMessage"], log)
	}
	if alive("sleep\x0098765") {
		t.Error("a process outlives its run")
	}

	w = s.workflow(token, `{"nodes":[{"id":"glutton","command":"dd if=/dev/zero of=big bs=1M count=500 2>&1 || true; for i in $(seq 500); do dd if=/dev/zero of=f$i bs=1M count=1 2>/dev/null; sleep 0.01; done; echo full"}]}`)
	r = s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w)))
	if r["status"] != "failed" || r["errorCode"] != "disk_full" || !strings.Contains(r["errorMessage"].(string), "50 MB of disk") {
		t.Errorf("a task that fills the disk is %v: %v\n%v", r["status"], r["errorMessage"], r["logs"])
	}
	for name, tt := range map[string]struct{ node, code, message string }{
		"a sandbox of its own":   {`"command":"unshare -U true"`, "node_failed", "sandbox or container of its own"},
		"a name with a new line": {`"command":"touch \"a$(printf '\\\\nb')\"","outputs":{"a":{"path":"a*","many":true}}`, "output_missing", "control character"},
		"a value too long":       {`"command":"true $PARAM_long"`, "node_failed", "PARAM_long is 200 KB long"},
		"a computed NUL":         {`"command":"true","scatter":{"over":"[\"x\\u0000--bind\\u0000/\\u0000/\\u0000--\"]"}`, "node_failed", "NUL"},
	} {
		w := s.workflow(token, fmt.Sprintf(`{"parameters":{"long":{"type":"string"}},"nodes":[{"id":"n",%s}]}`, tt.node))
		r := s.ended(token, s.run(token, fmt.Sprintf(`{"workflowId":%q,"parameters":{"long":%q}}`, w, strings.Repeat("x", 200<<10))))
		if r["status"] != "failed" || r["errorCode"] != tt.code || !strings.Contains(r["errorMessage"].(string), tt.message) {
			t.Errorf("%s: %v, %v: %v", name, r["status"], r["errorCode"], r["errorMessage"])
		}
	}
}

// alive reports whether any process on the machine was started like this.
func alive(command string) bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if text, _ := os.ReadFile(path); strings.HasPrefix(string(text), command+"\x00") {
			return true
		}
	}
	return false
}

// 200 MB of text, a line of a megabyte and binary noise: nothing is lost but
// what is marked as cut, and the server stays small.
func TestAFloodOfText(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--task-log", "1GB")
	_, cookie, _ := s.signUp("ada")
	as := []string{"Cookie", cookie}
	id := s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, s.want(201, "POST", "/api/workflows",
		`{"name":"w","definition":{"nodes":[{"id":"chatty","command":"seq -f %019.0f 10000000; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo noise; head -c 300000 /dev/urandom | tr -d '\\n'; echo; printf '\\033[31mthe end\\033[0m\\n'"}]}}`,
		as...)["id"].(string)), as...)["runId"].(string)
	r := s.endedFor(cookie, id)
	if r["status"] != "completed" {
		t.Fatalf("%v: %v", r["status"], r["errorMessage"])
	}
	if log := r["logs"].(string); !strings.HasSuffix(log, "\x1b[31mthe end\x1b[0m\n") || r["logsTruncated"] != true {
		t.Errorf("it ends %q", log[max(0, len(log)-100):])
	}
	const line = 20 // bytes
	for _, n := range []int{0, 1, 1234567, 9999999} {
		page := s.want(200, "GET", fmt.Sprintf("/api/runs/%s/logs?nodeId=chatty&offset=%d&limit=%d", id, n*line, line), "", as...)
		if want := fmt.Sprintf("%019d\n", n+1); page["text"] != want {
			t.Errorf("line %d is %q", n, page["text"])
		}
	}
	after := s.want(200, "GET", fmt.Sprintf("/api/runs/%s/logs?nodeId=chatty&offset=%d&limit=%d", id, 10000000*line, 33<<10), "", as...)
	if text := after["text"].(string); !strings.HasPrefix(text, strings.Repeat("x", 32<<10)+" [line cut at 32 KB]\nnoise\n") {
		t.Errorf("the long line is %.50q … %q", text, text[max(0, len(text)-600):])
	}
	if mb := s.residentMB(); mb > 200 {
		t.Errorf("the server has taken %d MB", mb)
	}
}

// Of a log that is longer than what is kept, the end is shown, which has the error.
// Offsets are those of the whole log, and a page within what is missing leads behind it.
func TestLongLogShowsItsEnd(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--task-log", "1MB")
	_, cookie, _ := s.signUp("ada")
	as := []string{"Cookie", cookie}
	id := s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, s.want(201, "POST", "/api/workflows",
		`{"name":"w","definition":{"nodes":[{"id":"chatty","command":"seq -f %09.0f 300000; echo no such file >&2; exit 3"}]}}`,
		as...)["id"].(string)), as...)["runId"].(string)
	r := s.endedFor(cookie, id)
	if log := r["logs"].(string); !strings.HasSuffix(log, "000299999\n000300000\nno such file\n") || r["logsTruncated"] != true {
		t.Errorf("it ends with %q", log[max(0, len(log)-100):])
	}
	for _, of := range []string{"", "nodeId=chatty&"} {
		page := func(offset int) map[string]any {
			return s.want(200, "GET", fmt.Sprintf("/api/runs/%s/logs?%soffset=%d&limit=20", id, of, offset), "", as...)
		}
		gap := page(1_500_000)
		next, _ := gap["nextOffset"].(float64)
		if text, _ := gap["text"].(string); !strings.HasPrefix(text, "\n[log cut: ") || gap["size"] != 3_000_013.0 || gap["eof"] != false || next <= 1_500_000 || text != fmt.Sprintf("\n[log cut: %.0f bytes are missing here]\n", gap["missing"]) {
			t.Fatalf("within what is missing: %v", gap)
		}
		line := (int(next) + 9) / 10 // the first whole one of the end
		for offset, want := range map[int]string{0: "000000001\n000000002\n", 10 * line: fmt.Sprintf("%09d\n%09d\n", line+1, line+2), 3_000_000: "no such file\n"} {
			if p := page(offset); p["text"] != want {
				t.Errorf("from %d: %v", offset, p)
			}
		}
	}
}
