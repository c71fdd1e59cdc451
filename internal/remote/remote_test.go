package remote

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/crypto/ssh"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
)

// trusting is a client that trusts a test's server.
func trusting(server *httptest.Server) *Client {
	c := New(true)
	c.transport = server.Client().Transport
	return c
}

// bucket is a real bucket with a folder of this test's own. Without one the test
// is skipped, except in CI, where nothing may be missed.
func bucket(t *testing.T) (connections.Connection, connections.Credentials) {
	t.Helper()
	address := os.Getenv("MILLRACE_TEST_S3")
	if address == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("MILLRACE_TEST_S3 is not set: use `make test`")
		}
		t.Skip("MILLRACE_TEST_S3 is not set: scripts/with-s3 starts a server")
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	return connections.Connection{
		Name: "lab", Type: connections.S3,
		Settings: connections.Settings{Endpoint: q.Get("endpoint"), Region: q.Get("region"), Bucket: u.Host, Prefix: "remote-" + rand.Text() + "/"},
	}, connections.Credentials{AccessKey: q.Get("access-key"), SecretKey: q.Get("secret-key")}
}

func put(t *testing.T, c connections.Connection, secret connections.Credentials, key, text string) {
	t.Helper()
	endpoint, err := url.Parse(c.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	client, err := minio.New(endpoint.Host, &minio.Options{Creds: credentials.NewStaticV4(secret.AccessKey, secret.SecretKey, ""), Region: c.Region})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutObject(t.Context(), c.Bucket, key, strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestABucketIsTestedAndBrowsed(t *testing.T) {
	t.Parallel()
	c, secret := bucket(t)
	remote := New(true)
	if _, err := remote.Test(t.Context(), c, secret); err != nil {
		t.Fatal(err)
	}
	put(t, c, secret, c.Prefix+"a b.txt", "text")
	put(t, c, secret, c.Prefix+"run7/r1.fq", "x")
	l, err := remote.List(t.Context(), c, secret, c.Prefix, "")
	if err != nil || len(l.Folders) != 1 || l.Folders[0] != c.Prefix+"run7/" || len(l.Objects) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	if o := l.Objects[0]; o.URL != "s3://"+c.Bucket+"/"+c.Prefix+"a b.txt" || o.Name != "a b.txt" || o.Size != 4 || o.ETag == "" || strings.Contains(o.ETag, `"`) {
		t.Errorf("%+v", o)
	}
	for name, tt := range map[string]struct {
		change func(*connections.Connection, *connections.Credentials)
		want   string
	}{
		"another secret": {func(_ *connections.Connection, s *connections.Credentials) { s.SecretKey = "wrong" }, "does not let these credentials"},
		"nobody":         {func(_ *connections.Connection, s *connections.Credentials) { *s = connections.Credentials{} }, "does not let these credentials"},
		"another bucket": {func(c *connections.Connection, _ *connections.Credentials) { c.Bucket = "no-such-bucket" }, "there is no bucket"},
		"nobody there":   {func(c *connections.Connection, _ *connections.Credentials) { c.Endpoint = "http://127.0.0.1:1" }, "cannot be reached"},
	} {
		other, key := c, secret
		tt.change(&other, &key)
		if _, err := remote.Test(t.Context(), other, key); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPrivateNetworksAreRefusedForEveryType(t *testing.T) {
	t.Parallel()
	reached := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer reached.Close()
	host := reached.Listener.Addr().String()
	key := newKey(t)
	for name, tt := range map[string]struct {
		c      connections.Connection
		secret connections.Credentials
	}{
		"s3":         {connections.Connection{Type: connections.S3, Settings: connections.Settings{Endpoint: "https://" + host, Bucket: "lab"}}, connections.Credentials{AccessKey: "a", SecretKey: "s"}},
		"link-local": {connections.Connection{Type: connections.S3, Settings: connections.Settings{Endpoint: "http://169.254.169.254", Bucket: "lab"}}, connections.Credentials{}},
		"a name":     {connections.Connection{Type: connections.HTTPS, Settings: connections.Settings{Host: "localhost:" + strings.Split(host, ":")[1]}}, connections.Credentials{Token: "t"}},
		"https":      {connections.Connection{Type: connections.HTTPS, Settings: connections.Settings{Host: host}}, connections.Credentials{Token: "t"}},
		"git":        {connections.Connection{Type: connections.Git, Settings: connections.Settings{Host: host}}, connections.Credentials{SSHKey: key}},
	} {
		if _, err := New(false).Test(t.Context(), tt.c, tt.secret); err == nil || !strings.Contains(err.Error(), "not on the public internet") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A redirect takes nobody's credentials along, and neither does a server that
// answers with another address for its bucket.
func TestCredentialsStayWithTheirHost(t *testing.T) {
	t.Parallel()
	other := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was sent on: %v", r.URL, r.Header) }))
	defer other.Close()
	var mu sync.Mutex
	var sent []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Header.Get("X-Key")+r.Header.Get("Authorization"))
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	host := server.Listener.Addr().String()
	secret := connections.Credentials{Token: "the token"}
	c := connections.Connection{Type: connections.HTTPS, Settings: connections.Settings{Host: host, Header: "X-Key"}}
	if _, err := trusting(server).Test(t.Context(), c, secret); err != nil {
		t.Error(err)
	}
	c.Header = ""
	if _, err := trusting(server).Test(t.Context(), c, secret); err != nil {
		t.Error(err)
	}
	bucket := connections.Connection{Type: connections.S3, Settings: connections.Settings{Endpoint: server.URL, Bucket: "lab"}}
	if _, err := trusting(server).Test(t.Context(), bucket, connections.Credentials{AccessKey: "a", SecretKey: "s"}); err == nil {
		t.Error("a redirect is no bucket")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(sent) < 3 || sent[0] != "the token" || sent[1] != "Bearer the token" {
		t.Errorf("%q", sent)
	}
	req := httptest.NewRequest("GET", other.URL, nil)
	authorize(req, connections.Connection{Type: connections.HTTPS, Settings: connections.Settings{Host: host}}, secret)
	if len(req.Header) != 0 {
		t.Errorf("%v", req.Header)
	}
}

// What a hostile host writes is not repeated: it may be what we sent it.
func TestNothingOfAnAnswerIsRepeated(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `<Error><Code>AccessDenied</Code><Message>you sent %s</Message></Error>`, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	c := connections.Connection{Type: connections.S3, Settings: connections.Settings{Endpoint: server.URL, Bucket: "lab"}}
	_, err := New(true).Test(t.Context(), c, connections.Credentials{AccessKey: "AKIDSHOWN", SecretKey: "s"})
	var known *fault.Error
	if known, _ = err.(*fault.Error); known == nil || strings.Contains(known.Message, "AKIDSHOWN") || strings.Contains(known.Message, "you sent") {
		t.Error(err)
	}
}

func newKey(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// gitHost takes one key over SSH.
func gitHost(t *testing.T, hostKey, userKey string) string {
	t.Helper()
	host, err := ssh.ParsePrivateKey([]byte(hostKey))
	if err != nil {
		t.Fatal(err)
	}
	user, err := ssh.ParsePrivateKey([]byte(userKey))
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), user.PublicKey().Marshal()) {
			return nil, fmt.Errorf("another key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			wire, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer wire.Close()
				if conn, _, requests, err := ssh.NewServerConn(wire, config); err == nil {
					go ssh.DiscardRequests(requests)
					_ = conn.Wait()
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestAGitHostsKeyIsLearntOnceAndHeld(t *testing.T) {
	t.Parallel()
	user, first := newKey(t), newKey(t)
	remote := New(true)
	c := connections.Connection{Type: connections.Git, Settings: connections.Settings{Host: gitHost(t, first, user)}}
	learnt, err := remote.Test(t.Context(), c, connections.Credentials{SSHKey: user})
	if err != nil || !strings.HasPrefix(learnt, "ssh-ed25519 ") {
		t.Fatal(learnt, err)
	}
	c.HostKey = learnt
	if _, err := remote.Test(t.Context(), c, connections.Credentials{SSHKey: user}); err != nil {
		t.Error(err)
	}
	if _, err := remote.Test(t.Context(), c, connections.Credentials{SSHKey: newKey(t)}); err == nil || !strings.Contains(err.Error(), "does not take this SSH key") {
		t.Error(err)
	}
	if _, err := remote.Test(t.Context(), c, connections.Credentials{SSHKey: "no key"}); !fault.Is(err, fault.KindInvalid) {
		t.Error(err)
	}
	c.Host = gitHost(t, newKey(t), user)
	if _, err := remote.Test(t.Context(), c, connections.Credentials{SSHKey: user}); err == nil || !strings.Contains(err.Error(), "another host key") {
		t.Error(err)
	}
}

func TestATestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	c := connections.Connection{Type: connections.S3, Settings: connections.Settings{Endpoint: server.URL, Bucket: "lab"}}
	if _, err := New(true).Test(ctx, c, connections.Credentials{}); err == nil {
		t.Error("it went on")
	}
}
