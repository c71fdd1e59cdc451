package executors

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/kubernetes"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/remote"
	attemptshttp "github.com/millrace/millrace/internal/httpapi/attempts"
	"github.com/millrace/millrace/internal/upkeep"
)

// Kubernetes says how tasks run on a Kubernetes cluster: as settings of a server, or
// in a file of executors.
type Kubernetes struct {
	AttemptsURL              string            `json:"attemptsUrl" name:"attempts-url" help:"Address at which pods reach this server, or any of its kind." group:"kubernetes"`
	AttemptsCAFile           string            `json:"attemptsCaFile" name:"attempts-ca-file" help:"Certificate of the authority behind --attempts-url, as PEM, where the images of tasks do not know it." group:"kubernetes"`
	KubernetesConfig         string            `json:"config" help:"Kubeconfig of the cluster. Default: the cluster that this server is in, or that of KUBECONFIG." group:"kubernetes"`
	KubernetesNamespace      string            `json:"namespace" default:"millrace" help:"Namespace of all jobs." group:"kubernetes"`
	KubernetesImage          string            `json:"image" help:"Image of tasks that name none." group:"kubernetes"`
	KubernetesShimImage      string            `json:"shimImage" help:"Image with the program millrace-attempt of this release." group:"kubernetes"`
	KubernetesNodeSelector   map[string]string `json:"nodeSelector" help:"Labels that nodes must have, such as pool=batch;disk=ssd." group:"kubernetes"`
	KubernetesTolerations    []string          `json:"tolerations" help:"Taints of nodes that do not matter, such as batch=yes:NoSchedule." group:"kubernetes"`
	KubernetesPriorityClass  string            `json:"priorityClass" help:"Priority class of all pods." group:"kubernetes"`
	KubernetesPullSecrets    []string          `json:"pullSecrets" help:"Secrets of the namespace with which nodes pull images." group:"kubernetes"`
	KubernetesRuntimeClass   string            `json:"runtimeClass" help:"Runtime class of all pods, such as gvisor." group:"kubernetes"`
	KubernetesServiceAccount string            `json:"serviceAccount" help:"Service account of all pods. They get no token of it." group:"kubernetes"`
	KubernetesGPUResource    string            `json:"gpuResource" name:"kubernetes-gpu-resource" default:"nvidia.com/gpu" help:"What the cluster calls a GPU." group:"kubernetes"`
	KubernetesGiveUpAfter    time.Duration     `json:"-" default:"24h" help:"How long a pod may wait for a node that has room for it before its step fails; 0s: for ever." group:"kubernetes"`
	KubernetesPodTemplate    string            `json:"podTemplate" help:"File with a strategic merge patch for the template of all pods." group:"kubernetes"`
}

// Check says what is wrong with the settings alone.
func (k Kubernetes) Check() error {
	c, err := k.config("check", credits.Size{}, nil)
	if k.KubernetesGiveUpAfter < 0 {
		err = errors.Join(err, errors.New("--kubernetes-give-up-after cannot be less than 0s"))
	}
	return errors.Join(err, c.Check())
}

func (k Kubernetes) config(installation string, capacity credits.Size, log *slog.Logger) (kubernetes.Config, error) {
	c := kubernetes.Config{
		Kubeconfig: k.KubernetesConfig, Namespace: k.KubernetesNamespace, Installation: installation, Log: log, URL: k.AttemptsURL,
		Image: k.KubernetesImage, ShimImage: k.KubernetesShimImage, NodeSelector: k.KubernetesNodeSelector, Tolerations: k.KubernetesTolerations,
		PriorityClass: k.KubernetesPriorityClass, PullSecrets: k.KubernetesPullSecrets, RuntimeClass: k.KubernetesRuntimeClass,
		ServiceAccount: k.KubernetesServiceAccount, GPUResource: k.KubernetesGPUResource, PodTemplate: k.KubernetesPodTemplate,
		VCPU: float64(capacity.VCPU), MemoryBytes: int64(capacity.RAMGB) << 30,
	}
	if k.AttemptsCAFile == "" {
		return c, nil
	}
	text, err := os.ReadFile(k.AttemptsCAFile)
	if err != nil {
		return c, fmt.Errorf("--attempts-ca-file: %w", err)
	}
	c.CA = string(text)
	return c, nil
}

