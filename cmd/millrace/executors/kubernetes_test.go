package executors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
)

// working are the least settings of a cluster.
func working() Kubernetes {
	return Kubernetes{AttemptsURL: "https://millrace.example", KubernetesNamespace: "millrace", KubernetesImage: "debian", KubernetesShimImage: "shim"}
}

// Whatever is wrong with the settings is said at once, each by its own name.
func TestTheSettingsOfAClusterAreChecked(t *testing.T) {
	t.Parallel()
	if err := working().Check(); err != nil {
		t.Errorf("what works: %v", err)
	}
	for says, change := range map[string]func(*Kubernetes){
		"--attempts-url":             func(k *Kubernetes) { k.AttemptsURL = "millrace.example" },
		"--attempts-ca-file":         func(k *Kubernetes) { k.AttemptsCAFile = "/no/such/file" },
		"--kubernetes-image":         func(k *Kubernetes) { k.KubernetesImage = "" },
		"--kubernetes-shim-image":    func(k *Kubernetes) { k.KubernetesShimImage = "" },
		"--kubernetes-namespace":     func(k *Kubernetes) { k.KubernetesNamespace = "Not A Name" },
		"--kubernetes-node-selector": func(k *Kubernetes) { k.KubernetesNodeSelector = map[string]string{"a b": "c"} },
		"--kubernetes-pull-secrets":  func(k *Kubernetes) { k.KubernetesPullSecrets = []string{"a/b"} },
		"--kubernetes-give-up-after": func(k *Kubernetes) { k.KubernetesGiveUpAfter = -time.Second },
	} {
		k := working()
		if change(&k); k.Check() == nil || !strings.Contains(k.Check().Error(), says) {
			t.Errorf("%s: %v", says, k.Check())
		}
	}
	k := working()
	k.AttemptsCAFile, k.KubernetesGiveUpAfter, k.KubernetesImage = "/no/such/file", -1, ""
	for _, says := range []string{"--attempts-ca-file", "--kubernetes-give-up-after", "--kubernetes-image"} {
		if !strings.Contains(k.Check().Error(), says) {
			t.Errorf("%s is not said with others: %v", says, k.Check())
		}
	}
}

func TestWhatAClusterIsTold(t *testing.T) {
	t.Parallel()
	k := working()
	k.AttemptsCAFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(k.AttemptsCAFile, []byte("certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := k.config("installation", credits.Size{VCPU: 8, RAMGB: 16}, nil)
	if err != nil || c.CA != "certificate" || c.VCPU != 8 || c.MemoryBytes != 16<<30 || c.Installation != "installation" || c.URL != k.AttemptsURL {
		t.Errorf("%+v, %v", c, err)
	}
}
