package kubernetes

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
)

// pretended is an API server that knows one job and its pod, in Kubernetes' own types.
type pretended struct {
	t *testing.T

	mu      sync.Mutex
	made    []batchv1.Job
	pods    chan corev1.Pod // as they change
	refuses int             // the status that the next job gets, or 0
}

func (p *pretended) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(status int, object any) {
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(object); err != nil {
			p.t.Error(err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	switch {
	case r.Method == http.MethodPost && kind == "jobs":
		text, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/json" {
			p.t.Error(err, r.Header)
		}
		if p.refuses != 0 {
			reason := map[int]metav1.StatusReason{409: metav1.StatusReasonAlreadyExists, 422: metav1.StatusReasonInvalid, 403: metav1.StatusReasonForbidden}[p.refuses]
			answer(p.refuses, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Message: "said why", Code: int32(p.refuses)})
			return
		}
		made := strict(p.t, text)
		p.made = append(p.made, made)
		answer(http.StatusCreated, made)
	case r.Method == http.MethodDelete:
		answer(http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
	case r.URL.Query().Get("watch") != "":
		p.mu.Unlock()
		p.watch(w, r, kind)
		p.mu.Lock()
	case kind == "jobs":
		list := batchv1.JobList{TypeMeta: metav1.TypeMeta{Kind: "JobList", APIVersion: "batch/v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		list.Items = []batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Name: "millrace-1", Namespace: "n", Labels: map[string]string{installationLabel: "here"}}}}
		answer(http.StatusOK, list)
	case kind == "pods":
		answer(http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
	default:
		answer(http.StatusOK, corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: []corev1.Node{{}}})
	}
}

// watch tells of pods as they change. A list that is asked for as a watch is refused,
// as by servers of old.
func (p *pretended) watch(w http.ResponseWriter, r *http.Request, kind string) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		return
	}
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case pod := <-p.watched(kind):
			pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
			if err := json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": pod}); err != nil {
				p.t.Error(err)
			}
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func (p *pretended) watched(kind string) chan corev1.Pod {
	if kind == "pods" {
		return p.pods
	}
	return nil
}

// What Kubernetes says in its own types is understood, and what we say is in them.
func TestKubernetesOwnTypesAreSpoken(t *testing.T) {
	t.Parallel()
	p := &pretended{t: t, pods: make(chan corev1.Pod)}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","namespace":"n"}}],"current-context":"c"}`, server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := good()
	c.Kubeconfig, c.Installation, c.Log = file, "here", slog.New(slog.DiscardHandler)
	k, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	status := func() (s reconciler.JobStatus) {
		if listing, err := k.Jobs(t.Context()); err == nil {
			s = listing.Jobs["millrace-1"]
		}
		return s
	}
	drivertest.Eventually(t, func() bool { return status().Reason == executor.Queued }, func() string { return fmt.Sprintf("the job is %+v", status()) })
	failed := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "millrace-1-x", Namespace: "n", Labels: map[string]string{attemptLabel: "millrace-1"}, CreationTimestamp: metav1.NewTime(time.Now())}}
	failed.Spec.NodeName = "n1"
	failed.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "task", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}}
	p.pods <- failed
	drivertest.Eventually(t, func() bool { return status().Reason == executor.OutOfMemory && status().Node == "n1" }, func() string { return fmt.Sprintf("the job is %+v", status()) })

	start := func(refuses int) error {
		p.mu.Lock()
		p.refuses = refuses
		p.mu.Unlock()
		_, err := k.Start(t.Context(), reconciler.Job{Name: "millrace-2", ID: "run_1.a.0.1", Fence: "f", Ticket: "t", VCPU: 1})
		return err
	}
	if err := start(0); err != nil || len(p.made) != 1 || p.made[0].Name != "millrace-2" || p.made[0].Namespace != "n" {
		t.Errorf("%v: made %+v", err, p.made)
	}
	if err := start(409); err != nil {
		t.Errorf("a job that is there: %v", err)
	}
	if err := start(422); fault.KindOf(err) != fault.KindInvalid || !strings.Contains(err.Error(), "said why") {
		t.Errorf("a job that cannot be: %v", err)
	}
	if err := start(403); err == nil || fault.KindOf(err) == fault.KindInvalid {
		t.Errorf("no rights: %v", err)
	}
	if err := k.End(t.Context(), "millrace-1"); err != nil {
		t.Error(err)
	}
}
