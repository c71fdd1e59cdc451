package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/git/gittest"
	"github.com/millrace/millrace/internal/store/storetest"
)

// kubernetesHost is this machine as pods see it.
const kubernetesHost = "10.201.0.1"

// smallPods are many at once on one small machine, which counts no disk. They have the
// programs of this machine.
const smallPods = `{spec: {
	containers: [{name: shim, resources: {requests: {cpu: 5m, memory: 8Mi}}}, {name: task, resources: {requests: {cpu: 5m, memory: 8Mi, ephemeral-storage: 0}}, volumeMounts: [
		{name: usr, mountPath: /usr, readOnly: true}, {name: bin, mountPath: /bin, readOnly: true}, {name: lib, mountPath: /lib, readOnly: true}, {name: lib64, mountPath: /lib64, readOnly: true},
		{name: alternatives, mountPath: /etc/alternatives, readOnly: true}]}],
	volumes: [{name: usr, hostPath: {path: /usr}}, {name: bin, hostPath: {path: /bin}}, {name: lib, hostPath: {path: /lib}}, {name: lib64, hostPath: {path: /lib64}},
		{name: alternatives, hostPath: {path: /etc/alternatives}}]}}`

// kubernetes is the folder of the cluster that tests have, or ends the test.
func kubernetes(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MILLRACE_TEST_KUBERNETES")
	if dir == "" {
		if os.Getenv("MILLRACE_TEST_ENGINES") != "" {
			t.Fatal("MILLRACE_TEST_KUBERNETES is not set: use `make test-engines`")
		}
		t.Skip("MILLRACE_TEST_KUBERNETES is not set: scripts/with-kubernetes starts a cluster")
	}
	return dir
}

// onKubernetes starts a server whose tasks run on a real cluster, at a port where it
// was before, or at any.
func onKubernetes(t *testing.T, port, data string, more ...string) (s *server, at string) {
	t.Helper()
	dir := kubernetes(t)
	if port == "" {
		l, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(l.Addr().String())
		l.Close()
	}
	template := filepath.Join(data, "pods.yaml")
	if err := os.WriteFile(template, []byte(smallPods), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"serve", "--listen", "0.0.0.0:" + port, "--public-urls", "http://127.0.0.1:" + port, "--data", data, "--sign-up", "open", "--runs-per-minute", "1000", "--capacity", "vcpu=16,ramGb=64",
		"--executor", "kubernetes", "--attempts-url", "http://" + net.JoinHostPort(kubernetesHost, port), "--kubernetes-config", filepath.Join(dir, "kubeconfig"),
		"--kubernetes-image", "localhost/task:1", "--kubernetes-shim-image", "localhost/millrace-attempt:1", "--kubernetes-pod-template", template,
		"--kubernetes-namespace", "default", // that of rbac.yaml allows no folders of the node
	}, more...)
	s = launch(t, millrace(t, args...))
	s.base = "http://127.0.0.1:" + port
	return s, port
}

