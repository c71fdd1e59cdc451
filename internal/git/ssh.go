package git

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"golang.org/x/crypto/ssh"

	"github.com/millrace/millrace/internal/domain/fault"
)

// sshConversation is the program of the host that gives repositories away.
type sshConversation struct {
	client  *ssh.Client
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
	stop    func() bool // watching for the end of the context
}

var errHostKey = errors.New("another host key")

func (c *Client) ssh(ctx context.Context, r Repository) (conversation, error) {
	signer, err := ssh.ParsePrivateKey([]byte(r.login.key))
	if err != nil {
		return nil, fault.Invalid("the SSH key of the connection cannot be used: it must be a private key without a passphrase").WithCause(err)
	}
	address := r.url.Host
	if r.url.Port() == "" {
		address = net.JoinHostPort(r.url.Hostname(), "22")
	}
	wire, err := c.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	// The library takes no context: the connection ends with it.
	stop := context.AfterFunc(ctx, func() { _ = wire.SetDeadline(time.Unix(1, 0)) })
	signed, channels, requests, err := ssh.NewClientConn(wire, address, &ssh.ClientConfig{
		User: r.login.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) != r.login.hostKey {
				return errHostKey
			}
			return nil
		},
	})
	if err != nil {
		stop()
		wire.Close()
		return nil, sshFault(r, err)
	}
	t := &sshConversation{client: ssh.NewClient(signed, channels, requests), stop: stop}
	if err := t.start(r); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func sshFault(r Repository, err error) error {
	switch {
	case errors.Is(err, errHostKey):
		return fault.Invalid("%s has another host key than when its connection was tested: if that is right, make the connection anew", r.url.Host)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return fault.Invalid("%s does not take the connection's SSH key for the user %s", r.url.Host, r.login.user).WithCause(err)
	}
	return err
}

// start runs the program. The path is one word to the shell of the host,
// whatever is in it.
func (t *sshConversation) start(r Repository) (err error) {
	if t.session, err = t.client.NewSession(); err != nil {
		return err
	}
	if t.in, err = t.session.StdinPipe(); err != nil {
		return err
	}
	if t.out, err = t.session.StdoutPipe(); err != nil {
		return err
	}
	return t.session.Start(service + " '" + strings.ReplaceAll(r.url.Path, "'", `'\''`) + "'")
}

func (t *sshConversation) refs(context.Context) (*packp.AdvRefs, error) { return readRefs(t.out) }

func (t *sshConversation) pack(_ context.Context, request []byte) (io.ReadCloser, error) {
	if _, err := t.in.Write(request); err != nil {
		return nil, err
	}
	return io.NopCloser(t.out), nil
}

func (t *sshConversation) close() {
	t.stop()
	_ = t.client.Close() // and with it the session
}
