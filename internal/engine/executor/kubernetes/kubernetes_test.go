package kubernetes

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/remote"
	attemptshttp "github.com/millrace/millrace/internal/httpapi/attempts"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// Tests wait for the cluster, not for a processor. Those that harm it come first, alone.
func TestMain(m *testing.M) {
	flag.Parse()
	if n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err == nil && n < 6 {
		_ = flag.Set("test.parallel", "6")
	}
	os.Exit(m.Run())
}

// cluster is the folder of the cluster that tests have, or ends the test.
func cluster(t testing.TB) string {
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

// address is where pods reach us.
const address = "10.201.0.1"

var testKey = []byte("a key that all servers have")

// site is a server that pods reach, with drivers on the cluster.
type site struct {
	db      *store.DB
	objects objects.Kept
	hints   chan struct{}
	handler http.Handler
	listen  string
	config  Config

	mu      sync.Mutex
	cluster *Cluster // the last
	server  *http.Server
}

func newSite(t testing.TB) *site {
	t.Helper()
	dir := cluster(t)
	keep, err := disk.Open(t.Context(), filepath.Join(t.TempDir(), "objects"), disk.NewSigner([]byte("0123456789abcdef")), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{db: storetest.Open(t, storetest.SQLite(t)), objects: objects.Kept{Store: keep, Presigner: keep}, hints: make(chan struct{}, 1), listen: address + ":0"}
	service := attempts.NewService(s.db, s.objects, testKey, func(string) {
		select {
		case s.hints <- struct{}{}:
		default:
		}
	}, time.Now)
	s.handler = attemptshttp.Handler(service, slog.New(slog.DiscardHandler))
	s.serve(t)
	grant(t, dir)
	s.config = Config{
		Kubeconfig: filepath.Join(dir, "kubeconfig-limited"), Namespace: "millrace", Installation: "test-" + strings.ToLower(rand.Text()),
		PodTemplate: filepath.Join("testdata", "small.yaml"), Log: logger(t), URL: "http://" + s.listen, Image: "localhost/task:1", ShimImage: "localhost/millrace-attempt:1",
	}
	return s
}

// grant gives the drivers of all tests the rights that our manifest does, and no others.
func grant(t testing.TB, dir string) {
	t.Helper()
	granting.Do(func() { errGranting = apply(t.Context(), dir, "../../../../deploy/kubernetes/rbac.yaml") })
	if errGranting != nil {
		t.Fatal(errGranting)
	}
}

var (
	granting    sync.Once
	errGranting error
)

// apply does what kubectl apply does.
func apply(ctx context.Context, dir, file string) error {
	config, _, err := Config{Kubeconfig: filepath.Join(dir, "kubeconfig")}.connection()
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var o metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			return err
		}
		path := "/api/" + o.APIVersion
		if strings.Contains(o.APIVersion, "/") {
			path = "/apis/" + o.APIVersion
		}
		if o.Namespace != "" {
			path += "/namespaces/" + o.Namespace
		}
		path += "/" + strings.ToLower(o.Kind) + "s/" + o.Name + "?fieldManager=test&force=true"
		r, err := http.NewRequestWithContext(ctx, http.MethodPatch, config.Host+path, strings.NewReader(document))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		said, _ := io.ReadAll(answer.Body)
		if answer.Body.Close(); answer.StatusCode >= 300 {
			return fmt.Errorf("%s %s: %s", o.Kind, o.Name, said)
		}
	}
	return nil
}

func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// serve answers shims, where it did before.
func (s *site) serve(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		t.Fatal(err)
	}
	s.listen = l.Addr().String()
	s.server = &http.Server{Handler: s.handler}
	server := s.server
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
}

// bare is a driver that lets specifications say nothing of folders.
type bare struct{ *reconciler.Driver }

func (b bare) Submit(ctx context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	s.Dir = ""
	return b.Driver.Submit(ctx, p, s)
}

