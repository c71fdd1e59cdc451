package environments

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/safedial"
)

// index is our view of the operator's package indexes: wheels with hashes, and
// nothing else. For each package the first index that has it is the only one, so
// that nobody can put a newer one of the same name into a later index.
type index struct {
	bases  []*url.URL
	client *http.Client
	key    []byte   // signs the addresses of files
	mirror *url.URL // of interpreters; nil: there is none
}

const (
	maxPage   = 64 << 20 // bytes of what an index says of a package
	pageTime  = 2 * time.Minute
	jsonPage  = "application/vnd.pypi.simple.v1+json"
	wantPages = jsonPage + ", application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
)

func newIndex(bases []string, mirror string, allowPrivate bool) (x *index, err error) {
	x = &index{client: &http.Client{Transport: safedial.Transport(allowPrivate), CheckRedirect: fewRedirects}, key: []byte(rand.Text())}
	if x.mirror, err = parseMirror(mirror); err != nil {
		return nil, err
	}
	for _, text := range bases {
		u, err := url.Parse(strings.TrimSuffix(text, "/") + "/")
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, fmt.Errorf("%q is not the address of a package index such as https://packages.example.org/simple/", text)
		}
		x.bases = append(x.bases, u)
	}
	return x, nil
}

func fewRedirects(r *http.Request, before []*http.Request) error {
	r.Header.Del("Referer") // the path of an index may hold a password
	if len(before) > 5 {
		return errors.New("the package index redirects too often")
	}
	if before[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return errors.New("the package index redirects to an address that is not https")
	}
	return nil
}

// reach reports whether the indexes answer.
func (x *index) reach(ctx context.Context) (err error) {
	for _, base := range x.bases {
		if _, _, pageErr := x.page(ctx, base, "pip"); pageErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", base.Redacted(), pageErr))
		}
	}
	return errors.Join(err, x.reachMirror(ctx))
}

// handler answers one build, which may fetch so many bytes.
func (x *index) handler(most int64) http.Handler {
	left := &atomic.Int64{}
	left.Store(most)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /simple/{name}/", x.servePage)
	mux.HandleFunc("GET /python/{release}/{file}", func(w http.ResponseWriter, r *http.Request) { x.servePython(w, r, left) })
	mux.HandleFunc("GET /files/{mac}/{url}/{name}", func(w http.ResponseWriter, r *http.Request) { x.serveFile(w, r, left) })
	return mux
}

var packageName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (x *index) servePage(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if !packageName.MatchString(name) {
		http.NotFound(w, r)
		return
	}
	for _, base := range x.bases {
		files, found, err := x.page(r.Context(), base, name)
		if err != nil {
			// A later index might have another package of this name.
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		if found {
			x.writePage(w, base, name, files)
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
		return nil, false, errors.New("the package index cannot be reached: " + reason(err))
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
	if err == nil && len(text) > maxPage {
		err = errors.New("what the package index says of it is too long")
	}
	if err != nil {
		return nil, false, err
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), jsonPage) {
		files, err = readJSON(text)
	} else {
		files, err = readHTML(text)
	}
	return wheels(files, answer.Request.URL), true, err
}

// reason is why a request failed, without the address: it may hold a password.
func reason(err error) string {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return err.Error()
}

func (x *index) writePage(w http.ResponseWriter, base *url.URL, name string, files []file) {
	for i, f := range files {
		files[i].URL = x.address(base, f)
	}
	w.Header().Set("Content-Type", jsonPage)
	_ = json.NewEncoder(w).Encode(page{Meta: map[string]string{"api-version": "1.0"}, Name: name, Files: files})
}

// address is where a build finds a file. Credentials of an index go along to its
// own host, and never into the sandbox.
func (x *index) address(base *url.URL, f file) string {
	return "/files/" + x.sign(f.URL) + "/" + base64.RawURLEncoding.EncodeToString([]byte(f.URL)) + "/" + url.PathEscape(f.Filename)
}

func (x *index) sign(address string) string {
	mac := hmac.New(sha256.New, x.key)
	mac.Write([]byte(address))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// serveFile hands on a file that an index has named, or its metadata.
func (x *index) serveFile(w http.ResponseWriter, r *http.Request, left *atomic.Int64) {
	text, err := base64.RawURLEncoding.DecodeString(r.PathValue("url"))
	if err != nil || !hmac.Equal([]byte(x.sign(string(text))), []byte(r.PathValue("mac"))) {
		http.NotFound(w, r)
		return
	}
	u, err := url.Parse(string(text))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	if strings.HasSuffix(r.PathValue("name"), ".metadata") {
		u.Path += ".metadata"
	}
	for _, base := range x.bases {
		if base.User != nil && base.Scheme == u.Scheme && base.Host == u.Host {
			u.User = base.User
		}
	}
	x.forward(w, r, u, left)
}

func (x *index) forward(w http.ResponseWriter, r *http.Request, u *url.URL, left *atomic.Int64) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, u.String(), nil)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	out.Header.Set("Accept-Encoding", "identity")
	if ask := r.Header.Get("Range"); ask != "" {
		out.Header.Set("Range", ask)
	}
	answer, err := x.client.Do(out)
	if err != nil {
		http.Error(w, path.Base(u.Path)+" cannot be fetched: "+reason(err), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Etag", "Last-Modified"} {
		if value := answer.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, &metered{answer.Body, left})
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