// Doctor finds out whether the cluster would take tasks.
func (k Kubernetes) Doctor(ctx context.Context, capacity credits.Size) error {
	c, err := k.config("doctor", capacity, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return kubernetes.Try(ctx, c)
}

// Shims are what shims of attempts out of our reach speak to.
type Shims struct {
	Store interface {
		attempts.Submitted
		attempts.Pieces
		attempts.Reports
		attempts.Leftovers
	}
	Objects interface {
		attempts.Objects
		attempts.Keys
	}
	Key          []byte // of tickets
	Installation string // which no other installation is called
	Log          *slog.Logger
	Now          func() time.Time

	hints []chan struct{}
}

// Handler answers them beside the API.
func (s *Shims) Handler(api http.Handler) http.Handler {
	service := attempts.NewService(s.Store, s.Objects, s.Key, func(string) {
		for _, c := range s.hints {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}, s.Now)
	shims := attemptshttp.Handler(service, s.Log)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, attemptshttp.Prefix) {
			shims.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// Chores remove what attempts have left behind.
func (s *Shims) Chores(every time.Duration) []upkeep.Chore {
	return []upkeep.Chore{{Name: "left-attempts", Every: every, Batch: upkeep.Paged(func(ctx context.Context, _ int64, after string) (upkeep.Result, string, error) {
		n, next, err := attempts.Sweep(ctx, s.Store, s.Objects, after, s.Now())
		return upkeep.Result{Done: n, More: next != ""}, next, err
	})}}
}

// How long Kubernetes may be wrong about a pod, and an image unavailable.
const (
	kubernetesLag = 30 * time.Second
	imageWait     = 10 * time.Minute
)

// Open begins with an executor on Kubernetes. Its files are brought by its shims.
func (s *Shims) Open(ctx context.Context, x Named, scope, temp string) (*Late, *remote.Files) {
	hints := make(chan struct{}, 1)
	s.hints = append(s.hints, hints)
	opened := make(chan *reconciler.Driver, 1)
	late := Open(ctx, func(ctx context.Context) (Driver, error) {
		c, err := x.Kubernetes.config(s.installation(x.Name), x.Capacity, s.Log)
		if err != nil {
			return Driver{}, err
		}
		c.Earlier = s.earlier(x.Name)
		cluster, err := kubernetes.New(ctx, c)
		if err != nil {
			return Driver{}, err
		}
		d, err := remote.Open(ctx, remote.Config{
			Name: kubernetes.Name, Cluster: "Kubernetes", Scope: scope, Store: s.Store, Pieces: s.Store, Objects: s.Objects, Key: s.Key, Hints: hints, Log: s.Log, Now: s.Now, Lag: kubernetesLag, ImageWait: imageWait,
			GiveUpAfter: x.Kubernetes.KubernetesGiveUpAfter,
			Inspect:     func(job string) string { return "kubectl --namespace " + c.Namespace + " describe job " + job },
		}, cluster)
		if err != nil {
			return Driver{}, err
		}
		opened <- d
		return Driver{Driver: d, Watcher: d, Meter: d, Preparer: d, Closer: d}, nil
	})
	known := func(ctx context.Context, id string) (reconciler.Attempt, *executor.Exit, error) {
		select {
		case d := <-opened:
			opened <- d
			return d.Known(ctx, id)
		case <-ctx.Done():
			return reconciler.Attempt{}, nil, ctx.Err()
		}
	}
	return late, remote.NewFiles(known, s.Objects, temp)
}

// installation tells our jobs from those of others in a namespace, and those of one
// executor from another's.
func (s *Shims) installation(name string) string {
	sum := sha256.Sum256([]byte(s.Installation + "\x00" + name))
	return hex.EncodeToString(sum[:8])
}

// earlier is what earlier releases called it, which followed from the secret key.
func (s *Shims) earlier(name string) string {
	h := hmac.New(sha256.New, s.Key)
	_, _ = h.Write([]byte("installation\x00" + name))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// ImageResolver finds the digest of an image.
type ImageResolver interface {
	Resolve(ctx context.Context, ref string) (digest string, err error)
}

// References are images that a cluster fetches by itself: all that it has to know is
// what they are called.
type References struct{ ImageResolver }

// Root is the name of an image, with its digest.
func (References) Root(_ context.Context, ref, digest string) (string, []string, func(), error) {
	name, _, _ := strings.Cut(ref, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name + "@" + digest, nil, func() {}, nil
}
