package kubernetes

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What we read of Kubernetes' objects. Its own types are those of its whole API, with
// code for each field of it, and the program keeps all of a type that it uses.

var (
	core  = schema.GroupVersion{Version: "v1"}
	batch = schema.GroupVersion{Group: "batch", Version: "v1"}
)

type job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type pod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status podStatus `json:"status"`
}

type podStatus struct {
	Phase                 string            `json:"phase"`
	Reason                string            `json:"reason"`
	Message               string            `json:"message"`
	Conditions            []condition       `json:"conditions"`
	InitContainerStatuses []containerStatus `json:"initContainerStatuses"`
	ContainerStatuses     []containerStatus `json:"containerStatuses"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"` // True, False or Unknown
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type containerStatus struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	State struct {
		Waiting *struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"waiting"`
		Terminated *struct {
			ExitCode int32  `json:"exitCode"`
			Reason   string `json:"reason"`
			Message  string `json:"message"`
		} `json:"terminated"`
	} `json:"state"`
}

type node struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Unschedulable bool `json:"unschedulable"`
	} `json:"spec"`
	Status struct {
		Allocatable map[string]resource.Quantity `json:"allocatable"`
	} `json:"status"`
}

// listOf is a list of jobs, pods or nodes.
type listOf[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []T `json:"items"`
}

// The copies share what they point to: nobody changes what the cluster said.

// DeepCopyObject is for runtime.Object.
func (j *job) DeepCopyObject() runtime.Object { return new(*j) }

// DeepCopyObject is for runtime.Object.
func (p *pod) DeepCopyObject() runtime.Object { return new(*p) }

// DeepCopyObject is for runtime.Object.
func (n *node) DeepCopyObject() runtime.Object { return new(*n) }

// DeepCopyObject is for runtime.Object.
func (l *listOf[T]) DeepCopyObject() runtime.Object { return new(*l) }

// newScheme knows which of our types an answer is of.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for name, o := range map[string]runtime.Object{"Pod": &pod{}, "PodList": &listOf[pod]{}, "Node": &node{}, "NodeList": &listOf[node]{}} {
		s.AddKnownTypeWithName(core.WithKind(name), o)
	}
	for name, o := range map[string]runtime.Object{"Job": &job{}, "JobList": &listOf[job]{}} {
		s.AddKnownTypeWithName(batch.WithKind(name), o)
	}
	metav1.AddToGroupVersion(s, core)
	metav1.AddToGroupVersion(s, batch)
	return s
}
