package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// fileStore is where a running peer takes one file and gives it back.
type fileStore struct {
	putURL func(size int64) (string, error)
	getURL func() (string, error)
	remove func() error
}

const octets = "application/octet-stream"

// filePeers are the servers that the files part measures.
var filePeers = []peer{millraceFiles, nginx, versitygw, bareFiles}

var millraceFiles = peer{
	name:      us,
	readyPath: "/api/health/ready",
	command: func(addr, dir string) []string {
		return []string{"millrace", "serve", "--listen", addr, "--data", filepath.Join(dir, "data"), "--plans-file", filepath.Join(dir, "plans.json")}
	},
	prepare: func(_, dir string) error {
		return os.WriteFile(filepath.Join(dir, "plans.json"), []byte(`{"plans": {"free": {"storageGb": 1000}}}`), 0o600)
	},
	fileStore: func(p *process) (fileStore, error) {
		c := &caller{client: http.Client{Timeout: 30 * time.Second}}
		var signedUp struct{ Data struct{ Token string } }
		sign := map[string]any{"email": email, "password": password, "name": "Ada Bench"}
		if err := c.post(p.base+"/auth/sign-up", sign, &signedUp); err != nil {
			return fileStore{}, err
		}
		c.auth = "Bearer " + signedUp.Data.Token
		return millraceFileStore(p.base, c), nil
	},
}

func millraceFileStore(base string, c *caller) fileStore {
	type file struct{ Key, URL string }
	newest := func() (file, error) {
		var listed struct{ Data []file }
		if err := c.get(base+"/api/files", &listed); err != nil {
			return file{}, err
		}
		if len(listed.Data) != 1 {
			return file{}, fmt.Errorf("%d files are listed instead of one", len(listed.Data))
		}
		return listed.Data[0], nil
	}
	return fileStore{
		putURL: func(size int64) (string, error) {
			var answer struct{ Data file }
			err := c.post(base+"/api/files/presign", map[string]any{"filename": "reads.bin", "contentType": octets, "size": size}, &answer)
			return answer.Data.URL, err
		},
		getURL: func() (string, error) {
			f, err := newest()
			return f.URL, err
		},
		remove: func() error {
			f, err := newest()
			if err != nil {
				return err
			}
			return c.post(base+"/api/files/delete", map[string]any{"key": f.Key, "source": "upload"}, nil)
		},
	}
}

// nginx is one process, as in a container, that writes a body to a temporary
// file and then renames it.
var nginx = peer{
	name:      "nginx",
	readyPath: "/ready",
	command: func(_, dir string) []string {
		return []string{"nginx", "-p", dir, "-c", "nginx.conf", "-e", "error.log"}
	},
	prepare: func(addr, dir string) error {
		conf := fmt.Sprintf(`daemon off; master_process off; pid nginx.pid; %s
events { worker_connections 64; }
http {
	access_log off; sendfile on; tcp_nopush on;
	client_max_body_size 0; client_body_buffer_size 1m; client_body_temp_path body;
	proxy_temp_path unused; fastcgi_temp_path unused; uwsgi_temp_path unused; scgi_temp_path unused;
	server {
		listen %s;
		location = /ready { return 200; }
		location /files/ { root .; dav_methods PUT DELETE; }
	}
}
`, asRoot("user root;"), addr)
		return os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o600)
	},
	fileStore: plainFileStore,
}

// asRoot is the directive where nginx would otherwise give up its rights to
// our folder, and nothing where it would only warn.
func asRoot(directive string) string {
	if os.Getuid() != 0 {
		return ""
	}
	return directive
}

var bareFiles = peer{
	name:      "bare",
	readyPath: "/health",
	command: func(addr, dir string) []string {
		return []string{"filebare", "-listen", addr, "-dir", filepath.Join(dir, "files")}
	},
	prepare:   func(_, _ string) error { return nil },
	fileStore: plainFileStore,
}

// plainFileStore is that of a server without signatures.
func plainFileStore(p *process) (fileStore, error) {
	at := p.base + "/files/reads.bin"
	c := &caller{client: http.Client{Timeout: 30 * time.Second}}
	return fileStore{
		putURL: func(int64) (string, error) { return at, nil },
		getURL: func() (string, error) { return at, nil },
		remove: func() error { return c.delete(at) },
	}, os.MkdirAll(filepath.Join(p.dir, "files"), 0o700)
}

const (
	s3Access = "bench"
	s3Secret = "correct-horse-battery"
)

var versitygw = peer{
	name:      "versitygw",
	readyPath: "/ready",
	command: func(addr, dir string) []string {
		return []string{
			"versitygw", "--access", s3Access, "--secret", s3Secret, "--port", addr, "--health", "/ready", "--quiet",
			"posix", "--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "data"),
		}
	},
	// A bucket is a folder.
	prepare: func(_, dir string) error {
		if err := os.MkdirAll(filepath.Join(dir, "data", "bench"), 0o700); err != nil {
			return err
		}
		return os.Mkdir(filepath.Join(dir, "meta"), 0o700)
	},
	fileStore: func(p *process) (fileStore, error) {
		at := p.base + "/bench/reads.bin"
		c := &caller{client: http.Client{Timeout: 30 * time.Second}}
		return fileStore{
			putURL: func(int64) (string, error) { return presign(http.MethodPut, at, time.Now()) },
			getURL: func() (string, error) { return presign(http.MethodGet, at, time.Now()) },
			remove: func() error {
				u, err := presign(http.MethodDelete, at, time.Now())
				if err != nil {
					return err
				}
				return c.delete(u)
			},
		}, nil
	},
}

// presign signs an S3 address for a quarter of an hour (AWS Signature Version
// 4); the body stays unsigned.
func presign(method, address string, now time.Time) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	day, moment := now.UTC().Format("20060102"), now.UTC().Format("20060102T150405Z")
	scope := day + "/us-east-1/s3/aws4_request"
	query := url.Values{
		"X-Amz-Algorithm":     {"AWS4-HMAC-SHA256"},
		"X-Amz-Credential":    {s3Access + "/" + scope},
		"X-Amz-Date":          {moment},
		"X-Amz-Expires":       {"900"},
		"X-Amz-SignedHeaders": {"host"},
	}.Encode()
	request := strings.Join([]string{method, u.EscapedPath(), query, "host:" + u.Host, "", "host", "UNSIGNED-PAYLOAD"}, "\n")
	sum := sha256.Sum256([]byte(request))
	key := []byte("AWS4" + s3Secret)
	for _, part := range []string{day, "us-east-1", "s3", "aws4_request"} {
		key = authenticate(key, part)
	}
	signature := authenticate(key, strings.Join([]string{"AWS4-HMAC-SHA256", moment, scope, hex.EncodeToString(sum[:])}, "\n"))
	u.RawQuery = query + "&X-Amz-Signature=" + hex.EncodeToString(signature)
	return u.String(), nil
}

func authenticate(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
