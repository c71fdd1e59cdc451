package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// kubernetesHost is this machine as pods of the cluster see it.
const kubernetesHost = "10.201.0.1"

// places are where pods have the programs of this machine, so that both of a pair run
// the same, and the folder of their notes.
func places(folder string) (mounts, volumes []map[string]any) {
	for i, path := range []string{"/usr", "/bin", "/lib", "/lib64", folder} {
		name := fmt.Sprint("host", i)
		mounts = append(mounts, map[string]any{"name": name, "mountPath": path, "readOnly": path != folder})
		volumes = append(volumes, map[string]any{"name": name, "hostPath": map[string]any{"path": path}})
	}
	return mounts, volumes
}

// little is what every container asks for: the node pretends to have no disk.
var little = map[string]any{"requests": map[string]any{"cpu": "5m", "memory": "8Mi", "ephemeral-storage": "0"}}

// onKubernetes has pods reach our server, which listens for this machine alone, at an
// address of theirs.
func onKubernetes(s settings, folder string) (_ func(command string) error, _ func(), err error) {
	l, err := net.Listen("tcp", kubernetesHost+":0")
	if err != nil {
		return nil, nil, err
	}
	run, stop, err := engineServer(s, "kubernetes", func(addr, dir string) ([]string, error) {
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
		proxy.ErrorLog = log.New(io.Discard, "", 0) // a shim that has ended does not wait for an answer
		go http.Serve(l, proxy)                     //nolint:errcheck // until it is closed
		mounts, volumes := places(folder)
		template, err := json.Marshal(map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "task", "resources": little, "volumeMounts": mounts}},
			"volumes":    volumes,
		}})
		file := filepath.Join(dir, "pods.json")
		return []string{
			"--attempts-url", "http://" + l.Addr().String(), "--kubernetes-config", filepath.Join(os.Getenv("MILLRACE_TEST_KUBERNETES"), "kubeconfig"), "--kubernetes-namespace", "default",
			"--kubernetes-image", "localhost/task:1", "--kubernetes-shim-image", "localhost/millrace-attempt:1", "--kubernetes-pod-template", file, "--capacity", "vcpu=16,ramGb=64",
		}, errors.Join(err, os.WriteFile(file, template, 0o600))
	})
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	return run, func() { stop(); l.Close() }, nil
}

// cluster is the API of Kubernetes.
type cluster struct {
	client      http.Client
	host, token string
	folder      string
}

// byJob makes a Job as a person would, and follows its pod, which is known to have
// ended before its Job is.
func byJob(folder string) (run func(command string) error, err error) {
	config, err := os.ReadFile(filepath.Join(os.Getenv("MILLRACE_TEST_KUBERNETES"), "kubeconfig"))
	if err != nil {
		return nil, err
	}
	found := func(field string) string {
		if m := regexp.MustCompile(field + `: "?([^",}]+)`).FindSubmatch(config); m != nil {
			return string(m[1])
		}
		return ""
	}
	authority, err := os.ReadFile(found("certificate-authority"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	k := &cluster{host: found("server"), token: found("token"), folder: folder, client: http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}}
	return k.job, nil
}

func (k *cluster) job(command string) error {
	mounts, volumes := places(k.folder)
	name := fmt.Sprintf("bare-%d", time.Now().UnixNano())
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{"backoffLimit": 0, "ttlSecondsAfterFinished": 5, "template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "automountServiceAccountToken": false, "volumes": volumes,
			"containers": []any{map[string]any{"name": "task", "image": "localhost/task:1", "command": []string{"/bin/sh", "-c", command}, "resources": little, "volumeMounts": mounts}},
		}}},
	})
	if err != nil {
		return err
	}
	made, err := k.ask(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", body)
	if err != nil {
		return err
	}
	made.Body.Close()
	events, err := k.ask(http.MethodGet, "/api/v1/namespaces/default/pods?watch=true&labelSelector="+url.QueryEscape("job-name="+name), nil)
	if err != nil {
		return err
	}
	defer events.Body.Close()
	for d := json.NewDecoder(events.Body); ; {
		var e struct {
			Object struct{ Status struct{ Phase string } }
		}
		if err := d.Decode(&e); err != nil {
			return err
		}
		switch e.Object.Status.Phase {
		case "Succeeded":
			return nil
		case "Failed":
			return errors.New("the bare Job failed")
		}
	}
}

func (k *cluster) ask(method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequest(method, k.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+k.token)
	answer, err := k.client.Do(r)
	if err == nil && answer.StatusCode >= 300 {
		answer.Body.Close()
		return nil, fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return answer, err
}
