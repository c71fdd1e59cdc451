package environments_test

import (
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	build "github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
)

// forwarding is a proxy that knows a host of which the machine has never heard.
func forwarding(t *testing.T, host, at string) (address string, asked func() string) {
	t.Helper()
	var mu sync.Mutex
	var hosts []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		hosts = append(hosts, r.Method+" "+r.Host)
		mu.Unlock()
		if user, password, ok := parseProxyUser(r); !ok || user != "ada" || password != "secret" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if r.Host != host {
			http.NotFound(w, r)
			return
		}
		there, err := net.Dial("tcp", at)
		if err != nil {
			t.Error(err)
			return
		}
		defer there.Close()
		w.WriteHeader(http.StatusOK)
		here, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer here.Close()
		go func() { _, _ = io.Copy(there, buffered) }()
		_, _ = io.Copy(here, there)
	}))
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "http://", "http://ada:secret@", 1), func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(hosts, "\n")
	}
}

func parseProxyUser(r *http.Request) (user, password string, ok bool) {
	r.Header.Set("Authorization", r.Header.Get("Proxy-Authorization"))
	return r.BasicAuth()
}

// certified serves an index with TLS, and writes its certificate into a file.
func certified(t *testing.T, x *indextest.Index) (address, cert string) {
	t.Helper()
	at, err := url.Parse(x.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := http.Get("http://" + at.Host + r.URL.Path)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	cert = filepath.Join(t.TempDir(), "ours.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(cert, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return s.Listener.Addr().String(), cert
}

// The index is behind the proxy, under a name that only the proxy knows.
func TestTheProxyAndTheCertificatesOfPipAreUsed(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	x.AddWheel("corp", "1.0", nil)
	at, cert := certified(t, x)
	proxy, asked := forwarding(t, "example.com:443", at) // the name in the certificate of httptest
	variables := map[string]string{"PIP_INDEX_URL": "https://example.com/simple/", "PIP_PROXY": proxy, "PIP_CERT": cert}
	f := onMachine(t, variables)
	if _, err := f.root(t, "a", pip("corp")); err != nil {
		t.Error(err)
	}
	if got := asked(); !strings.Contains(got, "CONNECT example.com:443") {
		t.Errorf("the proxy is asked for %q", got)
	}
	delete(variables, "PIP_CERT")
	f = onMachine(t, variables)
	f.FailAtOnce()
	_, err := f.root(t, "a", pip("corp"))
	if !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), "its certificate cannot be trusted") {
		t.Errorf("without the certificates: %v", err)
	}
}

// What an index names elsewhere is not asked for through the proxy either.
func TestTheProxyOfPipIsNoWayIntoPrivateNetworks(t *testing.T) {
	t.Parallel()
	x, other := indextest.New(t), indextest.New(t)
	wheel := indextest.Wheel("linked", "1.0", nil)
	other.AddFile("linked", "linked-1.0-py3-none-any.whl", wheel)
	x.AddLink("linked", strings.TrimSuffix(other.URL, "/simple/")+"/files/linked/linked-1.0-py3-none-any.whl", wheel)
	at, cert := certified(t, x)
	proxy, asked := forwarding(t, "example.com:443", at)
	f := onMachine(t, map[string]string{"PIP_INDEX_URL": "https://example.com/simple/", "PIP_PROXY": proxy, "PIP_CERT": cert})
	f.FailAtOnce()
	if _, err := f.root(t, "a", pip("linked")); !fault.Is(err, fault.KindUnavailable) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	if got := asked(); strings.Contains(got, "127.0.0.1") || len(other.Asked()) > 0 {
		t.Errorf("the proxy is asked for %q, the other host for %v", got, other.Asked())
	}
}

// The operator reads what is wrong, and teams that something is.
func TestAProxyOrCertificatesThatCannotBeUsedAreSaid(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for value, says := range map[string]string{"/no/such.pem": "/no/such.pem: no such file", empty: empty + " has none in PEM format"} {
		f := onMachine(t, map[string]string{"PIP_INDEX_URL": "https://example.com/simple/", "PIP_CERT": value})
		if problem := f.ProblemWith(environment.Spec{Pip: []string{"one"}}); !strings.Contains(problem, "millrace admin doctor") || strings.Contains(problem, value) {
			t.Errorf("%s: teams read %q", value, problem)
		}
		if err := build.Check(t.Context(), f.Config); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: the operator reads %v", value, err)
		}
	}
}
