package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/millrace/millrace/internal/store/storetest"
)

// With PostgreSQL's own programs alone: the database is dumped, then the bucket is copied, and a server on both copies
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

// restorable makes a file, one of several parts, a report and a folder.
const restorable = `{"nodes":[{"id":"a",
	"command":"echo hello > o; head -c 6000000 /dev/zero > large; echo '<b>hi</b>' > page.html; mkdir dir; echo in > dir/f",
	"outputs":{"o":{"path":"o"},"large":{"path":"large"},"page":{"path":"page.html"},"dir":{"path":"dir","directory":true}}}]}`

// Copied objects have other inodes, times or ETags. The server verifies their content
// once and goes on using them.
func TestRestoredOutputsAreIntact(t *testing.T) {
	t.Parallel()
	data, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	s := start(t, "--data", data, "--sandbox", "none")
	token, cookie, _ := s.signUp("ada")
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, restorable)))
	s.endedFor(cookie, id)
	if out, err := millrace(t, "backup", "--data", data, backup).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	copied := func(t *testing.T, command ...string) {
		t.Helper()
		if _, err := exec.LookPath(command[0]); err != nil {
			t.Skip(command[0], "is not installed")
		}
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	for name, restore := range map[string]func(t *testing.T, to string){
		"cp -r":           func(t *testing.T, to string) { copied(t, "cp", "-r", backup, to) },
		"cp -a":           func(t *testing.T, to string) { copied(t, "cp", "-a", backup, to) },
		"rsync":           func(t *testing.T, to string) { copied(t, "rsync", "-a", backup+"/", to) },
		"rsync --inplace": func(t *testing.T, to string) { copied(t, "rsync", "-r", "--inplace", backup+"/", to) },
		"tar": func(t *testing.T, to string) {
			copied(t, "sh", "-c", `mkdir -m 700 "$2" && tar -C "$1" -c . | tar -C "$2" -x`, "sh", backup, to)
		},
		"another machine": func(t *testing.T, to string) { // whose file system counts whole seconds
			copied(t, "cp", "-a", backup, to)
			copied(t, "find", to+"/objects", "-type", "f", "-exec", "touch", "-d", "2026-01-02 03:04:06", "{}", "+")
		},
	} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "restored")
			restore(t, to)
			again := start(t, "--data", to, "--sandbox", "none")
			again.hasRestored(cookie, id)
			again.kill()
			if out, _ := millrace(t, "admin", "doctor", "--data", to).CombinedOutput(); !strings.Contains(string(out), "ok       stored files (of the newest ") || strings.Contains(string(out), "the content of 0 was read") ||
				!strings.Contains(string(out), "ok       marks of outputs (") {
				t.Errorf("doctor prints\n%s", out)
			}
		})
	}
	t.Run("other content", func(t *testing.T) {
		to := filepath.Join(t.TempDir(), "restored")
		copied(t, "cp", "-a", backup, to)
		copied(t, "sh", "-c", `f=$(grep -rlx hello "$1/objects") && echo jello > "$f"`, "sh", to)
		again := start(t, "--data", to, "--sandbox", "none")
		for range 2 { // the verdict stays
			for _, path := range []string{"outputs", "outputs.zip", "crate"} {
				if got := again.want(409, "GET", "/api/runs/"+id+"/"+path, "", "Cookie", cookie); got["code"] != "invalid_outputs" {
					t.Errorf("%s: %v", path, got)
				}
			}
		}
		if retried := again.retry(cookie, id); retried["nodes"].([]any)[0].(map[string]any)["cached"] != false {
			t.Errorf("changed outputs were reused: %v", retried["nodes"])
		}
		again.kill()
		if out, err := millrace(t, "admin", "doctor", "--data", to).CombinedOutput(); err == nil || !strings.Contains(string(out), "1 of the newest") || !strings.Contains(string(out), "WRONG    stored files") ||
			!strings.Contains(string(out), "WRONG    marks of outputs (of the oldest and newest 8): 1 are missing or do not have the content") {
			t.Errorf("%v, doctor prints\n%s", err, out)
		}
	})
}

