package deploy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	meta1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// TestAClusterTakesTheChart applies all of it to a real cluster, in a namespace that
// only takes restricted pods, and waits until its pods are made.
func TestAClusterTakesTheChart(t *testing.T) {
	folder := os.Getenv("MILLRACE_TEST_KUBERNETES")
	if folder == "" {
		t.Skip("there is no cluster: scripts/with-kubernetes brings one")
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandlerWithContext = failing{t}
	cluster, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	ns, err := cluster.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: meta1.ObjectMeta{
		GenerateName: "chart-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"},
	}}, meta1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cluster.CoreV1().Namespaces().Delete(context.Background(), ns.Name, meta1.DeleteOptions{})
	})
	text, err := render(exampleValues(t), ns.Name)
	if err != nil {
		t.Fatal(err)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(cluster.Discovery()))
	for _, o := range objects(t, text) {
		apply(t, dynamicClient, mapper, o)
	}
	for _, component := range []string{"server", "worker", "migrate"} {
		awaitPod(t, cluster, ns.Name, component)
	}
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
		in := ns.Name
		if ask.resource == "nodes" {
			in = ""
		}
		review, err := cluster.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
			User:               fmt.Sprintf("system:serviceaccount:%s:millrace-%s", ns.Name, ask.account),
			ResourceAttributes: &authorization.ResourceAttributes{Namespace: in, Verb: ask.verb, Group: ask.group, Resource: ask.resource},
		}}, meta1.CreateOptions{})
		if err != nil || review.Status.Allowed != ask.want {
			t.Errorf("%+v: %v %v", ask, review.Status, err)
		}
	}
}

// failing takes what the cluster warns of, such as fields that are no more.
type failing struct{ t *testing.T }

func (f failing) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	f.t.Error(text)
}

// apply has the cluster take an object, with no field that it does not know.
func apply(t *testing.T, client dynamic.Interface, mapper meta.RESTMapper, o *unstructured.Unstructured) {
	t.Helper()
	kind := o.GroupVersionKind()
	found, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatal(err)
	}
	at := dynamic.ResourceInterface(client.Resource(found.Resource))
	if found.Scope.Name() == meta.RESTScopeNameNamespace {
		at = client.Resource(found.Resource).Namespace(o.GetNamespace())
	} else {
		t.Cleanup(func() { _ = at.Delete(context.Background(), o.GetName(), meta1.DeleteOptions{}) })
	}
	if _, err := at.Create(t.Context(), o, meta1.CreateOptions{FieldValidation: meta1.FieldValidationStrict, FieldManager: "test"}); err != nil {
		t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// awaitPod waits until there is a pod of a component: its account, its security and
// its volumes were taken.
func awaitPod(t *testing.T, cluster kubernetes.Interface, namespace, component string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		pods, err := cluster.CoreV1().Pods(namespace).List(t.Context(), meta1.ListOptions{LabelSelector: "app.kubernetes.io/component=" + component})
		if err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) > 0 {
			return
		}
	}
	events, _ := cluster.CoreV1().Events(namespace).List(t.Context(), meta1.ListOptions{})
	for _, e := range events.Items {
		t.Log(e.InvolvedObject.Name, e.Message)
	}
	t.Errorf("there is no pod of a %s", component)
}
