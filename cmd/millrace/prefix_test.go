package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
)

func (d *door) put(name, text string) {
	d.t.Helper()
	if _, err := d.client.PutObject(d.t.Context(), d.bucket, d.prefix+name, strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

const prefixWorkflow = `{"inputs":{"dir":{"type":"directory"}},"nodes":[{"id":"read","cache":true,"inputs":{"dir":{"from":"inputs.dir"}},"outputs":{"list":{"path":"list"}},
	"command":"basename \"$INPUT_dir\" > list; cd \"$INPUT_dir\"; find . -type f | LC_ALL=C sort >> \"$OLDPWD/list\"; cat a.txt 1/2/c.txt >> \"$OLDPWD/list\""}]}`

// A folder of a bucket is given to a step as a folder, is known by what is in it, and
// fails the step if it is not what it was.
func TestAFolderOfABucketIsAnInput(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	s := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	token, cookie, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	connection := d.connection(s, "Cookie", cookie)
	for name, text := range map[string]string{"reads/a.txt": "a\n", "reads/1/b.txt": "b\n", "reads/1/2/c.txt": "c\n", "other/d.txt": "d\n"} {
		d.put(name, text)
	}
	w := s.workflow(token, prefixWorkflow)
	body := func(url string) string {
		return fmt.Sprintf(`{"workflowId":%q,"inputs":{"dir":{"url":%q,"connection":%q}}}`, w, url, connection)
	}
	folder := "s3://" + d.bucket + "/" + d.prefix + "reads/"
	for i := range 2 {
		id := s.run(token, body(folder))
		if r := s.ended(token, id); r["status"] != "completed" {
			t.Fatalf("%v: %v", r["status"], r["errorMessage"])
		}
		if got := string(download(t, s.outputsOf(token, id)["list"]["url"].(string))); got != "reads\n./1/2/c.txt\n./1/b.txt\n./a.txt\na\nc\n" {
			t.Errorf("the step found:\n%s", got)
		}
		r := s.want(200, "GET", "/api/runs/"+id, "", as...)
		if r["nodes"].([]any)[0].(map[string]any)["cached"] != (i == 1) || len(r["addresses"].([]any)) != 3 || fmt.Sprint(r["inputs"]) != "map[dir:["+folder+"]]" {
			t.Errorf("run %d: %v, %v, %v", i, r["nodes"], r["addresses"], r["inputs"])
		}
		again := s.want(202, "POST", "/api/runs/"+id+"/retry", "", as...)["runId"].(string)
		if r := s.ended(token, again); r["status"] != "completed" {
			t.Errorf("%v: %v", r["status"], r["errorMessage"])
		}
	}
	for url, status := range map[string]int{
		strings.TrimSuffix(folder, "/"): 400, "s3://" + d.bucket + "/": 400, "https://example.org/a/": 400, "s3://" + d.bucket + "/elsewhere/": 403,
		"s3://" + d.bucket + "/" + d.prefix + "none/": 404,
	} {
		s.want(status, "POST", "/api/runs", body(url), as...)
	}
	files := s.workflow(token, `{"inputs":{"dir":{"type":"files"}},"nodes":[{"id":"a","command":"true"}]}`)
	s.want(400, "POST", "/api/runs", strings.Replace(body(folder), w, files, 1), as...)

	d.put("reads/a.txt", "another\n")
	changed := false
	d.set(func(r *http.Request) verdict {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "a.txt") && !changed {
			changed = true
			d.put("reads/a.txt", "and another\n")
		}
		return pass
	})
	id := s.run(token, body(folder))
	if r := s.ended(token, id); r["status"] != "failed" || r["errorCode"] != "input_changed" {
		t.Errorf("%v, %v: %v", r["status"], r["errorCode"], r["errorMessage"])
	}
	id = s.run(token, body(folder))
	if r := s.ended(token, id); r["status"] != "completed" {
		t.Errorf("%v: %v", r["status"], r["errorMessage"])
	}
	if got := string(download(t, s.outputsOf(token, id)["list"]["url"].(string))); !strings.HasSuffix(got, "and another\nc\n") {
		t.Errorf("the step found:\n%s", got)
	}
}
