package kubernetes

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

const patched = `
metadata: {labels: {a: "1", b: "2"}, annotations: {c: d}}
spec:
  nodeSelector: {pool: batch, env: test}
  tolerations: [{key: a, operator: Exists}]
  securityContext: {runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  imagePullSecrets: [{name: registry}]
  volumes: [{name: task, emptyDir: {}}, {name: millrace, emptyDir: {sizeLimit: 1Gi}}]
  containers:
  - {name: shim, image: shim:1, volumeMounts: [{name: millrace, mountPath: /millrace}]}
  - name: task
    image: task:1
    command: [/millrace/attempt, serve]
    env: [{name: A, value: "1"}, {name: B, value: "2"}]
    ports: [{containerPort: 80, name: web}]
    resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: "1"}}
    volumeMounts: [{name: task, mountPath: /task}, {name: millrace, mountPath: /millrace, readOnly: true}]
`

// A template means what Kubernetes' own code makes of it.
func TestATemplateIsAStrategicMergePatch(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]string{
		"nothing":                 `{}`,
		"labels":                  `metadata: {labels: {b: "3", team: x}}`,
		"a label goes":            `metadata: {labels: {b: null, none: null}}`,
		"all labels go":           `metadata: {labels: null}`,
		"other labels":            `metadata: {labels: {$patch: replace, team: x}}`,
		"a node":                  `spec: {nodeSelector: {pool: gpu}, priorityClassName: low, hostNetwork: true}`,
		"tolerations":             `spec: {tolerations: [{key: b, operator: Exists}]}`,
		"affinity":                `spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}}`,
		"a secret":                `spec: {imagePullSecrets: [{name: other}, {name: registry}]}`,
		"a container":             `spec: {containers: [{name: beside, image: b, env: [{name: A, value: x}]}]}`,
		"an init container":       `spec: {initContainers: [{name: one, image: a}, {name: two, image: b}]}`,
		"a container goes":        `spec: {containers: [{name: task, $patch: delete}, {name: none, $patch: delete}]}`,
		"other containers":        `spec: {containers: [{$patch: replace}, {name: task, image: other}]}`,
		"the environment":         `spec: {containers: [{name: task, env: [{name: B, value: "3"}, {name: C, value: "4"}, {name: A, $patch: delete}]}]}`,
		"where a variable is":     `spec: {containers: [{name: task, env: [{name: B, value: null, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}]}`,
		"a command":               `spec: {containers: [{name: task, command: [sh]}]}`,
		"resources":               `spec: {containers: [{name: task, resources: {limits: {example.com/fpga: 1, memory: null}}}]}`,
		"a mount":                 `spec: {containers: [{name: task, volumeMounts: [{name: data, mountPath: /data}, {name: task, mountPath: /task, subPath: x}]}], volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}`,
		"another volume":          `spec: {volumes: [{name: task, $retainKeys: [name, hostPath], hostPath: {path: /scratch}}]}`,
		"a volume of another":     `spec: {volumes: [{name: task, emptyDir: null, hostPath: {path: /scratch}}]}`,
		"a port":                  `spec: {containers: [{name: task, ports: [{containerPort: 80, name: http}, {containerPort: 81}]}]}`,
		"security":                `spec: {securityContext: {$patch: delete}}`,
		"security that was there": `spec: {securityContext: {runAsUser: 1000, supplementalGroups: [1, 2]}}`,
		"hosts":                   `spec: {hostAliases: [{ip: 10.0.0.1, hostnames: [a]}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}`,
		"a bad directive":         `spec: {securityContext: {$patch: remove}}`,
		"a bad item":              `spec: {containers: [{image: x}]}`,
		"a bad item, text":        `spec: {containers: [x]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := yaml.YAMLToJSONStrict([]byte(patch))
			if err != nil {
				t.Fatal(err)
			}
			base, err := yaml.YAMLToJSONStrict([]byte(patched))
			if err != nil {
				t.Fatal(err)
			}
			var original, change object
			if err := errors.Join(json.Unmarshal(base, &original), json.Unmarshal(text, &change)); err != nil {
				t.Fatal(err)
			}
			merged, refused := (&Cluster{template: change}).patch(original)
			if strings.HasPrefix(name, "a bad ") { // where Kubernetes' own code refuses it, or panics
				if refused == nil {
					t.Errorf("it is taken: %v", merged)
				}
				return
			}
			theirs, err := strategicpatch.StrategicMergePatch(base, text, corev1.PodTemplateSpec{})
			if err != nil || refused != nil {
				t.Fatal(err, refused)
			}
			text, err = json.Marshal(merged)
			if err != nil {
				t.Fatal(err)
			}
			want, pod := template(t, theirs), template(t, text)
			for _, spec := range []*corev1.PodSpec{&pod.Spec, &want.Spec} {
				sortItems(spec)
			}
			if diff := gocmp.Diff(want, pod); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := merge(object{}, object{"spec": object{"$setElementOrder/containers": []any{}}}); err == nil {
		t.Error("a directive that is not known is passed over")
	}
}

func template(t *testing.T, text []byte) (pod corev1.PodTemplateSpec) {
	t.Helper()
	if err := json.Unmarshal(text, &pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// sortItems sorts what has no order, but that in which it was merged.
func sortItems(spec *corev1.PodSpec) {
	slices.SortFunc(spec.Volumes, func(a, b corev1.Volume) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(spec.ImagePullSecrets, func(a, b corev1.LocalObjectReference) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(spec.Containers, func(a, b corev1.Container) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range spec.Containers {
		slices.SortFunc(c.Env, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
		slices.SortFunc(c.VolumeMounts, func(a, b corev1.VolumeMount) int { return cmp.Compare(a.MountPath, b.MountPath) })
		slices.SortFunc(c.Ports, func(a, b corev1.ContainerPort) int { return cmp.Compare(a.ContainerPort, b.ContainerPort) })
	}
}

func TestTheKeysOfListsAreKubernetesOwn(t *testing.T) {
	t.Parallel()
	found := map[string]string{}
	listed(t, reflect.TypeFor[corev1.PodTemplateSpec](), found, map[reflect.Type]bool{})
	maps.DeleteFunc(found, func(_, key string) bool { return key == "" })
	if diff := gocmp.Diff(found, mergeKeys); diff != "" {
		t.Error(diff)
	}
}

// listed notes the lists of structs below a type, and by which field each is merged.
func listed(t *testing.T, in reflect.Type, found map[string]string, visited map[reflect.Type]bool) {
	t.Helper()
	for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice || in.Kind() == reflect.Map {
		in = in.Elem()
	}
	if in.Kind() != reflect.Struct || visited[in] {
		return
	}
	visited[in] = true
	for f := range in.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
			key := f.Tag.Get("patchMergeKey")
			if before, ok := found[name]; ok && before != key {
				t.Errorf("%s is merged by %q in one place and by %q in another", name, before, key)
			}
			found[name] = key
		}
		listed(t, f.Type, found, visited)
	}
}
