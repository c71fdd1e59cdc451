package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/waittest"
)

// presign asks for an upload and returns its address and key.
func (s *server) presign(token, name string, size int64) (url, key string) {
	s.t.Helper()
	d := s.want(200, "POST", "/api/files/presign", fmt.Sprintf(`{"filename":%q,"contentType":"application/octet-stream","size":%d}`, name, size),
		"Authorization", bearer(token))
	return d["url"].(string), d["key"].(string)
}

// put sends bytes to a signed address and returns the status.
func put(t *testing.T, url string, body io.Reader, size int64) int {
	t.Helper()
	r, err := http.NewRequest("PUT", url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = size
	if size == 0 {
		r.Body = http.NoBody
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func (s *server) files(token string) []map[string]any {
	s.t.Helper()
	var list []map[string]any
	for _, f := range s.want(200, "GET", "/api/files", "", "Authorization", bearer(token))["data"].([]any) {
		list = append(list, f.(map[string]any))
	}
	return list
}

// residentMB is how much memory the server has had at most.
func (s *server) residentMB() int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return kb / 1024
}

// zeros is a file of any size that costs nothing to make.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// bucketAddress names a real S3 server.
func bucketAddress(t *testing.T) string {
	t.Helper()
	address := os.Getenv("MILLRACE_TEST_S3")
	if address == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("MILLRACE_TEST_S3 is not set: use `make test`")
		}
		t.Skip("MILLRACE_TEST_S3 is not set: `make test` starts a server")
	}
	return address
}

// eachStorage runs a test with files on disk and in a real S3 server.
func eachStorage(t *testing.T, test func(t *testing.T, args []string, disk bool)) {
	t.Helper()
	t.Run("disk", func(t *testing.T) {
		t.Parallel()
		test(t, nil, true)
	})
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		test(t, []string{"--storage-url", bucketAddress(t) + "&prefix=" + fmt.Sprint("t", rand.Uint64()) + "/"}, false)
	})
}

func TestAGigabyteUpAndDownInLittleMemory(t *testing.T) {
	eachStorage(t, func(t *testing.T, args []string, _ bool) {
		const size = 1 << 30
		s := start(t, append(args, "--data", t.TempDir())...)
		token, _, _ := s.signUp("ada")
		url, _ := s.presign(token, "large.bin", size)
		if got := put(t, url, io.LimitReader(zeros{}, size), size); got != 200 {
			t.Fatalf("the upload is answered %d", got)
		}
		var list []map[string]any
		// A file of this size is taken in from a bucket by upkeep.
		if !waittest.Until(func() bool { list = s.files(token); return len(list) == 1 }) || list[0]["size"] != float64(size) {
			t.Fatalf("%v", list)
		}
		resp, err := http.Get(list[0]["url"].(string))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != size {
			t.Errorf("%d bytes came back, %v", n, err)
		}
		if mb := s.residentMB(); mb > 200 {
			t.Errorf("it took %d MB", mb)
		}
	})
}

func TestAnUploadPastUsIsSettledAndCannotBeSlippedIn(t *testing.T) {
	eachStorage(t, func(t *testing.T, args []string, disk bool) {
		s := start(t, append(args, "--data", t.TempDir())...)
		token, _, _ := s.signUp("ada")
		url, key := s.presign(token, "a.bin", 5)
		if got := put(t, url, strings.NewReader("first"), 5); got != 200 {
			t.Fatal(got)
		}
		w := s.workflow(token, `{"inputs":{"x":{"type":"file"}},"nodes":[{"id":"a","command":"cat \"$INPUT_in\"","inputs":{"in":{"from":"inputs.x"}}}]}`)
		s.run(token, fmt.Sprintf(`{"workflowId":%q,"inputs":{"x":%q}}`, w, key)) // before anybody has listed the files
		if list := s.files(token); len(list) != 1 || list[0]["key"] != key {
			t.Fatalf("%v", list)
		}
		again := put(t, url, strings.NewReader("other"), 5)
		if disk && again != 409 {
			t.Errorf("a second PUT is answered %d", again)
		}
		resp, err := http.Get(s.files(token)[0]["url"].(string))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != "first" || !strings.HasPrefix(resp.Header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%q, %v, %v", body, err, resp.Header)
		}

		url, _ = s.presign(token, "b.bin", 4)
		if got := put(t, url, strings.NewReader("\x7fELF"), 4); disk && got != 415 {
			t.Errorf("a program is answered %d", got)
		}
		if n := len(s.files(token)); n != 1 {
			t.Errorf("a program is listed: %d files", n)
		}
		var used any
		if !waittest.Until(func() bool {
			used = s.want(200, "GET", "/api/billing/credits", "", "Authorization", bearer(token))["storage"].(map[string]any)["usedBytes"]
			return used == 5.0
		}) {
			t.Errorf("%v bytes are counted, want 5", used)
		}
	})
}

// slow gives some bytes, says so, and then waits to be cut off.
type slow struct {
	head io.Reader
	sent chan struct{}
	cut  chan struct{}
}

