package remote

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
)

// tryKey signs in with a key. The host's own key is learnt at the first time,
// and must be the same from then on.
func (c *Client) tryKey(ctx context.Context, conn connections.Connection, secret connections.Credentials) (hostKey string, err error) {
	signer, err := ssh.ParsePrivateKey([]byte(secret.SSHKey))
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return "", fault.Invalid("the SSH key has a passphrase, which nobody could type: make one without, for this use alone")
	}
	if err != nil {
		return "", fault.Invalid("the SSH key is not a private key in PEM or OpenSSH form").WithCause(err)
	}
	address := conn.Host
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(conn.Host, "[]"), "22")
	}
	wire, err := c.dial(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer wire.Close()
	if deadline, ok := ctx.Deadline(); ok {
		err = wire.SetDeadline(deadline)
	} else {
		err = wire.SetDeadline(time.Now().Add(answerTime))
	}
	if err != nil {
		return "", err
	}
	user := conn.Username
	if user == "" {
		user = "git"
	}
	changed := false
	session, channels, requests, err := ssh.NewClientConn(wire, address, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			hostKey = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
			if changed = conn.HostKey != "" && conn.HostKey != hostKey; changed {
				return errors.New("another host key")
			}
			return nil
		},
	})
	switch {
	case changed:
		return "", fault.Forbidden("%s has another host key than when this connection was made: if that is right, make the connection anew", conn.Host)
	case hostKey != "" && err != nil:
		return "", fault.Forbidden("%s does not take this SSH key for the user %s", conn.Host, user).WithCause(err)
	case err != nil:
		return "", err
	}
	client := ssh.NewClient(session, channels, requests)
	return hostKey, client.Close()
}
