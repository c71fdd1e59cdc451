package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// onPods are premises whose tasks run on a real Kubernetes, with all that it keeps of
// them: its database, the folders and logs of its node.
func onPods(t *testing.T) *premises {
	t.Helper()
	p := &premises{t: t, pods: kubernetes(t)}
	p.folders = []string{"/var/log/pods"}
	for _, name := range []string{"etcd", "kubelet", "containerd", "log"} {
		p.folders = append(p.folders, filepath.Join(p.pods, name))
	}
	t.Cleanup(func() {
		if p.shims == 0 && !t.Skipped() {
			t.Error("no process of a pod was ever looked at")
		}
	})
	return p
}

// goOnInPods lets the tasks go on that wait for it.
func (p *premises) goOnInPods() {
	p.t.Helper()
	waiting, err := filepath.Glob(filepath.Join(p.pods, "kubelet/pods/*/volumes/kubernetes.io~empty-dir/task/work/waits."+p.port))
	if err != nil || len(waiting) == 0 {
		p.t.Fatalf("no task waits: %v", err)
	}
	for _, file := range waiting {
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), "go"), nil, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}

// kubernetesObjects gives what Kubernetes tells of jobs and pods, and how our shims in
// them were started.
func (p *premises) kubernetesObjects(look func(where string, text []byte)) {
	p.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(p.pods, "kubeconfig"))
	if err != nil {
		p.t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, path := range []string{"/apis/batch/v1/jobs", "/api/v1/pods", "/api/v1/events", "/api/v1/secrets", "/api/v1/configmaps"} {
		answer, err := client.Get(config.Host + path)
		if err != nil {
			p.t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
			p.t.Fatal(path, answer.Status, err)
		}
		look(path, text)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		environment, _ := os.ReadFile(process + "/environ")
		if !bytes.Contains(environment, fmt.Appendf(nil, "MILLRACE_ATTEMPT_URL=http://%s:%s\x00", kubernetesHost, p.port)) {
			continue
		}
		p.shims++
		command, _ := os.ReadFile(process + "/cmdline")
		look("the environment of "+string(command), environment)
		look("the command line of "+string(command), command)
	}
}
