package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/millrace/millrace/internal/store/storetest"
)

// The way that docs/operating/backup.md describes for PostgreSQL and S3: the
// database is dumped, then the bucket is copied, and a server on both copies
// has everything, though the first went on meanwhile.
func TestADumpAndACopyOfTheBucketAreAnInstallation(t *testing.T) {
	t.Parallel()
	from, to := storetest.Postgres(t), storetest.Postgres(t)
	prefix := strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-")
	key := strings.Repeat("cd", 32)
	serve := func(database, folder, public string) *server {
		return start(t, "--data", t.TempDir(), "--database-url", database, "--storage-url", bucketAddress(t)+"&prefix="+prefix+folder,
			"--secret-key", key, "--public-urls", public, "--sign-up", "open", "--sandbox", "none")
	}
	s := serve(from, "/first", "http://localhost")
	token, cookie, _ := s.signUp("ada")
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, `{"nodes":[{"id":"a","command":"echo hello > o","outputs":{"o":{"path":"o"}}}]}`)))
	s.endedFor(cookie, id)

	dump, err := exec.Command("pg_dump", "--clean", "--if-exists", "--no-owner", from).Output()
	if err != nil {
		t.Fatal(err)
	}
	s.endedFor(cookie, s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, `{"nodes":[{"id":"a","command":"echo later > o","outputs":{"o":{"path":"o"}}}]}`))))
	copyObjects(t, prefix+"/first/", prefix+"/second/")
	restore := exec.Command("psql", "--quiet", "--set=ON_ERROR_STOP=1", to)
	restore.Stdin = strings.NewReader(string(dump))
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}

	again := serve(to, "/second", "http://localhost")
	_, all, _ := again.call("GET", "/api/runs", "", "Cookie", cookie)
	if rows, _ := all["data"].([]any); len(rows) != 1 {
		t.Errorf("it has %v", all)
	}
	_, outputs, _ := again.call("GET", "/api/runs/"+id+"/outputs", "", "Cookie", cookie)
	rows, _ := outputs["data"].([]any)
	if len(rows) != 1 || get(t, rows[0].(map[string]any)["url"].(string)) != "hello\n" {
		t.Errorf("the run made %v", outputs)
	}
	again.endedFor(cookie, again.run(token, fmt.Sprintf(`{"workflowId":%q}`, again.workflow(token, `{"nodes":[{"id":"a","command":"true"}]}`))))
}

// get reads what is behind an address.
func get(t *testing.T, address string) string {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// openBucket opens what an address of the kind of --storage-url names.
func openBucket(t *testing.T, address string) (*minio.Client, *url.URL) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	endpoint, err := url.Parse(q.Get("endpoint"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := minio.New(endpoint.Host, &minio.Options{Creds: credentials.NewStaticV4(q.Get("access-key"), q.Get("secret-key"), ""), Region: q.Get("region")})
	if err != nil {
		t.Fatal(err)
	}
	return client, u
}

// copyObjects copies what one prefix of the bucket holds to another.
func copyObjects(t *testing.T, from, to string) {
	t.Helper()
	client, u := openBucket(t, bucketAddress(t))
	for object := range client.ListObjects(t.Context(), u.Host, minio.ListObjectsOptions{Prefix: from, Recursive: true}) {
		if object.Err != nil {
			t.Fatal(object.Err)
		}
		place := minio.CopyDestOptions{Bucket: u.Host, Object: to + strings.TrimPrefix(object.Key, from)}
		if _, err := client.CopyObject(t.Context(), place, minio.CopySrcOptions{Bucket: u.Host, Object: object.Key}); err != nil {
			t.Fatal(err)
		}
	}
}
