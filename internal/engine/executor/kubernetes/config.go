// Package kubernetes has a Kubernetes cluster start, list and end the pods of
// attempts. What a pod does there is up to the shim in it; what Kubernetes says of a
// pod counts only where its shim is silent.
package kubernetes

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// Name is what handles of this driver carry.
const Name = "kubernetes"

// Config says how pods are made. Installation, URL, Image, ShimImage and Log are needed.
type Config struct {
	Kubeconfig   string // a file; empty: the cluster that this server is in, or the user's own
	Namespace    string // empty: that of the kubeconfig
	Installation string // tells its pods from those of others in the namespace
	Earlier      string // what earlier releases called it, and others with the same secret key; empty: nothing
	Log          *slog.Logger

	URL string // where pods reach a server
	CA  string // PEM, of that server; empty: what the image trusts

	Image     string // of tasks that name none
	ShimImage string // has the program millrace-attempt at its top

	NodeSelector   map[string]string
	Tolerations    []string // key=value:Effect, key:Effect, or key
	PriorityClass  string
	PullSecrets    []string
	RuntimeClass   string
	ServiceAccount string
	GPUResource    string // empty: nvidia.com/gpu
	PodTemplate    string // a file with a strategic merge patch for pods; empty: none

	// What runs may use at once; 0 means all of the cluster.
	VCPU        float64
	MemoryBytes int64
}

const defaultGPU = "nvidia.com/gpu"

// Check says what is wrong with the settings alone.
func (c Config) Check() error {
	var errs []error
	note := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !strings.HasPrefix(c.URL, "http://") && !strings.HasPrefix(c.URL, "https://") {
		note("--executor kubernetes needs --attempts-url, the address at which pods reach this server, such as https://millrace.example")
	}
	if c.Image == "" || c.ShimImage == "" {
		note("--executor kubernetes needs --kubernetes-image, for tasks that name none, and --kubernetes-shim-image, which has millrace-attempt in it")
	}
	for name, value := range map[string]string{"namespace": c.Namespace, "priority-class": c.PriorityClass, "runtime-class": c.RuntimeClass, "service-account": c.ServiceAccount} {
		if value != "" && len(validation.IsDNS1123Subdomain(value)) > 0 {
			note("--kubernetes-%s: %q cannot be one", name, value)
		}
	}
	for _, name := range c.PullSecrets {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			note("--kubernetes-pull-secrets: %q cannot be one", name)
		}
	}
	for key, value := range c.NodeSelector {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			note("--kubernetes-node-selector: %s=%s is no label", key, value)
		}
	}
	if c.GPUResource != "" && len(validation.IsQualifiedName(c.GPUResource)) > 0 {
		note("--kubernetes-gpu-resource: %q is no resource such as nvidia.com/gpu", c.GPUResource)
	}
	_, err := c.tolerations()
	errs = append(errs, err)
	_, err = c.template()
	return errors.Join(append(errs, err)...)
}

var toleration = regexp.MustCompile(`^([A-Za-z0-9./_-]+)(?:=([A-Za-z0-9._-]*))?(?::(NoSchedule|PreferNoSchedule|NoExecute))?$`)

func (c Config) tolerations() (list []any, err error) {
	for _, text := range c.Tolerations {
		m := toleration.FindStringSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("--kubernetes-tolerations: %q is not key=value:Effect, key:Effect or key", text)
		}
		t := object{"key": m[1], "operator": "Exists"}
		if strings.Contains(text, "=") {
			t["operator"], t["value"] = "Equal", m[2]
		}
		if m[3] != "" {
			t["effect"] = m[3]
		}
		list = append(list, t)
	}
	return list, nil
}

// template is the patch for pods, or nil.
func (c Config) template() (patch object, err error) {
	if c.PodTemplate == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.PodTemplate)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &patch)
	}
	if err == nil {
		_, err = merge(object{}, patch)
	}
	if err != nil {
		return nil, fmt.Errorf("--kubernetes-pod-template: %w", err)
	}
	return patch, nil
}

// connection is how to reach the cluster, and the namespace.
func (c Config) connection() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	from := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	config, err := from.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("cannot find the cluster: %w", err)
	}
	config.UserAgent, config.Timeout = "millrace", 0
	config.QPS, config.Burst = 50, 200
	namespace := c.Namespace
	if namespace == "" {
		namespace, _, err = from.Namespace()
	}
	return config, namespace, err
}

// requestTime bounds a request that is no watch.
const requestTime = 15 * time.Second
