package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// keptBy is a team's connections.
type keptBy map[ids.Connection]struct {
	c      connections.Connection
	secret connections.Credentials
}

func (k keptBy) OpenConnection(_ context.Context, team ids.Team, id ids.Connection) (connections.Connection, connections.Credentials, error) {
	one, ok := k[id]
	if !ok || team != "team_1" {
		return connections.Connection{}, connections.Credentials{}, fault.NotFound("no such connection")
	}
	return one.c, one.secret, nil
}

func single(int) bool { return false }

func lookAt(t *testing.T, i *Inputs, a addresses.Address) ([]addresses.Object, error) {
	t.Helper()
	found, failed := i.Look(t.Context(), "team_1", []addresses.Address{a}, func(int) bool { return a.Pattern() })
	return found[0], failed[0]
}

func readAll(t *testing.T, i *Inputs, o addresses.Object, from, length int64) (string, error) {
	t.Helper()
	r, err := i.Open(t.Context(), "team_1", o, from, length)
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	return string(text), err
}

func TestObjectsOfABucketAreFoundAndRead(t *testing.T) {
	t.Parallel()
	c, secret := bucket(t)
	i := NewInputs(New(true), keptBy{"conn_1": {c, secret}}, true)
	for _, name := range []string{"b.fq", "a.fq", "deep/c.fq", "notes.txt", "odd [1] #?.fq"} {
		put(t, c, secret, c.Prefix+name, "text of "+name)
	}
	at := func(key string) addresses.Address {
		return addresses.Address{URL: Address(c.Bucket, c.Prefix+key), Connection: "conn_1"}
	}
	list, err := lookAt(t, i, at("*.fq"))
	var names []string
	for _, o := range list {
		names = append(names, o.Name())
	}
	if err != nil || !slices.Equal(names, []string{"a.fq", "b.fq", "odd [1] #?.fq"}) || list[0].Size != 12 || list[0].ETag == "" || list[0].Connection != "conn_1" {
		t.Fatalf("%q %+v, %v", names, list, err)
	}
	if list, err := lookAt(t, i, at("*/*.fq")); err != nil || len(list) != 1 || list[0].Name() != "c.fq" {
		t.Errorf("%+v, %v", list, err)
	}
	a := list[0]
	if text, err := readAll(t, i, a, 5, 2); err != nil || text != "of" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := readAll(t, i, list[2], 0, list[2].Size); err != nil || text != "text of odd [1] #?.fq" {
		t.Errorf("%q, %v", text, err)
	}
	put(t, c, secret, c.Prefix+"a.fq", "another text")
	if _, err := readAll(t, i, a, 0, 4); !fault.Is(err, fault.KindConflict) {
		t.Errorf("it has changed: %v", err)
	}
	for name, tt := range map[string]struct {
		a    addresses.Address
		kind fault.Kind
	}{
		"absent":                  {at("none.fq"), fault.KindNotFound},
		"nothing matches":         {at("*.bam"), fault.KindNotFound},
		"outside of the prefix":   {addresses.Address{URL: Address(c.Bucket, "other/a"), Connection: "conn_1"}, fault.KindForbidden},
		"a pattern outside of it": {addresses.Address{URL: Address(c.Bucket, "*"), Connection: "conn_1"}, fault.KindForbidden},
		"another bucket":          {addresses.Address{URL: "s3://other/a", Connection: "conn_1"}, fault.KindInvalid},
		"a host":                  {addresses.Address{URL: "https://example.org/a", Connection: "conn_1"}, fault.KindInvalid},
		"no such connection":      {addresses.Address{URL: Address(c.Bucket, "a"), Connection: "conn_2"}, fault.KindNotFound},
	} {
		if _, err := lookAt(t, i, tt.a); !fault.Is(err, tt.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Many objects of one folder are looked at by listing it.
func TestManyObjectsAreLookedAtTogether(t *testing.T) {
	t.Parallel()
	c, secret := bucket(t)
	i := NewInputs(New(true), keptBy{"conn_1": {c, secret}}, true)
	var list []addresses.Address
	for n := range listFrom + 5 {
		key := fmt.Sprintf("%s%03d.fq", c.Prefix, n)
		put(t, c, secret, key, "x")
		list = append(list, addresses.Address{URL: Address(c.Bucket, key), Connection: "conn_1"})
	}
	list = append(list, addresses.Address{URL: Address(c.Bucket, c.Prefix+"none"), Connection: "conn_1"})
	found, failed := i.Look(t.Context(), "team_1", list, single)
	for n := range list[:len(list)-1] {
		if failed[n] != nil || len(found[n]) != 1 || found[n][0].Address != list[n] || found[n][0].ETag == "" {
			t.Errorf("%d: %+v, %v", n, found[n], failed[n])
		}
	}
	if last := failed[len(list)-1]; !fault.Is(last, fault.KindNotFound) {
		t.Error(last)
	}
}

// page is a file on an HTTPS host.
type page struct {
	mu    sync.Mutex
	etag  string
	text  string
	heads []http.Header
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heads = append(p.heads, r.Header.Clone())
	switch r.URL.Path {
	case "/plain": // knows no ranges
		_, _ = io.WriteString(w, p.text)
	case "/none":
		http.NotFound(w, r)
	case "/closed":
		w.WriteHeader(http.StatusForbidden)
	default:
		if p.etag != "" {
			w.Header().Set("ETag", p.etag)
		}
		http.ServeContent(w, r, "file", time.Time{}, strings.NewReader(p.text))
	}
}

func TestAddressesOfHostsAreFoundAndRead(t *testing.T) {
	t.Parallel()
	p := &page{etag: `"e1"`, text: "genome"}
	server := httptest.NewTLSServer(p)
	defer server.Close()
	i := NewInputs(trusting(server), keptBy{}, false)
	at := func(path string) addresses.Address { return addresses.Address{URL: server.URL + path} }
	list, err := lookAt(t, i, at("/file?x=1"))
	if err != nil || list[0].Size != 6 || list[0].ETag != "e1" || list[0].Endpoint != server.URL {
		t.Fatalf("%+v, %v", list, err)
	}
	if text, err := readAll(t, i, list[0], 2, 3); err != nil || text != "nom" {
		t.Errorf("%q, %v", text, err)
	}
	p.mu.Lock()
	p.etag, p.text = `"e2"`, "enigma"
	p.mu.Unlock()
	if _, err := readAll(t, i, list[0], 2, 3); !fault.Is(err, fault.KindConflict) {
		t.Errorf("it has changed: %v", err)
	}
	p.mu.Lock()
	p.etag = `W/"e2"`
	p.mu.Unlock()
	if list, err := lookAt(t, i, at("/file")); err != nil || list[0].ETag != "" || list[0].Size != 6 {
		t.Errorf("a weak etag: %+v, %v", list, err)
	}
	plain, err := lookAt(t, i, at("/plain"))
	if err != nil || plain[0].ETag != "" || plain[0].Size != 6 {
		t.Fatalf("no ranges: %+v, %v", plain, err)
	}
	if text, err := readAll(t, i, plain[0], 0, -1); err != nil || text != "enigma" {
		t.Errorf("%q, %v", text, err)
	}
	for path, kind := range map[string]fault.Kind{"/none": fault.KindNotFound, "/closed": fault.KindForbidden} {
		if _, err := lookAt(t, i, at(path)); !fault.Is(err, kind) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := lookAt(t, i, addresses.Address{URL: strings.Replace(server.URL, "https", "http", 1)}); !fault.Is(err, fault.KindInvalid) {
		t.Errorf("without TLS: %v", err)
	}
}

// What answers, and is no store, is called that.
func TestAHostThatIsNoStoreIsSaid(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "welcome") }))
	defer server.Close()
	c := connections.Connection{Type: connections.S3, Settings: connections.Settings{Endpoint: server.URL, Bucket: "lab"}}
	i := NewInputs(trusting(server), keptBy{"conn_1": {c, connections.Credentials{}}}, false)
	if _, err := lookAt(t, i, addresses.Address{URL: "s3://lab/a", Connection: "conn_1"}); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "does not answer as an S3 store does") {
		t.Error(err)
	}
}

