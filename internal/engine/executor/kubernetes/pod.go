package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

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

// jobFor is an attempt as a Job. Nothing in it is secret for longer than until the
// shim has begun.
func (k *Cluster) jobFor(j reconciler.Job) (*batchv1.Job, error) {
	ours := map[string]string{managedBy: "millrace", installationLabel: k.config.Installation}
	about := map[string]string{
		"millrace.dev/run": string(j.Key.Run), "millrace.dev/node": j.Key.Node, "millrace.dev/shard": strconv.Itoa(j.Key.Shard), "millrace.dev/number": strconv.Itoa(j.Key.Attempt),
	}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: about}, Spec: k.podSpec(j)}
	if err := k.patch(&pod); err != nil {
		return nil, err
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	maps.Copy(pod.Labels, ours)
	pod.Labels[attemptLabel] = j.Name
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name, Namespace: k.namespace, Labels: ours, Annotations: about},
		Spec: batchv1.JobSpec{
			Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(0)), PodReplacementPolicy: new(batchv1.Failed),
			TTLSecondsAfterFinished: new(int32(kept.Seconds())), Template: pod,
		},
	}, nil
}

// patch applies the operator's own template.
func (k *Cluster) patch(pod *corev1.PodTemplateSpec) error {
	if k.template == nil {
		return nil
	}
	text, err := json.Marshal(pod)
	if err == nil {
		text, err = strategicpatch.StrategicMergePatch(text, k.template, corev1.PodTemplateSpec{})
	}
	if err != nil {
		return fmt.Errorf("--kubernetes-pod-template: %w", err)
	}
	*pod = corev1.PodTemplateSpec{}
	err = json.Unmarshal(text, pod)
	slices.SortStableFunc(pod.Spec.Containers, shimFirst)
	return err
}

func (k *Cluster) podSpec(j reconciler.Job) corev1.PodSpec {
	tolerations, _ := k.config.tolerations() // which were checked
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		ServiceAccountName: k.config.ServiceAccount, PriorityClassName: k.config.PriorityClass, NodeSelector: k.config.NodeSelector, Tolerations: tolerations,
		TerminationGracePeriodSeconds: new(int64(math.Ceil((j.Grace + delivery).Seconds()))),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)), FSGroup: new(int64(user)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: []corev1.Volume{
			{Name: "task", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "millrace", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
		Containers: []corev1.Container{k.shim(), k.container(j)},
	}
	if k.config.RuntimeClass != "" {
		spec.RuntimeClassName = &k.config.RuntimeClass
	}
	if j.Timeout > 0 {
		spec.ActiveDeadlineSeconds = new(int64((j.Timeout + transfers).Seconds()))
	}
	for _, name := range k.config.PullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
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
func (k *Cluster) shim() corev1.Container {
	program := func(args []string) []string { return append([]string{"/millrace-attempt"}, args...) }
	memory := *resource.NewQuantity(copyMemory, resource.BinarySI)
	return corev1.Container{
		Name: shimContainer, Image: k.config.ShimImage, Command: program(shimremote.AttendArguments(shimFile)),
		Lifecycle: &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: program(shimremote.CopyArguments(shimFile))}}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(copyCPU, resource.DecimalSI), corev1.ResourceMemory: memory},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: memory},
		},
		SecurityContext: hardened(), VolumeMounts: []corev1.VolumeMount{{Name: "millrace", MountPath: "/millrace"}},
	}
}

// shimFirst is the order in which containers are started, whatever a template has made
// of it.
func shimFirst(a, b corev1.Container) int {
	rank := func(c corev1.Container) int {
		if c.Name == shimContainer {
			return 0
		}
		return 1
	}
	return rank(a) - rank(b)
}

func (k *Cluster) container(j reconciler.Job) corev1.Container {
	image := j.Image
	if image == "" {
		image = k.config.Image
	}
	return corev1.Container{
		Name: taskContainer, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: append([]string{shimFile}, shimremote.Arguments()...), WorkingDir: remote.Top,
		Env: []corev1.EnvVar{
			{Name: shimremote.URLVariable, Value: k.config.URL},
			{Name: shimremote.CAVariable, Value: k.config.CA},
			{Name: shimremote.IDVariable, Value: j.ID},
			{Name: shimremote.FenceVariable, Value: j.Fence},
			{Name: shimremote.TicketVariable, Value: j.Ticket},
			{Name: shimremote.NodeVariable, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
		},
		Resources: k.resources(j), SecurityContext: hardened(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{
			{Name: "task", MountPath: remote.Top}, {Name: "task", MountPath: "/tmp", SubPath: "tmp"}, {Name: "millrace", MountPath: "/millrace", ReadOnly: true},
		},
	}
}

func hardened() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// resources are what a task asked for: as much is set aside as it may use.
func (k *Cluster) resources(j reconciler.Job) corev1.ResourceRequirements {
	list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(math.Ceil(j.VCPU*1000)), resource.DecimalSI)}
	if j.MemoryBytes > 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(j.MemoryBytes+shimMemory, resource.BinarySI)
	}
	if j.GPU > 0 {
		list[k.gpu()] = *resource.NewQuantity(int64(j.GPU), resource.DecimalSI)
	}
	limits := maps.Clone(list)
	if j.DiskBytes > 0 { // most tasks write far less than they may
		list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(j.InputBytes+diskRoom, resource.BinarySI)
		limits[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(j.InputBytes+j.DiskBytes+diskRoom, resource.BinarySI)
	}
	return corev1.ResourceRequirements{Requests: list, Limits: limits}
}