// A server is killed while its tasks run in pods. They go on and say nothing until
// the next one answers, which adopts them; each has run once.
func TestTasksOnKubernetesOutliveTheirServer(t *testing.T) {
	data := t.TempDir()
	s, port := onKubernetes(t, "", data)
	_, cookie, _ := s.signUp("ada")
	s.verify("ada")
	w := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[
		{"id":"a","command":"echo began $ITEM; sleep 5; echo made $ITEM > o; echo ended $ITEM","scatter":{"over":"[1,2,3]"},"outputs":{"o":{"path":"o"}}},
		{"id":"b","command":"cat $INPUT_in; mkdir d; echo x > d/x","outputs":{"d":{"path":"d","directory":true}}}],
		"edges":[{"id":"e1","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}}`, "Cookie", cookie)["id"].(string)
	id := s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q,"compute":{"vcpu":3,"ramGb":12}}`, w), "Cookie", cookie)["runId"].(string)
	logs := func() string {
		text, _ := s.want(200, "GET", "/api/runs/"+id, "", "Cookie", cookie)["logs"].(string)
		return text
	}
	await(t, "a task to begin", func() bool { return strings.Contains(logs(), "began ") })
	for range 2 {
		s.kill()
		s, _ = onKubernetes(t, port, data)
	}
	r := s.endedFor(cookie, id)
	if r["status"] != "completed" {
		t.Errorf("%v: %v\n%v\n%s", r["status"], r["errorMessage"], r["logs"], s.log)
	}
	for _, line := range []string{"began 1\n", "began 2\n", "began 3\n", "ended 1\n", "ended 2\n", "ended 3\n", "made 1\nmade 2\nmade 3\n"} {
		if n := strings.Count(r["logs"].(string), line); n != 1 {
			t.Errorf("%q is %d times in the log", line, n)
		}
	}
	if made := s.made(cookie, id); len(made) != 4 {
		t.Errorf("it made %v", made)
	}
	s.billedOnce(cookie, []string{id})
	shards := s.want(200, "GET", "/api/runs/"+id+"/nodes/a/shards", "", "Cookie", cookie)["data"].([]any)
	a := shards[0].(map[string]any)["attempts"].([]any)[0].(map[string]any)
	job, _ := a["job"].(map[string]any)
	if command, _ := job["command"].(string); a["machine"] != "millrace-node" || !strings.HasPrefix(command, "kubectl --namespace default describe job millrace-") {
		t.Errorf("it ran on %v as %v", a["machine"], job)
	}
}

// balancer leads pods to the first of some servers that is not stopped.
type balancer struct {
	*httptest.Server
	mu      sync.Mutex
	servers []*server
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	b := &balancer{}
	proxy := &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		if to, err := url.Parse(b.awake()); err == nil {
			r.SetURL(to)
		}
	}}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	b.Server = &httptest.Server{Listener: l, Config: &http.Server{Handler: proxy}}
	b.Start()
	t.Cleanup(b.Close)
	return b
}

// address is where pods reach it.
func (b *balancer) address() string {
	return fmt.Sprintf("http://%s:%d", kubernetesHost, b.Listener.Addr().(*net.TCPAddr).Port)
}

func (b *balancer) add(s *server) *server {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers = append(b.servers, s)
	return s
}

func (b *balancer) awake() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.servers {
		if !stopped(s.cmd.Process.Pid) {
			return s.base
		}
	}
	return ""
}

// twoOnKubernetes starts a server whose pods see a folder, and returns how to start
// another one beside it. The first one reaches the database as it is told.
func twoOnKubernetes(t *testing.T, shared, firstDatabase, database string) (first *server, second func() *server) {
	t.Helper()
	pods := filepath.Join(t.TempDir(), "pods.yaml")
	template := strings.NewReplacer(
		"volumeMounts: [", fmt.Sprintf("volumeMounts: [{name: shared, mountPath: %q}, ", shared),
		"volumes: [", fmt.Sprintf("volumes: [{name: shared, hostPath: {path: %q}}, ", shared)).Replace(smallPods)
	if err := os.WriteFile(pods, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBalancer(t)
	args := []string{
		"--kubernetes-pod-template", pods, "--attempts-url", b.address(),
		"--secret-key", rand.Text(), // the same for both
		"--storage-url", bucketAddress(t) + "&prefix=" + rand.Text() + "/", "--database-url",
	}
	next := func(url string) *server {
		s, _ := onKubernetes(t, "", t.TempDir(), append(args, url)...)
		return b.add(s)
	}
	return next(firstDatabase), func() *server { return next(database) }
}

// One of two servers is stopped, or cut off from the database, for longer than its lease.
// The other one adopts the tasks, which go on.
func TestTasksOnKubernetesOutliveAStoppedServer(t *testing.T) {
	t.Parallel()
	kubernetes(t)
	for name, absence := range absences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := t.TempDir()
			if err := os.Chmod(shared, 0o777); err != nil { // pods have a user of their own
				t.Fatal(err)
			}
			database := storetest.Postgres(t)
			through, cable := cabled(t, database)
			first, second := twoOnKubernetes(t, shared, through, database)
			_, cookie, _ := first.signUp("ada")
			first.verify("ada")
			g := startGatedIn(t, first, cookie, shared)
			other := second()
			g.outlive(first, other, func() { absence(first, cable) })
		})
	}
}

// Pods have the software of their image: that a step needs packages beside it is said
// when it is saved, and a run of it refused before anything is held.
func TestAnEnvironmentIsRefusedOnKubernetes(t *testing.T) {
	t.Parallel()
	s, _ := onKubernetes(t, "", t.TempDir())
	_, cookie, _ := s.signUp("ada")
	s.verify("ada")
	w := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","environment":{"pip":["numpy"]},"command":"true"}]}}`, "Cookie", cookie)
	if said := fmt.Sprint(w["problems"]); !strings.Contains(said, "nodes[0].environment") || !strings.Contains(said, "set `image`") {
		t.Errorf("saving says %s", said)
	}
	e := s.want(409, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w["id"]), "Cookie", cookie)
	if text, _ := e["error"].(string); e["code"] != "no_environments" || !strings.Contains(text, "`image`") {
		t.Errorf("%v", e)
	}
}

