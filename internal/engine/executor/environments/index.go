package environments

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/environments/machine"
	"github.com/millrace/millrace/internal/safedial"
)

// index is our view of the operator's package indexes: wheels with hashes, and
// nothing else. For each package the first index that has it is the only one, so
// that nobody can put a newer one of the same name into a later index.
type index struct {
	client *http.Client // of indexes and their files
	direct *http.Client // of the mirror, of which pip knows nothing
	key    []byte       // from which the nonces of sealed addresses are made
	sealed cipher.AEAD  // seals the addresses of files
	mirror *url.URL     // of interpreters; nil: there is none

	lacks string                                // why there are none, for everybody; empty: there are some
	why   error                                 // the same for the operator
	own   func(context.Context) (string, error) // finds pip's own index, which comes last; nil: it is not asked, or known
	finds bool                                  // pip's own index has to be found, for which uv needs an interpreter

	mu      sync.Mutex
	bases   []*url.URL
	trusted safedial.Hosts
}

const (
	maxPage   = 64 << 20 // bytes of what an index says of a package
	pageTime  = 2 * time.Minute
	jsonPage  = "application/vnd.pypi.simple.v1+json"
	wantPages = jsonPage + ", application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
)

func newIndex(c Config) (x *index, err error) {
	x = &index{key: []byte(rand.Text())}
	x.direct = &http.Client{Transport: safedial.TransportTo(c.AllowPrivate, &x.trusted), CheckRedirect: safedial.FewRedirects}
	x.client = x.direct
	sum := sha256.Sum256(x.key)
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	if x.sealed, err = cipher.NewGCM(block); err != nil {
		return nil, err
	}
	if x.mirror, err = parseMirror(c.PythonMirror); err != nil {
		return nil, err
	}
	if slices.Equal(c.Indexes, []string{AsMachine}) {
		x.askAsPip(c)
		return x, nil
	}
	for _, text := range c.Indexes {
		if _, err := x.add(text); err != nil {
			return nil, err
		}
	}
	if len(x.bases) == 0 {
		x.lacks = "a package index (--pip-index-url)"
	}
	return x, nil
}

// askAsPip has the indexes be those that pip on the machine uses. They may be in private
// networks, since the machine's configuration names them.
func (x *index) askAsPip(c Config) {
	pip, err := c.Machine.Pip()
	if pip.Default {
		x.own, x.finds = c.ownIndex, true
	}
	for _, address := range pip.Indexes {
		u, addErr := x.add(address)
		if addErr == nil {
			x.trusted.Add(u)
		}
		err = errors.Join(err, addErr)
	}
	if err == nil && pip.Proxy+pip.Cert != "" {
		err = x.connectAsPip(pip, c.AllowPrivate)
	}
	if err != nil {
		x.lacks, x.why = "a package index (what pip is told on the machine cannot be used, as `millrace admin doctor` explains; --pip-index-url takes its place)", err
	}
}

// connectAsPip has indexes reached through pip's proxy, and trusted by pip's certificates.
func (x *index) connectAsPip(pip machine.Pip, allowPrivate bool) error {
	transport := safedial.TransportTo(allowPrivate, &x.trusted)
	if pip.Proxy != "" {
		proxy, err := url.Parse(pip.Proxy)
		if err != nil {
			return errors.New("pip's proxy has no address that can be read")
		}
		transport = safedial.TransportThrough(proxy, allowPrivate, &x.trusted)
	}
	if pip.Cert != "" {
		text, err := os.ReadFile(pip.Cert)
		if err != nil {
			return fmt.Errorf("pip's certificates (cert): %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return fmt.Errorf("pip's certificates (cert): %s has none in PEM format", pip.Cert)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	x.client = &http.Client{Transport: transport, CheckRedirect: safedial.FewRedirects}
	return nil
}

func (x *index) add(address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(address, "/") + "/")
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%q is not the address of a package index such as https://packages.example.org/simple/", address)
	}
	x.bases = append(x.bases, u)
	return u, nil
}

// all are the indexes. pip's own is found when it is asked for the first time.
func (x *index) all(ctx context.Context) ([]*url.URL, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.own != nil {
		address, err := x.own(ctx)
		if err != nil {
			return nil, err
		}
		u, err := x.add(address)
		if err != nil {
			return nil, err
		}
		x.trusted.Add(u)
		x.own = nil
	}
	return slices.Clone(x.bases), nil
}

// reach reports whether the indexes answer, and the hosts of their files.
func (x *index) reach(ctx context.Context) error {
	bases, err := x.all(ctx)
	for _, base := range bases {
		files, _, pageErr := x.page(ctx, base, "pip")
		if len(files) > 0 {
			pageErr = x.reachFile(ctx, bases, files[len(files)-1])
		}
		if pageErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", base.Redacted(), pageErr))
		}
	}
	return errors.Join(err, x.reachMirror(ctx))
}