func (s *slow) Read(p []byte) (int, error) {
	n, err := s.head.Read(p)
	if err == io.EOF {
		close(s.sent)
		<-s.cut
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestAPowerCutInTheMiddleOfAnUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data)
	token, cookie, _ := s.signUp("ada")
	const size = 8 << 20
	url, _ := s.presign(token, "cut.bin", size)
	body := &slow{head: bytes.NewReader(make([]byte, 4<<20)), sent: make(chan struct{}), cut: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err := http.NewRequest("PUT", url, body)
		if err != nil {
			t.Error(err)
			return
		}
		r.ContentLength = size
		r.Header.Set("Content-Type", "application/octet-stream")
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
			t.Error("half an upload was answered")
		}
	}()
	<-body.sent
	s.kill()
	close(body.cut)
	<-done

	again := start(t, "--data", data, "--public-urls", s.base)
	token = again.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	if n := len(again.files(token)); n != 0 {
		t.Errorf("half an upload is listed: %d", n)
	}
	kept, err := filepath.Glob(filepath.Join(data, "objects", "objects", "*"))
	if err != nil || len(kept) != 0 {
		t.Errorf("partial bytes are visible: %v, %v", kept, err)
	}
	// The address still lives, so the reservation still counts, once.
	used := func() float64 {
		return again.want(200, "GET", "/api/billing/credits", "", "Authorization", bearer(token))["storage"].(map[string]any)["usedBytes"].(float64)
	}
	if used() != size {
		t.Errorf("%v bytes are counted", used())
	}
	if got := put(t, strings.Replace(url, s.base, again.base, 1), io.LimitReader(zeros{}, size), size); got != 200 {
		t.Errorf("trying again is answered %d", got)
	}
	if len(again.files(token)) != 1 || used() != size {
		t.Errorf("%v, %v bytes", again.files(token), used())
	}
}

func TestTheOperatorGrantsCredits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, "--data", dir)
	token, _, data := s.signUp("ada")
	team := data["team"].(map[string]any)["id"].(string)
	grant := func(args ...string) string {
		t.Helper()
		out, err := millrace(t, append([]string{"admin", "team", "grant", "--data", dir, team}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("%v %s", err, out)
		}
		return string(out)
	}
	if out := grant("100.5"); !strings.Contains(out, "600.5 credits") {
		t.Error(out)
	}
	if out := grant("-200.5"); !strings.Contains(out, "400 credits") {
		t.Error(out)
	}
	if out := grant("--reason=sorry", "--", "-0.5"); !strings.Contains(out, "399.5 credits") {
		t.Error(out)
	}
	if got := s.want(200, "GET", "/api/billing/credits", "", "Authorization", bearer(token)); got["remaining"] != 399.5 {
		t.Errorf("%v", got)
	}
	if out, err := millrace(t, "admin", "team", "grant", "--data", dir, team, "much").CombinedOutput(); err == nil {
		t.Errorf("%s", out)
	}
}

func TestABackupIsAnInstallation(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s := start(t, "--data", dir)
	token, _, _ := s.signUp("ada")
	url, key := s.presign(token, "a.txt", 5)
	if got := put(t, url, strings.NewReader("hello"), 5); got != 200 {
		t.Fatal(got)
	}
	if out, err := millrace(t, "backup", "--data", dir, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if out, err := millrace(t, "backup", "--data", dir, copied).CombinedOutput(); err == nil {
		t.Errorf("over another one: %s", out)
	}
	s.want(200, "POST", "/api/files/delete", fmt.Sprintf(`{"key":%q,"source":"upload"}`, key), "Authorization", bearer(token))

	again := start(t, "--data", copied, "--public-urls", s.base)
	list := again.want(200, "GET", "/api/files", "", "Authorization", bearer(token))["data"].([]any)
	if len(list) != 1 {
		t.Fatalf("%v", list)
	}
	r, err := http.Get(strings.Replace(list[0].(map[string]any)["url"].(string), s.base, again.base, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); string(text) != "hello" {
		t.Errorf("%q %v", text, err)
	}
}

func TestAPlansFileChangesPricesAndIsChecked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plans.json")
	if err := os.WriteFile(file, []byte(`{"plans":{"free":{"monthlyCredits":7}},"rates":{"vcpuHour":7.2}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--data", t.TempDir(), "--plans-file", file, "--plan-free-run-seconds", "60")
	token, _, _ := s.signUp("ada")
	e := s.want(200, "POST", "/api/billing/estimate", `{}`, "Authorization", bearer(token))
	if e["creditsPerHour"] != 17.28 || e["planCaps"].(map[string]any)["maxRunSeconds"] != 60.0 {
		t.Errorf("%v", e)
	}
	if c := s.want(200, "GET", "/api/billing/credits", "", "Authorization", bearer(token)); c["monthlyCredits"] != 7.0 {
		t.Errorf("%v", c)
	}
	if err := os.WriteFile(file, []byte(`{"plans":{"free":{"monthlyCredit":7}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := millrace(t, "serve", "--listen", "127.0.0.1:0", "--plans-file", file).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "monthlyCredit") {
		t.Errorf("%v %s", err, out)
	}
}
