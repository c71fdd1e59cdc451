package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/remote"
	"github.com/millrace/millrace/internal/panics"
)

// The labels of what we make.
const (
	managedBy         = "app.kubernetes.io/managed-by"
	installationLabel = "millrace.dev/installation"
	attemptLabel      = "millrace.dev/attempt"
)

// NoEnvironments is why a task gets none.
const NoEnvironments = "steps that run on Kubernetes have the software of an image: set `image` in place of `environment`"

// Cluster is a reconciler.Cluster. One watch each follows all our jobs and pods.
type Cluster struct {
	config    Config
	namespace string
	pods      *rest.RESTClient
	batch     *rest.RESTClient
	codec     runtime.ParameterCodec
	template  object
	changed   chan struct{}

	jobStore, podStore cache.Store
	synced             []cache.InformerSynced

	mu       sync.Mutex
	caps     executor.Capabilities
	answered time.Time // when the cluster last said what it has
}

var _ reconciler.Cluster = (*Cluster)(nil)

// New begins to follow what is ours in the namespace, until ctx ends.
func New(ctx context.Context, c Config) (*Cluster, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	config, namespace, err := c.connection()
	if err != nil {
		return nil, err
	}
	k := &Cluster{config: c, namespace: namespace, changed: make(chan struct{}, 1)}
	if k.template, err = c.template(); err != nil {
		return nil, err
	}
	scheme := newScheme()
	k.codec = runtime.NewParameterCodec(scheme)
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	if k.pods, err = clientFor(config, client, codecs, core, "/api"); err != nil {
		return nil, err
	}
	if k.batch, err = clientFor(config, client, codecs, batch, "/apis"); err != nil {
		return nil, err
	}
	k.jobStore = k.follow(ctx, k.batch, "jobs", &job{}, &listOf[job]{})
	k.podStore = k.follow(ctx, k.pods, "pods", &pod{}, &listOf[pod]{})
	k.probe(ctx)
	go panics.Restart(ctx, c.Log, k.probeAll)
	return k, nil
}

func clientFor(c *rest.Config, client *http.Client, s runtime.NegotiatedSerializer, v schema.GroupVersion, path string) (*rest.RESTClient, error) {
	c = rest.CopyConfig(c)
	c.GroupVersion, c.APIPath, c.NegotiatedSerializer = &v, path, s
	return rest.RESTClientForConfigAndClient(c, client)
}

// ours selects what this installation made, or may have made before it was upgraded.
func (k *Cluster) ours() string {
	return fmt.Sprintf("%s=millrace,%s in (%s,%s)", managedBy, installationLabel, k.config.Installation, cmp.Or(k.config.Earlier, k.config.Installation))
}

// follow keeps a copy of what is ours of one kind.
func (k *Cluster) follow(ctx context.Context, client *rest.RESTClient, resource string, kind, list runtime.Object) cache.Store {
	selected := func(o metav1.ListOptions) *rest.Request {
		o.LabelSelector = k.ours()
		return client.Get().Namespace(k.namespace).Resource(resource).VersionedParams(&o, k.codec)
	}
	signal := func(any) { k.signal() }
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				ctx, cancel := context.WithTimeout(ctx, requestTime)
				defer cancel()
				into := list.DeepCopyObject()
				return into, selected(o).Do(ctx).Into(into)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.Watch = true
				return selected(o).Watch(ctx)
			},
		},
		ObjectType: kind,
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: signal, UpdateFunc: func(_, o any) { signal(o) }, DeleteFunc: signal},
	})
	k.synced = append(k.synced, informer.HasSynced)
	go informer.RunWithContext(ctx)
	return store
}

func (k *Cluster) signal() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Changed receives when a job or pod has changed.
func (k *Cluster) Changed() <-chan struct{} { return k.changed }

// Start makes a job. One of the same name is the same one.
func (k *Cluster) Start(ctx context.Context, j reconciler.Job) (string, error) {
	made, err := k.jobFor(j)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	err = k.post(made).Do(ctx).Error()
	switch {
	case apierrors.IsAlreadyExists(err):
		err = nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		err = fault.Invalid("%s", err)
	}
	return j.Name, err
}

// post is the request that makes a job.
func (k *Cluster) post(job []byte) *rest.Request {
	return k.batch.Post().Namespace(k.namespace).Resource("jobs").SetHeader("Content-Type", "application/json").Body(job)
}

// Forget deletes a job that has ended.
func (k *Cluster) Forget(ctx context.Context, name string) error { return k.End(ctx, name) }