// reachFile asks for the first byte of a file: it may be on another host than the index.
func (x *index) reachFile(ctx context.Context, bases []*url.URL, f file) error {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	u, err := url.Parse(f.URL)
	if err != nil {
		return err
	}
	identify(u, bases)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	r.Header.Set("Range", "bytes=0-0")
	answer, err := x.client.Do(r)
	if err != nil {
		return fmt.Errorf("its files are at %s, which cannot be reached: %s", u.Host, safedial.Reason(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("its files are at %s, which answered %s", u.Host, answer.Status)
	}
	return nil
}

// identify gives an address on the host of an index the credentials of that.
func identify(u *url.URL, bases []*url.URL) {
	for _, base := range bases {
		if base.User != nil && base.Scheme == u.Scheme && base.Host == u.Host {
			u.User = base.User
		}
	}
}

// visit is one build's, which may fetch so many bytes. note hears why something could not be
// fetched: the tool that asks for it does not say.
type visit struct {
	*index
	left atomic.Int64
	note func(why string)
}

// handler answers one build.
func (x *index) handler(most int64, note func(why string)) http.Handler {
	v := &visit{index: x, note: note}
	v.left.Store(most)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /simple/{name}/", v.servePage)
	mux.HandleFunc("GET /python/{release}/{file}", v.servePython)
	mux.HandleFunc("GET /files/{sealed}/{name}", v.serveFile)
	return mux
}

// fail answers that something cannot be fetched.
func (v *visit) fail(w http.ResponseWriter, why string) {
	v.note(why)
	http.Error(w, why, http.StatusBadGateway)
}

var packageName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (v *visit) servePage(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if !packageName.MatchString(name) {
		http.NotFound(w, r)
		return
	}
	bases, err := v.all(r.Context())
	if err != nil {
		v.fail(w, err.Error())
		return
	}
	for _, base := range bases {
		files, found, err := v.page(r.Context(), base, name)
		if err != nil {
			// A later index might have another package of this name.
			v.fail(w, fmt.Sprintf("the package %s: %s", name, err))
			return
		}
		if found {
			v.writePage(w, name, files)
			return
		}
	}
	http.NotFound(w, r)
}

// page is what one index has of a package.
func (x *index) page(ctx context.Context, base *url.URL, name string) (files []file, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(name).String()+"/", nil)
	if err != nil {
		return nil, false, err
	}
	r.Header.Set("Accept", wantPages)
	answer, err := x.client.Do(r)
	if err != nil {
		return nil, false, errors.New("the package index cannot be reached: " + safedial.Reason(err))
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return nil, false, nil
	default:
		return nil, false, fmt.Errorf("the package index answered %s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxPage+1))
	if err != nil {
		return nil, false, errors.New("what the package index says of it cannot be fetched: " + safedial.Reason(err))
	}
	if len(text) > maxPage {
		return nil, false, errors.New("what the package index says of it is too long")
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), jsonPage) {
		files, err = readJSON(text)
	} else {
		files, err = readHTML(text)
	}
	return wheels(files, answer.Request.URL), true, err
}

func (x *index) writePage(w http.ResponseWriter, name string, files []file) {
	for i, f := range files {
		files[i].URL = "/files/" + x.seal(f.URL) + "/" + url.PathEscape(f.Filename)
	}
	writePage(w, name, files)
}

func writePage(w http.ResponseWriter, name string, files []file) {
	w.Header().Set("Content-Type", jsonPage)
	_ = json.NewEncoder(w).Encode(page{Meta: map[string]string{"api-version": "1.0"}, Name: name, Files: files})
}

// seal makes a word of the address of a file, by which a build asks for it. Nobody but us
// can read the address, which may hold a password, or make such a word of another one.
func (x *index) seal(address string) string {
	mac := hmac.New(sha256.New, x.key)
	mac.Write([]byte(address))
	nonce := mac.Sum(nil)[:x.sealed.NonceSize()]
	return base64.RawURLEncoding.EncodeToString(x.sealed.Seal(nonce, nonce, []byte(address), nil))
}

func (x *index) unseal(word string) (*url.URL, error) {
	text, err := base64.RawURLEncoding.DecodeString(word)
	n := x.sealed.NonceSize()
	if err != nil || len(text) < n {
		return nil, errors.New("it is no sealed address")
	}
	address, err := x.sealed.Open(nil, text[:n], text[n:], nil)
	if err != nil {
		return nil, err
	}
	return url.Parse(string(address))
}

// serveFile hands on a file that an index has named, or its metadata. Credentials of an
// index go along to its own host, and never into the sandbox.
func (v *visit) serveFile(w http.ResponseWriter, r *http.Request) {
	u, err := v.unseal(r.PathValue("sealed"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	if strings.HasSuffix(r.PathValue("name"), ".metadata") {
		u.Path += ".metadata"
	}
	bases, err := v.all(r.Context())
	if err != nil {
		v.fail(w, err.Error())
		return
	}
	identify(u, bases)
	v.forward(w, r, v.client, u)
}

func (v *visit) forward(w http.ResponseWriter, r *http.Request, through *http.Client, u *url.URL) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, u.String(), nil)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	out.Header.Set("Accept-Encoding", "identity")
	if ask := r.Header.Get("Range"); ask != "" {
		out.Header.Set("Range", ask)
	}
	answer, err := through.Do(out)
	if err != nil {
		v.fail(w, path.Base(u.Path)+" cannot be fetched: "+safedial.Reason(err))
		return
	}
	defer answer.Body.Close()
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Etag", "Last-Modified"} {
		if value := answer.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, &metered{answer.Body, &v.left})
}

// metered ends when a build has fetched all that it may.
type metered struct {
	r    io.Reader
	left *atomic.Int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if m.left.Add(-int64(n)) < 0 {
		return 0, errors.New("the build fetches too much")
	}
	return n, err
}