// The code of a run reaches its pods, which reach no Git host.
func TestTasksOnKubernetesHaveTheirCode(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("analysis/greet.sh", "echo hello $1; cat \"$SOURCE_DIR/data\"")
	r.Write("analysis/data", "of the commit\n")
	commit := r.Commit()
	definition := fmt.Sprintf(`{"source":{"git":%q,"path":"analysis"},"nodes":[{"id":"a","scatter":{"over":"[1,2]"},"command":"sh $SOURCE_DIR/greet.sh $ITEM > o","outputs":{"o":{"path":"o"}}},
		{"id":"b","command":"cat $INPUT_in > all; env | grep -c SOURCE_DI >> all || true","outputs":{"all":{"path":"all"}}}],
		"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`, r.Serve())
	made := func(s *server, cookie string) map[string]string {
		t.Helper()
		w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":%s}`, definition), "Cookie", cookie)["id"].(string)
		run := s.endedFor(cookie, s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Cookie", cookie)["runId"].(string))
		if run["status"] != "completed" || run["commit"] != commit {
			t.Fatalf("%v: %v at %v\n%s", run["status"], run["errorMessage"], run["commit"], run["logs"])
		}
		return s.made(cookie, run["id"].(string))
	}
	there, _ := onKubernetes(t, "", t.TempDir(), "--fetch-allow-private")
	_, thereCookie, _ := there.signUp("ada")
	there.verify("ada")
	here := start(t, "--data", t.TempDir(), "--fetch-allow-private")
	_, hereCookie, _ := here.signUp("ada")
	if diff := cmp.Diff(made(here, hereCookie), made(there, thereCookie)); diff != "" {
		t.Error(diff)
	}
}

func TestTheDoctorAsksKubernetes(t *testing.T) {
	s, port := onKubernetes(t, "", t.TempDir())
	args := []string{"admin", "doctor", "--data", t.TempDir()}
	for i, arg := range s.cmd.Args {
		if strings.HasPrefix(arg, "--kubernetes") || strings.HasPrefix(arg, "--executor") || strings.HasPrefix(arg, "--attempts") {
			args = append(args, arg, s.cmd.Args[i+1])
		}
	}
	if out, _ := millrace(t, args...).CombinedOutput(); !strings.Contains(string(out), "ok       executor kubernetes\n") {
		t.Errorf("%s %s", port, out)
	}
	if out, err := millrace(t, append(args, "--kubernetes-namespace", "nowhere")...).CombinedOutput(); err == nil || !strings.Contains(string(out), "WRONG    executor kubernetes: ") {
		t.Errorf("%v %s", err, out)
	}
}