// A link that sends us on is followed, and a connection's credentials are not.
func TestCredentialsAreNotSentOn(t *testing.T) {
	t.Parallel()
	p := &page{etag: `"e1"`, text: "genome"}
	there := httptest.NewTLSServer(p)
	defer there.Close()
	var mu sync.Mutex
	var first []string
	here := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		first = append(first, r.Header.Get("X-Key"))
		http.Redirect(w, r, there.URL+"/file", http.StatusFound)
	}))
	defer here.Close()
	c := connections.Connection{Type: connections.HTTPS, Settings: connections.Settings{Host: here.Listener.Addr().String(), Header: "X-Key"}}
	i := NewInputs(trusting(here), keptBy{"conn_1": {c, connections.Credentials{Token: "the token"}}}, false)
	list, err := lookAt(t, i, addresses.Address{URL: here.URL + "/file", Connection: "conn_1"})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := readAll(t, i, list[0], 0, 6); err != nil || text != "genome" {
		t.Errorf("%q, %v", text, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(first, []string{"the token", "the token"}) {
		t.Errorf("%q", first)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.heads) != 2 {
		t.Fatalf("%d requests", len(p.heads))
	}
	for _, head := range p.heads {
		if head.Get("X-Key")+head.Get("Authorization")+head.Get("Referer") != "" || head.Get("Range") == "" {
			t.Errorf("%v", head)
		}
	}
}

// panicking has connections that nobody can open.
type panicking struct{}

func (panicking) OpenConnection(context.Context, ids.Team, ids.Connection) (connections.Connection, connections.Credentials, error) {
	panic("out of order")
}

func TestPanicOverAnAddressIsItsFailure(t *testing.T) {
	t.Parallel()
	i := NewInputs(New(true), panicking{}, true)
	_, failed := i.Look(t.Context(), "team_1", []addresses.Address{{URL: "s3://lab/a", Connection: "conn_1"}, {URL: "https://127.0.0.1:1/a"}}, single)
	if !panics.Is(failed[0]) || panics.Is(failed[1]) {
		t.Errorf("%v", failed)
	}
}