func (s *site) open(t testing.TB) (*reconciler.Driver, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k, err := New(ctx, s.config)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.cluster = k
	s.mu.Unlock()
	d, err := remote.Open(ctx, remote.Config{
		Name: Name, Cluster: "Kubernetes", Scope: "test", Store: s.db, Pieces: s.db, Objects: s.objects, Key: testKey, Hints: s.hints, Log: logger(t), Now: time.Now, Lag: 5 * time.Second, ImageWait: 5 * time.Second,
	}, k)
	if err != nil {
		t.Fatal(err)
	}
	leave := sync.OnceFunc(func() {
		_ = d.Close()
		cancel()
	})
	t.Cleanup(leave)
	return d, leave
}

// administrator is a client that the cluster's API allows everything, and the API's address.
func administrator(t *testing.T) (client *http.Client, host string) {
	t.Helper()
	config, _, err := Config{Kubeconfig: filepath.Join(cluster(t), "kubeconfig")}.connection()
	if err == nil {
		client, err = rest.HTTPClientFor(config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return client, config.Host
}

// pod is that of an attempt, as the cluster's API has it.
func (s *site) pod(t *testing.T, k executor.Key) *corev1.Pod {
	t.Helper()
	name := ""
	drivertest.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, o := range s.cluster.podStore.List() {
			if p := o.(*pod); p.Annotations["millrace.dev/run"] == string(k.Run) {
				name = p.Name
			}
		}
		return name != ""
	}, func() string { return "there is no pod of " + k.Folder() })
	client, host := administrator(t)
	answer, err := client.Get(host + "/api/v1/namespaces/" + s.config.Namespace + "/pods/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	found := &corev1.Pod{}
	if err := json.NewDecoder(answer.Body).Decode(found); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the pod %s: %s, %v", name, answer.Status, err)
	}
	return found
}

// shims are the processes of an attempt's shim, on the machine that the node is.
func shims(id string) (pids []int) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range list {
		line, _ := os.ReadFile(file)
		if !bytes.HasPrefix(line, []byte(shimFile+"\x00-attempt")) {
			continue
		}
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if bytes.Contains(env, []byte("MILLRACE_ATTEMPT_ID="+id+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// sites makes drivers on folders: those on the same folder are of one site.
func sites() drivertest.Maker {
	var mu sync.Mutex
	known := map[string]*site{}
	return func(t testing.TB, folder string) drivertest.Subject {
		t.Helper()
		mu.Lock()
		s := known[folder]
		if s == nil {
			s = newSite(t)
			known[folder] = s
		}
		mu.Unlock()
		return s.subject(t)
	}
}

func (s *site) subject(t testing.TB) drivertest.Subject {
	d, leave := s.open(t)
	return drivertest.Subject{
		NoRuns: true,
		Driver: bare{d}, Leave: leave, Stage: drivertest.StageIn(s.objects),
		Lose: func(t *testing.T, spec executor.Spec) {
			for _, pid := range shims(remote.ID(spec.Key)) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		},
		Work: func(t *testing.T, spec executor.Spec) string {
			return filepath.Join(cluster(t), "kubelet/pods", string(s.pod(t, spec.Key).UID), "volumes/kubernetes.io~empty-dir/task/work")
		},
	}
}

// fixture is a driver with its site.
func fixture(t *testing.T) (*drivertest.Fixture, *site) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "attempts")
	s := newSite(t)
	return &drivertest.Fixture{Subject: s.subject(t), Folder: folder}, s
}

func TestKubernetesIsADriver(t *testing.T) {
	t.Parallel()
	cluster(t)
	t.Run("promises", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, sites())
	})
	t.Run("of real processes", func(t *testing.T) {
		t.Parallel()
		drivertest.RunReal(t, sites())
	})
}

// control ends or starts a daemon of the cluster.
func control(t *testing.T, what, daemon string) {
	t.Helper()
	if out, err := exec.Command(filepath.Join(cluster(t), "control"), what, daemon).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v %s", what, daemon, err, out)
	}
}

