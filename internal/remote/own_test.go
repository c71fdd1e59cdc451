package remote

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/runs/outputto"
)

const ownCredentials = "the-servers-own"

// ownedMachine is a machine with credentials of its own wherever libraries look for
// some: in variables, in files, and from a service beside it, which nobody may ask.
func ownedMachine(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	for name, text := range map[string]string{
		".aws/credentials": "[default]\naws_access_key_id = " + ownCredentials + "\naws_secret_access_key = " + ownCredentials + "\n",
		".netrc":           "default login " + ownCredentials + " password " + ownCredentials + "\n",
	} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	role := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the machine's role was asked for: %s", r.URL) }))
	t.Cleanup(role.Close)
	for name, value := range map[string]string{
		"HOME": home, "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(home, ".aws/credentials"), "NETRC": filepath.Join(home, ".netrc"),
		"AWS_ACCESS_KEY_ID": ownCredentials, "AWS_SECRET_ACCESS_KEY": ownCredentials, "AWS_SESSION_TOKEN": ownCredentials,
		"MINIO_ROOT_USER": ownCredentials, "MINIO_ROOT_PASSWORD": ownCredentials,
		"AWS_EC2_METADATA_SERVICE_ENDPOINT": role.URL, "AWS_CONTAINER_CREDENTIALS_FULL_URI": role.URL,
	} {
		t.Setenv(name, value)
	}
}

// refusing answers every request itself, and keeps what it says.
type refusing struct {
	mu   sync.Mutex
	seen []string
}

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	var head strings.Builder
	_ = req.Header.Write(&head)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, req.Method+" "+req.URL.String()+"\n"+head.String())
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
}

// Whoever has no keys is nobody, and whoever has some is who has these, whatever the
// machine of the server could say of itself.
func TestTheServersOwnCredentialsAreNotUsed(t *testing.T) {
	ownedMachine(t)
	s3 := connections.Connection{Type: connections.S3, Settings: connections.Settings{Endpoint: "https://s3.example.org", Bucket: "lab"}}
	host := connections.Connection{Type: connections.HTTPS, Settings: connections.Settings{Host: "data.example.org"}}
	git := connections.Connection{Type: connections.Git, Settings: connections.Settings{Host: "git.example.org"}}
	object := func(url string) addresses.Object {
		return addresses.Object{Address: addresses.Address{URL: url}, Size: 4, ETag: "e"}
	}
	for name, try := range map[string]func(c *Client) error{
		"a bucket":   func(c *Client) error { _, err := c.Test(t.Context(), s3, connections.Credentials{}); return err },
		"a host":     func(c *Client) error { return c.tryHost(t.Context(), host, connections.Credentials{}) },
		"a git host": func(c *Client) error { return c.tryHost(t.Context(), git, connections.Credentials{}) },
		"a listing": func(c *Client) error {
			_, err := c.List(t.Context(), s3, connections.Credentials{}, "", "")
			return err
		},
		"an object of nobody's": func(c *Client) error {
			_, err := lookAt(t, NewInputs(c, keptBy{}, false), addresses.Address{URL: "s3://lab/a"})
			return err
		},
		"a pattern of nobody's": func(c *Client) error {
			_, err := lookAt(t, NewInputs(c, keptBy{}, false), addresses.Address{URL: "s3://lab/*.fq"})
			return err
		},
		"reading an object of nobody's": func(c *Client) error {
			_, err := NewInputs(c, keptBy{}, false).Open(t.Context(), "team_1", object("s3://lab/a"), 0, 4)
			return err
		},
		"a link": func(c *Client) error {
			_, err := lookAt(t, NewInputs(c, keptBy{}, false), addresses.Address{URL: "https://data.example.org/a"})
			return err
		},
		"reading a link": func(c *Client) error {
			_, err := NewInputs(c, keptBy{}, false).Open(t.Context(), "team_1", object("https://data.example.org/a"), 0, 4)
			return err
		},
		"outputs": func(c *Client) error {
			o := &Outputs{c, keptBy{"conn_1": {s3, connections.Credentials{}}}}
			return o.CheckTarget(t.Context(), "team_1", outputto.Target{URL: "s3://lab/out/", Connection: "conn_1"})
		},
	} {
		wire := &refusing{}
		err := try(&Client{transport: wire})
		if len(wire.seen) == 0 {
			t.Errorf("%s: nothing was asked: %v", name, err)
		}
		if err != nil && !fault.Is(err, fault.KindForbidden) {
			t.Errorf("%s: %v", name, err)
		}
		for _, request := range wire.seen {
			if strings.Contains(request, ownCredentials) || strings.Contains(request, "Authorization") || strings.Contains(request, "X-Amz-Credential") || strings.Contains(request, "X-Amz-Security-Token") {
				t.Errorf("%s: %s", name, request)
			}
		}
	}
	wire := &refusing{}
	if _, err := (&Client{transport: wire}).Test(t.Context(), s3, connections.Credentials{AccessKey: "theirs", SecretKey: "s"}); !fault.Is(err, fault.KindForbidden) {
		t.Error(err)
	}
	for _, request := range wire.seen {
		if strings.Contains(request, ownCredentials) || !strings.Contains(request, "Credential=theirs/") || strings.Contains(request, "X-Amz-Security-Token") {
			t.Errorf("with keys: %s", request)
		}
	}
}
