package git_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/git"
	"github.com/millrace/millrace/internal/git/gittest"
)

func newKey(t *testing.T) (private string, signer ssh.Signer) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	if signer, err = ssh.NewSignerFromKey(key); err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), signer
}

// serveSSH serves repositories below a folder to whoever has a key, by Git's own
// program.
func serveSSH(t *testing.T, folder string, host ssh.Signer, client ssh.PublicKey) (address string) {
	t.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.Marshal()) {
			return nil, io.EOF
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
			go serveSSHConn(wire, config, folder)
		}
	}()
	return l.Addr().String()
}

func serveSSHConn(wire net.Conn, config *ssh.ServerConfig, folder string) {
	defer wire.Close()
	_, channels, requests, err := ssh.NewServerConn(wire, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		for req := range asked {
			command := string(req.Payload[4:])
			_ = req.Reply(true, nil)
			name := strings.Trim(strings.TrimPrefix(command, "git-upload-pack "), "'")
			cmd := exec.Command("git", "-c", "safe.directory=*", "upload-pack", filepath.Join(folder, name))
			cmd.Stdout = channel
			in, _ := cmd.StdinPipe()
			go func() { _, _ = io.Copy(in, channel); in.Close() }()
			_ = cmd.Run()
			channel.Close()
		}
	}
}

func TestOverSSHTheHostKeyIsPinned(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("x", "over SSH")
	r.Commit()
	private, client := newKey(t)
	_, host := newKey(t)
	_, other := newKey(t)
	address := serveSSH(t, filepath.Dir(r.Dir), host, client.PublicKey())
	source := source.Source{Git: "ssh://git@" + address + "/" + filepath.Base(r.Dir)}
	c := connections.Connection{Name: "host", Type: connections.Git, Settings: connections.Settings{Host: address}}
	secret := connections.Credentials{SSHKey: private}
	trees := newTrees(t, true, small, 0)
	text := func(key ssh.Signer) string {
		return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
	}

	c.HostKey = text(host)
	repository, err := git.Open(source, &c, secret)
	if err != nil {
		t.Fatal(err)
	}
	w := git.Wanted{Team: "team_1", Repository: repository}
	commit, err := trees.Resolve(t.Context(), w, "main")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := trees.Tree(t.Context(), w, commit)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Release()
	if got := read(t, tree, "x"); got != "over SSH" {
		t.Errorf("got %q", got)
	}

	c.HostKey = text(other)
	if repository, err = git.Open(source, &c, secret); err != nil {
		t.Fatal(err)
	}
	if _, err := trees.Resolve(t.Context(), git.Wanted{Repository: repository}, "main"); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "another host key") {
		t.Errorf("with another host key: %v", err)
	}
	c.HostKey = ""
	if _, err := git.Open(source, &c, secret); !fault.Is(err, fault.KindInvalid) {
		t.Errorf("with none: %v", err)
	}
	c.HostKey = text(host)
	stranger, _ := newKey(t)
	if repository, err = git.Open(source, &c, connections.Credentials{SSHKey: stranger}); err != nil {
		t.Fatal(err)
	}
	if _, err := trees.Resolve(t.Context(), git.Wanted{Repository: repository}, "main"); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "does not take") {
		t.Errorf("with another key: %v", err)
	}
}
