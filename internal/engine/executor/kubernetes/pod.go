package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/remote"
	shimremote "github.com/millrace/millrace/internal/engine/executor/shim/remote"
)

const (
	// shimMemory is what a shim takes beside its command.
	shimMemory = 48 << 20
	// kept is how long Kubernetes keeps a job that nobody has collected.
	kept = 24 * time.Hour
	// transfers is how long a pod may take beside its command, for its files.
	transfers = 24 * time.Hour
	// delivery is how long a shim may take to say how its command ended.
	delivery = 30 * time.Second

	user     = 65532 // nobody's in particular
	shimFile = "/millrace/attempt"
	diskRoom = 1 << 30 // beside what a command writes, for its log and for code

	// What the container takes that copies the shim; it may use more of a processor,
	// for a moment.
	copyCPU    = 10 // thousandths
	copyMemory = 64 << 20
)

// jobFor is an attempt as a Job, in JSON. Nothing in it is secret for longer than until
// the shim has begun.
func (k *Cluster) jobFor(j reconciler.Job) ([]byte, error) {
	ours := map[string]string{managedBy: "millrace", installationLabel: k.config.Installation}
	about := map[string]string{
		"millrace.dev/run": string(j.Key.Run), "millrace.dev/node": j.Key.Node, "millrace.dev/shard": strconv.Itoa(j.Key.Shard), "millrace.dev/number": strconv.Itoa(j.Key.Attempt),
	}
	pod, err := k.patch(object{"metadata": object{"annotations": about}, "spec": k.podSpec(j)})
	if err == nil { // by these the pod is found, whatever a template says
		pod, err = merge(pod, object{"metadata": object{"labels": object{managedBy: "millrace", installationLabel: k.config.Installation, attemptLabel: j.Name}}})
	}
	if err != nil {
		return nil, fmt.Errorf("--kubernetes-pod-template: %w", err)
	}
	return json.Marshal(object{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": object{"name": j.Name, "namespace": k.namespace, "labels": ours, "annotations": about},
		"spec": object{
			"parallelism": 1, "completions": 1, "backoffLimit": 0, "podReplacementPolicy": "Failed",
			"ttlSecondsAfterFinished": int(kept.Seconds()), "template": pod,
		},
	})
}

// patch applies the operator's own template.
func (k *Cluster) patch(pod object) (object, error) {
	text, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	var plain object // of nothing but objects, lists and values
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	if plain, err = merge(plain, k.template); err != nil {
		return nil, err
	}
	if spec, ok := plain["spec"].(object); ok {
		containers, _ := spec["containers"].([]any)
		slices.SortStableFunc(containers, shimFirst)
	}
	return plain, nil
}

func (k *Cluster) podSpec(j reconciler.Job) object {
	tolerations, _ := k.config.tolerations() // which were checked
	spec := object{
		"restartPolicy": "Never", "automountServiceAccountToken": false, "enableServiceLinks": false,
		"terminationGracePeriodSeconds": int64(math.Ceil((j.Grace + delivery).Seconds())),
		"securityContext": object{
			"runAsNonRoot": true, "runAsUser": user, "runAsGroup": user, "fsGroup": user, "seccompProfile": object{"type": "RuntimeDefault"},
		},
		"volumes":    []object{{"name": "task", "emptyDir": object{}}, {"name": "millrace", "emptyDir": object{}}},
		"containers": []object{k.shim(), k.container(j)},
	}
	for name, value := range map[string]string{"serviceAccountName": k.config.ServiceAccount, "priorityClassName": k.config.PriorityClass, "runtimeClassName": k.config.RuntimeClass} {
		if value != "" {
			spec[name] = value
		}
	}
	if len(k.config.NodeSelector) > 0 {
		spec["nodeSelector"] = k.config.NodeSelector
	}
	if len(tolerations) > 0 {
		spec["tolerations"] = tolerations
	}
	if j.Timeout > 0 {
		spec["activeDeadlineSeconds"] = int64((j.Timeout + transfers).Seconds())
	}
	if len(k.config.PullSecrets) > 0 {
		var secrets []object
		for _, name := range k.config.PullSecrets {
			secrets = append(secrets, object{"name": name})
		}
		spec["imagePullSecrets"] = secrets
	}
	return spec
}

