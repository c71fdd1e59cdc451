package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/safedial"
)

// changingNames is a name server that says of every name that it is on the public
// internet, until it says that it is this machine.
type changingNames struct{ ours atomic.Bool }

func (n *changingNames) serve(t *testing.T) *net.Resolver {
	t.Helper()
	var listen net.ListenConfig
	wire, err := listen.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wire.Close() })
	go func() {
		question := make([]byte, 512)
		for {
			size, from, err := wire.ReadFrom(question)
			if err != nil {
				return
			}
			_, _ = wire.WriteTo(n.answer(question[:size]), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", wire.LocalAddr().String())
	}}
}

// answer answers one question: of an IPv4 address with one, of anything else with
// nothing.
func (n *changingNames) answer(question []byte) []byte {
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	kind := binary.BigEndian.Uint16(question[end+1:])
	reply := append([]byte{}, question[:end+5]...) // without what follows the question
	reply[2], reply[3] = 0x81, 0x80
	binary.BigEndian.PutUint16(reply[6:], 0)
	clear(reply[8:12])
	if kind != 1 {
		return reply
	}
	address := []byte{8, 8, 8, 8}
	if n.ours.Load() {
		address = []byte{127, 0, 0, 1}
	}
	binary.BigEndian.PutUint16(reply[6:], 1)
	return append(append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), address...)
}

var errWouldConnect = errors.New("it would have connected")

// A name that is public when a connection is made, and ours when it is used, is refused
// then: what counts is the address that is dialled.
func TestANameThatChangesItsMindIsRefused(t *testing.T) {
	t.Parallel()
	reached := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer reached.Close()
	_, port, err := net.SplitHostPort(reached.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dialer := safedial.Dialer(false)
	names := &changingNames{}
	dialer.Resolver = names.serve(t)
	check := dialer.Control
	dialer.Control = func(network, address string, c syscall.RawConn) error {
		if err := check(network, address, c); err != nil {
			return err
		}
		return errWouldConnect // nothing leaves this machine
	}
	transport := safedial.Transport(false)
	transport.DialContext = dialer.DialContext
	client := &Client{transport: transport, dial: dialer.DialContext}
	inputs := NewInputs(client, nil, true)
	for name, try := range map[string]func(host string) error{
		"s3": func(host string) error {
			_, err := client.Test(t.Context(), connections.Connection{Type: connections.S3, Settings: connections.Settings{Endpoint: "http://" + host, Bucket: "lab"}}, connections.Credentials{})
			return err
		},
		"https": func(host string) error {
			_, err := client.Test(t.Context(), connections.Connection{Type: connections.HTTPS, Settings: connections.Settings{Host: host}}, connections.Credentials{Token: "t"})
			return err
		},
		"git": func(host string) error {
			_, err := client.Test(t.Context(), connections.Connection{Type: connections.Git, Settings: connections.Settings{Host: host}}, connections.Credentials{SSHKey: newKey(t)})
			return err
		},
		"an address": func(host string) error {
			_, failed := inputs.Look(t.Context(), "team_1", []addresses.Address{{URL: "http://" + host + "/a"}}, func(int) bool { return false })
			return failed[0]
		},
		"what is read of it": func(host string) error {
			_, err := inputs.Open(t.Context(), "team_1", addresses.Object{Address: addresses.Address{URL: "http://" + host + "/a"}, Size: 4, ETag: "e"}, 0, 4)
			return err
		},
	} {
		host := strings.ReplaceAll(name, " ", "-") + ".example.org:" + port
		names.ours.Store(false)
		if err := try(host); !errors.Is(err, errWouldConnect) {
			t.Errorf("%s, while the name is public: %v", name, err)
		}
		names.ours.Store(true)
		if err := try(host); !errors.Is(err, safedial.ErrPrivate) || !strings.Contains(err.Error(), "not on the public internet") || !strings.Contains(err.Error(), "--fetch-allow-private") {
			t.Errorf("%s, when it is ours: %v", name, err)
		}
	}
}

// A host on the public internet cannot send us on to an address that is not: every
// request is dialled anew, by the rules of the first.
func TestARedirectLeadsToNoPrivateAddress(t *testing.T) {
	t.Parallel()
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was reached", r.URL) }))
	defer inside.Close()
	public := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	}))
	defer public.Close()
	dialer := safedial.Dialer(false)
	check := dialer.Control
	dialer.Control = func(network, address string, c syscall.RawConn) error {
		if address == public.Listener.Addr().String() { // which stands for a public one
			return nil
		}
		return check(network, address, c)
	}
	transport := safedial.Transport(false)
	transport.DialContext = dialer.DialContext
	inputs := NewInputs(&Client{transport: transport, dial: dialer.DialContext}, nil, true)
	for _, to := range []string{inside.URL, "http://169.254.169.254/latest/meta-data/iam/security-credentials/", "http://[::1]:1/", "http://[::ffff:10.0.0.1]/"} {
		from := addresses.Address{URL: public.URL + "/reads.fq?to=" + url.QueryEscape(to)}
		_, err := lookAt(t, inputs, from)
		if !errors.Is(err, safedial.ErrPrivate) {
			t.Errorf("looking at what leads to %s: %v", to, err)
		}
		shown, ok := errors.AsType[*fault.Error](err)
		if !ok || strings.Contains(shown.Message, "169.254") {
			t.Fatalf("it tells where that is: %v", err)
		}
		if !strings.Contains(shown.Message, "what 127.0.0.1") || !strings.Contains(shown.Message, "sends us on to is not on the public internet") {
			t.Errorf("it blames the first host: %s", shown.Message)
		}
		if _, err := readAll(t, inputs, addresses.Object{Address: from, Size: 4, ETag: "e"}, 0, 4); !errors.Is(err, safedial.ErrPrivate) {
			t.Errorf("reading what leads to %s: %v", to, err)
		}
	}
}