// The copy of a bucket may have other ETags: those of objects that were sent in parts
// say nothing of their content. The doctor notices, and the server verifies each once.
func TestOutputsOfACopiedBucketAreIntact(t *testing.T) {
	t.Parallel()
	data, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	prefix := fmt.Sprint("copied", rand.Uint64())
	original := bucketAddress(t) + "&prefix=" + prefix
	s := start(t, "--data", data, "--storage-url", original, "--sandbox", "none")
	token, cookie, _ := s.signUp("ada")
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, restorable)))
	s.endedFor(cookie, id)
	if out, err := millrace(t, "backup", "--data", data, backup).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	client, u := openBucket(t, original)
	copied := strings.Replace(original, "s3://"+u.Host, "s3://"+prefix, 1)
	if err := client.MakeBucket(t.Context(), prefix, minio.MakeBucketOptions{Region: u.Query().Get("region")}); err != nil {
		t.Fatal(err)
	}
	mirrorInParts(t, client, u.Host, prefix)

	doctor := func(storage, want string) {
		t.Helper()
		if out, err := millrace(t, "admin", "doctor", "--data", backup, "--storage-url", storage).CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, doctor prints\n%s", err, out)
		}
	}
	doctor(original, "ok       marks of outputs (of the oldest and newest 4)\n")
	doctor(copied, "warning  marks of outputs (of the oldest and newest 4): 4 do not have the mark")
	start(t, "--data", backup, "--storage-url", copied, "--sandbox", "none").hasRestored(cookie, id)
	doctor(copied, "ok       marks of outputs (of the oldest and newest 4)\n")
}

// mirrorInParts copies all objects from one bucket to another, in parts of the least size.
func mirrorInParts(t *testing.T, client *minio.Client, from, to string) {
	t.Helper()
	core := minio.Core{Client: client}
	for object := range client.ListObjects(t.Context(), from, minio.ListObjectsOptions{Prefix: to + "/", Recursive: true}) {
		body, _, _, err := core.GetObject(t.Context(), from, object.Key, minio.GetObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		upload, err := core.NewMultipartUpload(t.Context(), to, object.Key, minio.PutObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var parts []minio.CompletePart
		for left := object.Size; left > 0; left -= 5 << 20 {
			part, err := core.PutObjectPart(t.Context(), to, object.Key, upload, len(parts)+1, io.LimitReader(body, 5<<20), min(left, 5<<20), minio.PutObjectPartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, minio.CompletePart{PartNumber: part.PartNumber, ETag: part.ETag})
		}
		done, err := core.CompleteMultipartUpload(t.Context(), to, object.Key, upload, parts, minio.PutObjectOptions{})
		if err != nil || done.ETag == object.ETag {
			t.Fatalf("%s has the ETag %s as before, %v", object.Key, done.ETag, err)
		}
	}
}

// hasRestored looks at a run of the restorable workflow, and retries it.
func (s *server) hasRestored(cookie, id string) {
	s.t.Helper()
	for _, path := range []string{"outputs.zip", "crate"} { // the first to ask waits for the verification
		resp := s.send("GET", "/api/runs/"+id+"/"+path, "", "Cookie", cookie)
		if text, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || err != nil || resp.Body.Close() != nil {
			s.t.Errorf("%s: %d %s %v", path, resp.StatusCode, text, err)
		}
	}
	rows, _ := s.want(200, "GET", "/api/runs/"+id+"/outputs", "", "Cookie", cookie)["data"].([]any)
	if len(rows) != 4 {
		s.t.Fatalf("the run made %v", rows)
	}
	for _, row := range rows {
		o := row.(map[string]any)
		addresses := []any{o["url"], o["reportUrl"]}
		if folder, ok := o["directory"].(map[string]any); ok {
			addresses = append(addresses, folder["archiveUrl"])
		}
		for _, address := range addresses {
			if address != nil && get(s.t, address.(string)) == "" {
				s.t.Errorf("%v is empty", address)
			}
		}
	}
	preview := s.want(200, "POST", "/api/runs/"+id+"/retry/preview", `{}`, "Cookie", cookie)
	if nodes, _ := preview["nodes"].([]any); len(nodes) != 1 || nodes[0].(map[string]any)["expect"] != "reused" {
		s.t.Errorf("the preview says %v", preview)
	}
	for _, n := range s.retry(cookie, id)["nodes"].([]any) {
		if n.(map[string]any)["cached"] != true {
			s.t.Errorf("the retry does not reuse %v", n)
		}
	}
}

// retry starts a run again, and waits for its end.
func (s *server) retry(cookie, id string) map[string]any {
	s.t.Helper()
	again := s.want(202, "POST", "/api/runs/"+id+"/retry", `{}`, "Cookie", cookie)["runId"].(string)
	return s.endedFor(cookie, again)
}