// End deletes a job with its pod.
func (k *Cluster) End(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	foreground := metav1.DeletePropagationForeground
	err := k.batch.Delete().Namespace(k.namespace).Resource("jobs").Name(name).Body(&metav1.DeleteOptions{PropagationPolicy: &foreground}).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

var errNotListed = errors.New("the jobs of the cluster are not listed yet")

// Jobs are ours, as the copies have them.
func (k *Cluster) Jobs(context.Context) (reconciler.Listing, error) {
	for _, synced := range k.synced {
		if !synced() {
			return reconciler.Listing{}, errNotListed
		}
	}
	pods := map[string]*pod{}
	for _, o := range k.podStore.List() {
		if p, ok := o.(*pod); ok {
			pods[p.Labels[attemptLabel]] = p
		}
	}
	all := map[string]reconciler.JobStatus{}
	for _, o := range k.jobStore.List() {
		if j, ok := o.(*job); ok {
			s := seen(j, pods[j.Name])
			s.Number, s.Unsure = j.Name, j.Labels[installationLabel] != k.config.Installation
			s.Silent = s.Ended && (s.Reason == executor.OutOfMemory || s.Reason == executor.TimedOut)
			s.Blocked = s.Waits && (s.Reason == executor.Unschedulable || s.Reason == executor.Queued)
			all[j.Name] = s
		}
	}
	return reconciler.Listing{Jobs: all}, nil
}

// Capabilities are what the cluster has, as it was last asked.
func (k *Cluster) Capabilities(context.Context) executor.Capabilities {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.caps
}

const (
	probeEvery = time.Minute
	probeAgain = 5 * time.Second
	probeLasts = 5 * time.Minute // while the API server restarts, runs are taken and wait
)

func (k *Cluster) probeAll(ctx context.Context) {
	for {
		wait := probeEvery
		if !k.Capabilities(ctx).Ready {
			wait = probeAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			k.probe(ctx)
		}
	}
}

// probe asks what the cluster has. Who may not list nodes says what it has.
func (k *Cluster) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	caps := executor.Capabilities{
		Ready: true, Images: true, System: k.config.Image, VCPU: k.config.VCPU, MemoryBytes: k.config.MemoryBytes,
		NoEnvironments: NoEnvironments, NotEnforced: []string{"network"}, TaskPlaces: remote.Places(),
	}
	var jobs listOf[job]
	one := metav1.ListOptions{LabelSelector: k.ours(), Limit: 1}
	passes := false // what is wrong, in all likelihood
	if err := k.batch.Get().Namespace(k.namespace).Resource("jobs").VersionedParams(&one, k.codec).Do(ctx).Into(&jobs); err != nil {
		passes = !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsNotFound(err)
		caps.Ready, caps.Problem = false, "Kubernetes does not answer: "+err.Error()
	}
	var nodes listOf[node]
	some := metav1.ListOptions{LabelSelector: labels.Set(k.config.NodeSelector).String()}
	err := k.pods.Get().Resource("nodes").VersionedParams(&some, k.codec).Do(ctx).Into(&nodes)
	if err == nil {
		k.addNodes(&caps, nodes.Items)
	} else if caps.VCPU == 0 && caps.Ready {
		caps.Ready, caps.Problem = false, fmt.Sprintf("it is not known how much the cluster has: set --capacity, or let this server list nodes (%s)", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if passes && k.caps.Ready && time.Since(k.answered) < probeLasts {
		return
	}
	if caps.Ready {
		k.answered = time.Now()
	}
	if before := k.caps.Problem; before != caps.Problem && caps.Problem != "" {
		k.config.Log.WarnContext(ctx, "Kubernetes cannot be used", slog.String("problem", caps.Problem))
	}
	k.caps = caps
}

// addNodes adds up what tasks can have, where that is not set.
func (k *Cluster) addNodes(caps *executor.Capabilities, nodes []node) {
	var cpu, memory int64
	for _, n := range nodes {
		if n.Spec.Unschedulable {
			continue
		}
		has := func(name string) *resource.Quantity { return new(n.Status.Allocatable[name]) }
		cpu += has("cpu").MilliValue()
		memory += has("memory").Value()
		caps.GPU += int(has(k.gpu()).Value())
	}
	if caps.VCPU == 0 {
		caps.VCPU = float64(cpu) / 1000
	}
	if caps.MemoryBytes == 0 {
		caps.MemoryBytes = memory
	}
}

func (k *Cluster) gpu() string { return cmp.Or(k.config.GPUResource, defaultGPU) }

// Try finds out whether the cluster would take a task, without starting one.
func Try(ctx context.Context, c Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k, err := New(ctx, c)
	if err != nil {
		return err
	}
	if caps := k.Capabilities(ctx); !caps.Ready {
		return errors.New(caps.Problem)
	}
	made, err := k.jobFor(reconciler.Job{Name: "millrace-doctor", ID: "doctor", VCPU: 1, MemoryBytes: 256 << 20})
	if err != nil {
		return err
	}
	if err := k.post(made).Param("dryRun", "All").Do(ctx).Error(); err != nil {
		return fmt.Errorf("the cluster would take no job: %w", err)
	}
	return nil
}
