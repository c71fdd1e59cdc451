package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/waittest"
)

// bytesFromEnv is a size that a variable may change, to measure what takes too long for
// every day.
func bytesFromEnv(t *testing.T, variable string, usual int64) int64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// asked counts the bytes that are asked for of one object.
type asked struct {
	mu    sync.Mutex
	bytes int64 // of different spans
	again int64 // of spans that were asked for before
	spans map[string]int
}

func (a *asked) see(r *http.Request) {
	var from, to int64
	span := r.Header.Get("Range")
	if n, _ := fmt.Sscanf(span, "bytes=%d-%d", &from, &to); n == 2 {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.spans[span]++; a.spans[span] == 1 {
			a.bytes += to - from + 1
		} else {
			a.again += to - from + 1
		}
	}
}

const shardsOfOne = `{"inputs":{"ref":{"type":"file"}},"nodes":[{"id":"each","command":"stat -L -c %s \"$INPUT_in\" > size","outputs":{"size":{"path":"size"}},
	"inputs":{"in":{"from":"inputs.ref"}},"scatter":{"over":"[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]"}}]}`

// Twenty tasks read one large object of a bucket: each of its bytes is fetched once, and
// none of them goes through the server's memory. MILLRACE_TEST_INPUT_BYTES has it
// done with another size.
func TestALargeObjectIsFetchedOnceInLittleMemory(t *testing.T) {
	t.Parallel()
	size := bytesFromEnv(t, "MILLRACE_TEST_INPUT_BYTES", 100<<20+1)
	d := newDoor(t)
	if _, err := d.client.PutObject(t.Context(), d.bucket, d.prefix+"genome", io.LimitReader(zeros{}, size), size, minio.PutObjectOptions{PartSize: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private", "--input-cache", "100GB")
	_, cookie, _ := s.signUp("ada")
	token, _ := s.want(201, "POST", "/auth/api-tokens", `{"name":"cli","role":"member"}`, "Cookie", cookie)["token"].(string)
	connection := d.connection(s, "Cookie", cookie)
	seen, told := &asked{spans: map[string]int{}}, make(chan struct{})
	d.set(func(r *http.Request) verdict {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/genome") {
			<-told
			seen.see(r)
		}
		return pass
	})
	w := s.workflow(token, shardsOfOne)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q,"inputs":{"ref":{"url":"s3://%s/%sgenome","connection":%q}}}`, w, d.bucket, d.prefix, connection))
	await(t, "how far it is", func() bool {
		r := s.want(200, "GET", "/api/runs/"+id, "", "Authorization", bearer(token))
		waiting, _ := r["waiting"].(map[string]any)
		if waiting["fetching"] == nil { // where nothing is prepared in the queue, the node says it
			waiting, _ = r["nodes"].([]any)[0].(map[string]any)
		}
		fetching, _ := waiting["fetching"].(map[string]any)
		return fetching["totalBytes"] == float64(size)
	})
	close(told)
	for range size >> 31 { // it takes longer than anything else
		waittest.Until(func() bool {
			return s.want(200, "GET", "/api/runs/"+id, "", "Authorization", bearer(token))["finishedAt"] != nil
		})
	}
	if r := s.ended(token, id); r["status"] != "completed" {
		t.Fatalf("%v: %v", r["status"], r["errorMessage"])
	}
	outputs := s.want(200, "GET", "/api/runs/"+id+"/outputs", "", "Authorization", bearer(token))["data"].([]any)
	if text := string(download(t, outputs[0].(map[string]any)["url"].(string))); len(outputs) != 20 || strings.TrimSpace(text) != strconv.FormatInt(size, 10) {
		t.Errorf("%d outputs, %s", len(outputs), text)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if seen.bytes != size || seen.again >= size { // on a busy machine a span may be tried again
		t.Errorf("%d bytes were asked for, of %d, and %d again: %v", seen.bytes, size, seen.again, seen.spans)
	}
	mb := s.residentMB()
	t.Logf("%d bytes, in %d requests, %d MB of memory at most", size, len(seen.spans), mb)
	if mb > 200 {
		t.Errorf("it took %d MB", mb)
	}
}

// Credentials that are taken away in the middle are said, and name nothing that is
// secret; when they are back a retry goes through.
func TestAnInputOutlivesRevokedCredentials(t *testing.T) {
	t.Parallel()
	const size = 100<<20 + 1
	d := newDoor(t)
	if _, err := d.client.PutObject(t.Context(), d.bucket, d.prefix+"genome", io.LimitReader(zeros{}, size), size, minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	_, cookie, _ := s.signUp("ada")
	token, _ := s.want(201, "POST", "/auth/api-tokens", `{"name":"cli","role":"member"}`, "Cookie", cookie)["token"].(string)
	connection := d.connection(s, "Cookie", cookie)
	w := s.workflow(token, shardsOfOne)
	passed := 0
	d.set(func(r *http.Request) verdict {
		if r.Method != http.MethodGet || r.Header.Get("Range") == "" {
			return pass
		}
		if passed++; passed > 3 {
			return refuse
		}
		return pass
	})
	body := fmt.Sprintf(`{"workflowId":%q,"inputs":{"ref":{"url":"s3://%s/%sgenome","connection":%q}}}`, w, d.bucket, d.prefix, connection)
	id := s.run(token, body)
	r := s.ended(token, id)
	if message, _ := r["errorMessage"].(string); r["status"] != "failed" || r["errorCode"] != "input_unreachable" || !strings.Contains(message, "does not let these credentials") {
		t.Fatalf("%v, %v: %v", r["status"], r["errorCode"], message)
	}
	d.set(func(*http.Request) verdict { return refuse })
	if refused := s.want(400, "POST", "/api/runs/"+id+"/retry", "", "Authorization", bearer(token)); refused["code"] != "input_unreachable" {
		t.Errorf("%v", refused)
	}
	d.set(nil)
	again := s.want(202, "POST", "/api/runs/"+id+"/retry", "", "Authorization", bearer(token))["runId"].(string)
	if r := s.ended(token, again); r["status"] != "completed" {
		t.Fatalf("%v: %v", r["status"], r["errorMessage"])
	}
	if strings.Contains(s.log.String(), d.secret) {
		t.Error("the log has the secret key")
	}
}