const waits = "echo ran; while [ ! -e go ]; do sleep 0.02; done; exit 4"

func ranOnce(t *testing.T, b *drivertest.Fixture, h executor.Handle) {
	t.Helper()
	seen := b.End(t, h)
	if seen.Reason != executor.ExitedNonZero || seen.Exit.Code != 4 || b.Log(t, h, 0) != "ran\n" {
		t.Errorf("ended as %s (%s), %+v; log: %q", seen.Reason, seen.Detail, seen.Exit, b.Log(t, h, 0))
	}
}

func TestATaskOutlivesTheClustersDaemons(t *testing.T) {
	b, _ := fixture(t)
	s := b.Spec(t, waits)
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "ran\n")
	work := b.WorkOf(t, s)
	daemons := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "containerd"}
	for _, name := range daemons {
		control(t, "kill", name)
	}
	for _, name := range daemons {
		control(t, "start", name)
	}
	touch(t, work)
	ranOnce(t, b, h)
	again := b.Spec(t, "exit 4")
	if seen := b.Do(t, again); seen.Reason != executor.ExitedNonZero {
		t.Errorf("afterwards a task is %s: %s", seen.Reason, seen.Detail)
	}
}

func TestWhatKubernetesCannotDoIsSaid(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.config.PodTemplate = ""
	b := &drivertest.Fixture{Subject: s.subject(t), Folder: t.TempDir()}
	large := b.Spec(t, "true")
	large.VCPU = 1000
	h := b.Submit(t, large)
	seen := b.Await(t, h, func(seen executor.Status) bool { return seen.Reason == executor.Unschedulable })
	if seen.Phase != executor.Pending || !strings.Contains(seen.Detail, "Insufficient cpu") {
		t.Errorf("%s: %s", seen.Phase, seen.Detail)
	}
	if err := b.Stop(t.Context(), executor.NoRun, h, 0); err != nil {
		t.Fatal(err)
	}
	if seen := b.End(t, h); seen.Reason != executor.Cancelled {
		t.Errorf("%s: %s", seen.Reason, seen.Detail)
	}

	missing := b.Spec(t, "true")
	missing.Root = "localhost/no-such-image:1"
	if seen := b.Do(t, missing); seen.Reason != executor.ImageUnavailable || !strings.Contains(seen.Detail, "no-such-image") {
		t.Errorf("%s: %s", seen.Reason, seen.Detail)
	}
	if caps := s.cluster.Capabilities(t.Context()); !caps.Ready || caps.VCPU < 1 || caps.MemoryBytes < 1<<30 {
		t.Errorf("%+v", caps)
	}
}