// The containers of a pod.
const (
	shimContainer = "shim"
	taskContainer = "task"
)

// shim brings the program beside the command. It is no init container, whose end the
// kubelet notices up to a second later: containers are started one after the other,
// and the next one when what the one before does at its start is done.
func (k *Cluster) shim() object {
	program := func(args []string) []string { return append([]string{"/millrace-attempt"}, args...) }
	return object{
		"name": shimContainer, "image": k.config.ShimImage, "command": program(shimremote.AttendArguments(shimFile)),
		"lifecycle": object{"postStart": object{"exec": object{"command": program(shimremote.CopyArguments(shimFile))}}},
		"resources": object{
			"requests": object{"cpu": thousandths(copyCPU), "memory": quantity(copyMemory)},
			"limits":   object{"memory": quantity(copyMemory)},
		},
		"securityContext": hardened(), "volumeMounts": []object{{"name": "millrace", "mountPath": "/millrace"}},
	}
}

// quantity is a number as Kubernetes writes one.
func quantity(n int64) string { return strconv.FormatInt(n, 10) }

func thousandths(n int64) string { return quantity(n) + "m" }

// shimFirst is the order in which containers are started, whatever a template has made
// of it.
func shimFirst(a, b any) int {
	rank := func(container any) int {
		if c, _ := container.(object); c["name"] == shimContainer {
			return 0
		}
		return 1
	}
	return rank(a) - rank(b)
}

func (k *Cluster) container(j reconciler.Job) object {
	return object{
		"name": taskContainer, "image": cmp.Or(j.Image, k.config.Image), "imagePullPolicy": "IfNotPresent",
		"command": append([]string{shimFile}, shimremote.Arguments()...), "workingDir": remote.Top,
		"env": []object{
			{"name": shimremote.URLVariable, "value": k.config.URL},
			{"name": shimremote.CAVariable, "value": k.config.CA},
			{"name": shimremote.IDVariable, "value": j.ID},
			{"name": shimremote.FenceVariable, "value": j.Fence},
			{"name": shimremote.TicketVariable, "value": j.Ticket},
			{"name": shimremote.NodeVariable, "valueFrom": object{"fieldRef": object{"fieldPath": "spec.nodeName"}}},
		},
		"resources": k.resources(j), "securityContext": hardened(), "terminationMessagePolicy": "FallbackToLogsOnError",
		"volumeMounts": []object{
			{"name": "task", "mountPath": remote.Top}, {"name": "task", "mountPath": "/tmp", "subPath": "tmp"}, {"name": "millrace", "mountPath": "/millrace", "readOnly": true},
		},
	}
}

func hardened() object {
	return object{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": []string{"ALL"}}}
}

// resources are what a task asked for: as much is set aside as it may use.
func (k *Cluster) resources(j reconciler.Job) object {
	requests := object{"cpu": thousandths(int64(math.Ceil(j.VCPU * 1000)))}
	if j.MemoryBytes > 0 {
		requests["memory"] = quantity(j.MemoryBytes + shimMemory)
	}
	if j.GPU > 0 {
		requests[k.gpu()] = quantity(int64(j.GPU))
	}
	limits := maps.Clone(requests)
	if j.DiskBytes > 0 { // most tasks write far less than they may
		requests["ephemeral-storage"] = quantity(j.InputBytes + diskRoom)
		limits["ephemeral-storage"] = quantity(j.InputBytes + j.DiskBytes + diskRoom)
	}
	return object{"requests": requests, "limits": limits}
}
