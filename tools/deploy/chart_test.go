package deploy

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	chartFolder  = "../../deploy/helm/millrace"
	plainFile    = "../../deploy/kubernetes/platform/millrace.yaml"
	valuesFile   = "../../deploy/kubernetes/platform/values.yaml"
	plainHeading = "# Rendered from deploy/helm/millrace with values.yaml beside this: go -C tools/deploy test -run Plain -update\n"
)

var update = flag.Bool("update", false, "write the plain manifests")

// render is the chart's text with values, as helm makes it.
func render(values map[string]any, namespace string) (string, error) {
	chart, err := loader.Load(chartFolder)
	if err != nil {
		return "", err
	}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: "millrace", Namespace: namespace, IsInstall: true, Revision: 1}, nil)
	if err != nil {
		return "", err
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(context.Background(), chart, all)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.TrimSpace(files[name]); strings.HasSuffix(name, ".yaml") && text != "" {
			b.WriteString("---\n" + text + "\n")
		}
	}
	return b.String(), nil
}

// exampleValues are those of the plain manifests, which a test may change.
func exampleValues(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(valuesFile)
	if err != nil {
		t.Fatal(err)
	}
	values, err := loader.LoadValues(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func objects(t *testing.T, text string) (list []*unstructured.Unstructured) {
	t.Helper()
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var one map[string]any
		err := documents.Decode(&one)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(one) > 0 {
			list = append(list, &unstructured.Unstructured{Object: one})
		}
	}
}

func find(t *testing.T, list []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range list {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

func TestThePlainManifestsAreTheChart(t *testing.T) {
	text, err := render(exampleValues(t), "millrace")
	if err != nil {
		t.Fatal(err)
	}
	text = plainHeading + text
	if *update {
		if err := os.WriteFile(plainFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if there, err := os.ReadFile(plainFile); err != nil || string(there) != text {
		t.Errorf("the plain manifests are not what the chart says (%v): go -C tools/deploy test -run Plain -update", err)
	}
}

func TestTheChartRefusesValuesThatCannotWork(t *testing.T) {
	for name, spoil := range map[string]func(map[string]any){
		"no secret":               func(v map[string]any) { delete(v, "existingSecret") },
		"no address":              func(v map[string]any) { v["publicUrls"] = []any{} },
		"an address with a path":  func(v map[string]any) { v["publicUrls"] = []any{"https://example.org/millrace"} },
		"a secret in plain sight": func(v map[string]any) { v["settings"] = map[string]any{"secret-key": "x"} },
		"a misspelled name":       func(v map[string]any) { v["existingSecrets"] = "x" },
		"no image of tasks":       func(v map[string]any) { delete(v, "tasks") },
		"an ingress to nowhere":   func(v map[string]any) { v["ingress"] = map[string]any{"enabled": true} },
	} {
		values := exampleValues(t)
		if _, err := render(values, "millrace"); err != nil {
			t.Fatal(err)
		}
		spoil(values)
		if _, err := render(values, "millrace"); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// With every optional part the other way round, nothing of it is left.
func TestPartsOfTheChartCanBeLeftOut(t *testing.T) {
	values := exampleValues(t)
	values["server"] = map[string]any{"autoscaling": map[string]any{"enabled": false}, "replicas": 3}
	values["ingress"] = map[string]any{"enabled": false}
	values["networkPolicy"] = map[string]any{"enabled": false}
	values["tasks"] = map[string]any{"image": "a", "shimImage": "b", "capacity": "vcpu=8,ramGb=32"}
	text, err := render(values, "millrace")
	if err != nil {
		t.Fatal(err)
	}
	list := objects(t, text)
	for _, o := range list {
		if slices.Contains([]string{"Ingress", "HorizontalPodAutoscaler", "NetworkPolicy", "ClusterRole", "ClusterRoleBinding"}, o.GetKind()) {
			t.Errorf("%s %s is there", o.GetKind(), o.GetName())
		}
	}
	if n, _, _ := unstructured.NestedFieldNoCopy(find(t, list, "Deployment", "millrace-server").Object, "spec", "replicas"); fmt.Sprint(n) != "3" {
		t.Errorf("%v servers", n)
	}
}

// What a worker may is what docs/operating/kubernetes.md says, whoever installs it.
func TestWorkersHaveTheLeastRights(t *testing.T) {
	text, err := os.ReadFile("../../deploy/kubernetes/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := render(exampleValues(t), "millrace")
	if err != nil {
		t.Fatal(err)
	}
	by, chart := objects(t, string(text)), objects(t, rendered)
	for kind, names := range map[string][2]string{"Role": {"millrace", "millrace-worker"}, "ClusterRole": {"millrace-nodes", "millrace-millrace-nodes"}} {
		want, got := find(t, by, kind, names[0]).Object["rules"], find(t, chart, kind, names[1]).Object["rules"]
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

// A variable that no setting has would be ignored in silence.
func TestDeploymentsNameSettingsThatExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/operating/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := render(exampleValues(t), "millrace")
	if err != nil {
		t.Fatal(err)
	}
	compose, err := os.ReadFile("../../deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ours := []string{"HOST", "IMAGE", "WORKER_IMAGE"} // of the compose file itself
	for _, used := range regexp.MustCompile(`MILLRACE_([A-Z_]+)`).FindAllStringSubmatch(rendered+string(compose), -1) {
		name := "`--" + strings.ToLower(strings.ReplaceAll(used[1], "_", "-")) + "`"
		if !slices.Contains(ours, used[1]) && !bytes.Contains(page, []byte(name)) {
			t.Errorf("there is no setting %s", name)
		}
	}
}
