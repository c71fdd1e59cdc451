package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/millrace/millrace/internal/engine/executor/drivertest"
)

// platformFile is what our chart makes, which a test beside the chart holds equal.
const platformFile = "../../../../deploy/kubernetes/platform/millrace.yaml"

// api is that of the cluster, for somebody who may do everything.
type api struct {
	t      *testing.T
	client *http.Client
	host   string
}

func newAPI(t *testing.T) api {
	t.Helper()
	config, _, err := Config{Kubeconfig: filepath.Join(cluster(t), "kubeconfig")}.connection()
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return api{t, client, config.Host}
}

// ask sends an object, if there is one, and reads the answer into another. A warning,
// as of a field that is no more, fails the test.
func (a api) ask(method, path string, send, into any) {
	a.t.Helper()
	var body io.Reader
	if send != nil {
		text, err := json.Marshal(send)
		if err != nil {
			a.t.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequest(method, a.host+path, body)
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := a.client.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		a.t.Fatalf("%s %s: %s %s %v", method, path, answer.Status, text, err)
	}
	if warning := answer.Header.Get("Warning"); warning != "" {
		a.t.Errorf("%s %s: %s", method, path, warning)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			a.t.Fatal(err)
		}
	}
}

// collection is where objects of a kind are.
func collection(object map[string]any) string {
	version, kind := object["apiVersion"].(string), strings.ToLower(object["kind"].(string))
	path := "/apis/" + version
	if !strings.Contains(version, "/") {
		path = "/api/" + version
	}
	if namespace, ok := object["metadata"].(map[string]any)["namespace"].(string); ok {
		path += "/namespaces/" + namespace
	}
	switch {
	case strings.HasSuffix(kind, "y"):
		kind = strings.TrimSuffix(kind, "y") + "ies"
	case strings.HasSuffix(kind, "ss"):
		kind += "es"
	default:
		kind += "s"
	}
	return path + "/" + kind
}

// What is to be applied for servers and workers goes to a namespace that only takes
// restricted pods, with no field that the cluster does not know; their pods are made,
// and their accounts may do what they need and no more.
func TestAClusterTakesThePlatform(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	var made corev1.Namespace
	a.ask("POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{
		"generateName": "platform-", "labels": map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"},
	}}, &made)
	t.Cleanup(func() { a.ask("DELETE", "/api/v1/namespaces/"+made.Name, nil, nil) })
	text, err := os.ReadFile(platformFile)
	if err != nil {
		t.Fatal(err)
	}
	there := strings.ReplaceAll(string(text), "namespace: millrace\n", "namespace: "+made.Name+"\n")
	documents := strings.Split(there, "\n---\n")[1:] // after the heading
	for _, document := range documents {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		path := collection(object)
		a.ask("POST", path+"?fieldValidation=Strict", object, nil)
		if meta := object["metadata"].(map[string]any); meta["namespace"] == nil {
			t.Cleanup(func() { a.ask("DELETE", path+"/"+meta["name"].(string), nil, nil) })
		}
	}
	if len(documents) < 15 {
		t.Errorf("only %d objects are in the file", len(documents))
	}
	for _, component := range []string{"server", "worker", "migrate"} {
		drivertest.Eventually(t, func() bool {
			var pods corev1.PodList
			a.ask("GET", "/api/v1/namespaces/"+made.Name+"/pods?labelSelector="+url.QueryEscape("app.kubernetes.io/component="+component), nil, &pods)
			return len(pods.Items) > 0
		}, func() string {
			var events corev1.EventList
			a.ask("GET", "/api/v1/namespaces/"+made.Name+"/events", nil, &events)
			said := "there is no pod of a " + component
			for _, e := range events.Items {
				said += "\n" + e.InvolvedObject.Name + " " + e.Message
			}
			return said
		})
	}
	a.checkRights(made.Name)
}

// checkRights asks what the accounts of servers and workers may.
func (a api) checkRights(namespace string) {
	a.t.Helper()
	for _, ask := range []struct {
		account, verb, group, resource string
		want                           bool
	}{
		{"worker", "create", "batch", "jobs", true},
		{"worker", "list", "", "pods", true},
		{"worker", "list", "", "nodes", true},
		{"worker", "get", "", "secrets", false},
		{"worker", "create", "", "pods", false},
		{"worker", "create", "", "pods/exec", false},
		{"server", "list", "", "pods", false},
		{"server", "create", "batch", "jobs", false},
	} {
		in := namespace
		if ask.resource == "nodes" {
			in = ""
		}
		var review authorization.SubjectAccessReview
		a.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
			User:               fmt.Sprintf("system:serviceaccount:%s:millrace-%s", namespace, ask.account),
			ResourceAttributes: &authorization.ResourceAttributes{Namespace: in, Verb: ask.verb, Group: ask.group, Resource: ask.resource},
		}}, &review)
		if review.Status.Allowed != ask.want {
			a.t.Errorf("%+v: %+v", ask, review.Status)
		}
	}
}