// A task is shut in: it has no rights, reaches neither the API nor its shim's
// memory, and is described without what it was given.
func TestATaskIsShutIn(t *testing.T) {
	t.Parallel()
	b, s := fixture(t)
	spec := b.Spec(t, `fails() { if ( "$@" ) >/dev/null 2>&1; then echo "not refused: $*"; fi; }
[ "$(id -u)" != 0 ] || echo root
fails touch /bin/x; fails touch /millrace/x; fails cat /proc/1/environ; fails cat /proc/1/maps; fails head -c 1 /proc/1/mem
fails cat /var/run/secrets/kubernetes.io/serviceaccount/token; fails mount -t tmpfs none /task/tmp; fails chroot / true
env | grep -E 'MILLRACE_ATTEMPT|KUBERNETES' || true
grep -E '^Cap(Eff|Bnd)' /proc/self/status | grep -v 0000000000000000 || true
grep -q 'NoNewPrivs.*1' /proc/self/status || echo may gain privileges
grep -q 'Seccomp:.*2' /proc/self/status || echo without seccomp
touch /tmp/x "$TMPDIR/y" z; echo "$SECRET_A" | tr a-z A-Z; echo done; while [ ! -e go ]; do sleep 0.02; done`)
	spec.Env, spec.Secrets = map[string]string{"SECRET_A": "correct-horse-battery", "PLAIN": "plain-value"}, []string{"correct-horse-battery"}
	h := b.Submit(t, spec)
	drivertest.Eventually(t, func() bool { return strings.HasSuffix(b.Log(t, h, 0), "done\n") }, func() string { return b.Log(t, h, 0) })
	if log := b.Log(t, h, 0); log != "CORRECT-HORSE-BATTERY\ndone\n" {
		t.Errorf("it can, or cannot: %s", log)
	}
	text, err := json.Marshal(s.pod(t, spec.Key))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"correct-horse", "plain-value", "touch /bin/x"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("its pod says %s", secret)
		}
	}
	nobodyMayAsk(t, s.config.Namespace)
	b.LetGo(t, spec)
	if seen := b.End(t, h); seen.Reason != executor.ExitedZero || seen.Host != "millrace-node" {
		t.Errorf("%s on %s: %s", seen.Reason, seen.Host, seen.Detail)
	}
	ticket := ""
	for _, v := range s.pod(t, spec.Key).Spec.Containers[1].Env {
		if v.Name == "MILLRACE_ATTEMPT_TICKET" {
			ticket = v.Value
		}
	}
	body := `{"version":1,"fence":"` + spec.Fence + `","ticket":"` + ticket + `","session":"` + strings.Repeat("x", 52) + `"}`
	answer, err := http.Post("http://"+s.listen+"/attempts/"+remote.ID(spec.Key)+"/begin", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusGone {
		t.Errorf("the ticket that the pod shows is good for %d", answer.StatusCode)
	}
}

// nobodyMayAsk asks the cluster's API as a task can, which has no token: as nobody.
func nobodyMayAsk(t *testing.T, namespace string) {
	t.Helper()
	config, _, err := Config{Kubeconfig: filepath.Join(cluster(t), "kubeconfig")}.connection()
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/nodes", "/api/v1/namespaces/" + namespace + "/pods", "/api/v1/namespaces/" + namespace + "/secrets", "/apis/batch/v1/namespaces/" + namespace + "/jobs"} {
		answer, err := client.Get(config.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != http.StatusForbidden && answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s answers nobody with %d", path, answer.StatusCode)
		}
	}
}

// patchNode changes what the cluster knows of its node.
func patchNode(t *testing.T, of, kind, patch string) {
	t.Helper()
	client, host := administrator(t)
	r, err := http.NewRequest(http.MethodPatch, host+"/api/v1/nodes/millrace-node"+of, strings.NewReader(patch))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusOK {
		t.Fatalf("the node says %d", answer.StatusCode)
	}
}

// The GPUs of the node are pretended; that they are counted and set aside is not.
func TestGPUsAreCountedAndSetAside(t *testing.T) {
	t.Parallel()
	patchNode(t, "/status", "application/json-patch+json",
		`[{"op":"add","path":"/status/capacity/nvidia.com~1gpu","value":"2"},{"op":"add","path":"/status/allocatable/nvidia.com~1gpu","value":"2"}]`)
	b, _ := fixture(t)
	one, two := b.Spec(t, waits), b.Spec(t, "exit 4")
	one.GPU, two.GPU = 1, 2
	first := b.Submit(t, one)
	b.AwaitLog(t, first, "ran\n")
	second := b.Submit(t, two)
	seen := b.Await(t, second, func(s executor.Status) bool { return s.Reason == executor.Unschedulable })
	if !strings.Contains(seen.Detail, "Insufficient nvidia.com/gpu") {
		t.Errorf("two of one: %s", seen.Detail)
	}
	b.LetGo(t, one)
	ranOnce(t, b, first)
	if seen := b.End(t, second); seen.Reason != executor.ExitedNonZero {
		t.Errorf("two of two: %s %s", seen.Reason, seen.Detail)
	}
}
