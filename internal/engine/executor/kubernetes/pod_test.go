package kubernetes

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
)

// read is what we see of an object of Kubernetes' own type.
func read[Ours any](t *testing.T, theirs any) *Ours {
	t.Helper()
	text, err := json.Marshal(theirs)
	var ours Ours
	if err == nil {
		err = json.Unmarshal(text, &ours)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &ours
}

// strict is a job that we write, as Kubernetes' own type, which must know every field.
func strict(t *testing.T, text []byte) (job batchv1.Job) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&job); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return job
}

func TestWhatAPodSaysIsUnderstood(t *testing.T) {
	t.Parallel()
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}}
	}
	ended := func(code int32, reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "task", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}}}
	}
	disrupted := func(reason string) corev1.PodStatus {
		s := ended(137, "Error")
		s.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason}}
		return s
	}
	for name, tt := range map[string]struct {
		status corev1.PodStatus
		want   reconciler.JobStatus
	}{
		"no node":            {corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes"}}}, reconciler.JobStatus{Waits: true, Reason: executor.Unschedulable}},
		"it is being made":   {waiting("ContainerCreating"), reconciler.JobStatus{Waits: true, Reason: executor.Starting}},
		"no image":           {waiting("ImagePullBackOff"), reconciler.JobStatus{Waits: true, Reason: executor.ImageUnavailable}},
		"no container":       {waiting("CreateContainerConfigError"), reconciler.JobStatus{Waits: true, Reason: executor.StartFailed}},
		"it runs":            {corev1.PodStatus{Phase: corev1.PodRunning}, reconciler.JobStatus{}},
		"it has ended":       {corev1.PodStatus{Phase: corev1.PodSucceeded}, reconciler.JobStatus{Ended: true, Reason: executor.Lost}},
		"it was killed":      {ended(137, "Error"), reconciler.JobStatus{Ended: true, Reason: executor.Lost}},
		"memory":             {ended(137, "OOMKilled"), reconciler.JobStatus{Ended: true, Reason: executor.OutOfMemory}},
		"time":               {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded"}, reconciler.JobStatus{Ended: true, Reason: executor.TimedOut}},
		"disk":               {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "Pod ephemeral local storage usage exceeds"}, reconciler.JobStatus{Ended: true, Reason: executor.OutOfDisk}},
		"a crowded node":     {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory"}, reconciler.JobStatus{Ended: true, Evicted: true, Reason: executor.Preempted}},
		"a node that lied":   {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"}, reconciler.JobStatus{Ended: true, Evicted: true, Reason: executor.Preempted}},
		"somebody important": {disrupted("PreemptionByScheduler"), reconciler.JobStatus{Ended: true, Evicted: true, Reason: executor.Preempted}},
		"a lost node":        {disrupted("DeletionByTaintManager"), reconciler.JobStatus{Ended: true, Evicted: true, Reason: executor.NodeLost}},
		"no server":          {ended(75, "Error"), reconciler.JobStatus{Ended: true, Reason: executor.NeverStarted}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := seen(&job{}, read[pod](t, &corev1.Pod{Status: tt.status}))
			got.Detail = ""
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestAPodThatIsGivenUpWithItsNodeHasEnded(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Now()}}, Status: corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager"}},
	}}
	if got := seen(&job{}, read[pod](t, p)); !got.Ended || got.Reason != executor.NodeLost {
		t.Errorf("%+v", got)
	}
}

func TestAJobWithoutAPod(t *testing.T) {
	t.Parallel()
	if got := seen(&job{}, nil); !got.Waits || got.Reason != executor.Queued {
		t.Errorf("%+v", got)
	}
	failed := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded"}}}}
	if got := seen(read[job](t, failed), nil); !got.Ended || got.Reason != executor.Lost {
		t.Errorf("%+v", got)
	}
}

func good() Config {
	return Config{Installation: "i", URL: "https://server.example", Image: "base:1", ShimImage: "shim:1"}
}

func TestAPodGetsWhatItsTaskAskedForAndWhatTheOperatorSaid(t *testing.T) {
	t.Parallel()
	c := good()
	c.NodeSelector, c.Tolerations, c.PullSecrets, c.RuntimeClass = map[string]string{"pool": "batch"}, []string{"a=b:NoSchedule", "c"}, []string{"registry"}, "gvisor"
	c.PodTemplate = filepath.Join(t.TempDir(), "pods.yaml")
	if err := os.WriteFile(c.PodTemplate, []byte("metadata: {labels: {team: x}}\nspec: {containers: [{name: beside, image: b}, {name: task, resources: {limits: {example.com/fpga: 1}}}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	k := &Cluster{config: c, namespace: "ns"}
	var err error
	if k.template, err = c.template(); err != nil {
		t.Fatal(err)
	}
	made, err := k.jobFor(reconciler.Job{Name: "millrace-1", ID: "run_1.a.0.1", Fence: "f", Ticket: "t", Image: "tool@sha256:1", VCPU: 1.5, MemoryBytes: 1 << 30, GPU: 2, DiskBytes: 10 << 30, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	job := strict(t, made)
	pod := job.Spec.Template
	shim, task := pod.Spec.Containers[0], pod.Spec.Containers[slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "task" })]
	for what, holds := range map[string]bool{
		"labels":         pod.Labels[attemptLabel] == "millrace-1" && pod.Labels["team"] == "x" && pod.Labels[installationLabel] == "i",
		"image":          task.Image == "tool@sha256:1",
		"cpu":            task.Resources.Limits.Cpu().MilliValue() == 1500 && task.Resources.Requests.Cpu().MilliValue() == 1500,
		"memory":         task.Resources.Limits.Memory().Value() == 1<<30+shimMemory && task.Resources.Requests.Memory().Equal(*task.Resources.Limits.Memory()),
		"gpu":            task.Resources.Limits.Name("nvidia.com/gpu", "").Value() == 2,
		"patched":        task.Resources.Limits.Name("example.com/fpga", "").Value() == 1,
		"disk":           task.Resources.Limits.StorageEphemeral().Value() == 11<<30,
		"root":           *task.SecurityContext.ReadOnlyRootFilesystem && !*task.SecurityContext.AllowPrivilegeEscalation && *pod.Spec.SecurityContext.RunAsNonRoot,
		"capabilities":   task.SecurityContext.Capabilities.Drop[0] == "ALL" && pod.Spec.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"token":          !*pod.Spec.AutomountServiceAccountToken,
		"tolerations":    len(pod.Spec.Tolerations) == 2 && pod.Spec.Tolerations[0].Effect == corev1.TaintEffectNoSchedule && pod.Spec.Tolerations[1].Operator == corev1.TolerationOpExists,
		"where":          pod.Spec.NodeSelector["pool"] == "batch" && pod.Spec.ImagePullSecrets[0].Name == "registry" && *pod.Spec.RuntimeClassName == "gvisor",
		"time":           *pod.Spec.ActiveDeadlineSeconds > 3600 && *job.Spec.BackoffLimit == 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyNever,
		"shim":           shim.Image == "shim:1" && *shim.SecurityContext.ReadOnlyRootFilesystem && shim.Lifecycle.PostStart.Exec != nil && len(pod.Spec.Containers) == 3,
		"mounted shim":   task.VolumeMounts[2].ReadOnly,
		"no extra words": len(task.Env) == 6,
	} {
		if !holds {
			text, _ := json.Marshal(pod)
			t.Errorf("%s: %s", what, text)
		}
	}
}

func TestSettingsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Config){
		"--attempts-url":             func(c *Config) { c.URL = "server.example" },
		"--kubernetes-image":         func(c *Config) { c.Image = "" },
		"--kubernetes-shim-image":    func(c *Config) { c.ShimImage = "" },
		"--kubernetes-namespace":     func(c *Config) { c.Namespace = "Not/One" },
		"--kubernetes-tolerations":   func(c *Config) { c.Tolerations = []string{"a=b:Never"} },
		"--kubernetes-node-selector": func(c *Config) { c.NodeSelector = map[string]string{"a b": "c"} },
		"--kubernetes-pull-secrets":  func(c *Config) { c.PullSecrets = []string{"../x"} },
		"--kubernetes-gpu-resource":  func(c *Config) { c.GPUResource = "a b" },
		"--kubernetes-pod-template":  func(c *Config) { c.PodTemplate = "/no/such/file" },
	} {
		c := good()
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := good().Check(); err != nil {
		t.Error(err)
	}
}
