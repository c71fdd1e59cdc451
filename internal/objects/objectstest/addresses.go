package objectstest

import (
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
)

const tableType = "text/csv; charset=utf-8"

func soon() time.Time { return time.Now().Add(5 * time.Minute) }

// response is what came back over HTTP.
type response struct {
	status int
	header http.Header
	body   string
}

// ok says whether the request was let through.
func (r response) ok() bool { return r.status/100 == 2 }

// request sends a body, or none when the content type is empty.
func request(t *testing.T, method, address, contentType, body string) response {
	t.Helper()
	var source io.Reader
	if contentType != "" {
		source = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, source)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, string(text)}
}

// upload sends a table through a presigned PUT and gives the address back.
func upload(t *testing.T, s Subject, base, key, body string) string {
	t.Helper()
	address := uploadAddress(t, s, base, key, int64(len(body)))
	if got := request(t, "PUT", address, tableType, body); !got.ok() {
		t.Fatalf("%s: %d %s", key, got.status, got.body)
	}
	return address
}

func uploadAddress(t *testing.T, s Subject, base, key string, size int64) string {
	t.Helper()
	address, err := s.PresignPut(t.Context(), objects.Upload{Key: key, ContentType: tableType, Size: size, Expires: soon(), Base: base})
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func uploadArrives(t *testing.T, s Subject, base string) {
	address := uploadAddress(t, s, base, "a/b/k", 5)
	_, err := s.Arrived(t.Context(), "a/b/k")
	wantKind(t, err, fault.KindNotFound)
	if got := request(t, "PUT", address, tableType, "hello"); !got.ok() {
		t.Fatalf("%d %s", got.status, got.body)
	}
	// A store that completes uploads by itself has none that wait.
	if keys, err := s.Staged(t.Context(), "a/", "", 10); err != nil || len(keys) > 1 || len(keys) == 1 && keys[0] != "a/b/k" {
		t.Errorf("%q wait, %v", keys, err)
	}
	for range 2 {
		o, err := s.Arrived(t.Context(), "a/b/k")
		if err != nil || o.Key != "a/b/k" || o.Size != 5 || o.Mark == "" {
			t.Fatalf("%+v, %v", o, err)
		}
		if keys, err := s.Staged(t.Context(), "a/", "", 10); err != nil || len(keys) > 0 {
			t.Errorf("%q wait, %v", keys, err)
		}
	}
	want(t, s, "a/b/k", "hello")
	wantKeys(t, s, "", "", 10, "a/b/k")
	upload(t, s, base, "a/b/empty", "")
	if o, err := s.Arrived(t.Context(), "a/b/empty"); err != nil || o.Size != 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

func secondUpload(t *testing.T, s Subject, base string) {
	address := upload(t, s, base, "a/k", "first")
	first, err := s.Arrived(t.Context(), "a/k")
	if err != nil {
		t.Fatal(err)
	}
	// Whether it is refused or goes nowhere is the store's business.
	request(t, "PUT", address, tableType, "other")
	again, err := s.Arrived(t.Context(), "a/k")
	if err != nil || again.Mark != first.Mark {
		t.Errorf("%+v became %+v, %v", first, again, err)
	}
	want(t, s, "a/k", "first")
	if _, err := s.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	want(t, s, "a/k", "first")
}

func settledOnce(t *testing.T, s Subject, base string) {
	const clients = 6
	address := uploadAddress(t, s, base, "a/k", 5)
	var wg sync.WaitGroup
	marks, errs := make([]string, clients), make([]error, clients)
	for i := range clients {
		wg.Go(func() {
			request(t, "PUT", address, tableType, strings.Repeat(string(rune('a'+i)), 5))
			var o objects.Object
			o, errs[i] = s.Arrived(t.Context(), "a/k")
			marks[i] = o.Mark
		})
	}
	wg.Wait()
	settled, err := s.Arrived(t.Context(), "a/k")
	if err != nil {
		t.Fatal(err)
	}
	for i, mark := range marks {
		// Whoever was overtaken again and again may have been told to wait.
		if errs[i] == nil && mark != settled.Mark {
			t.Errorf("client %d was told %s, and it is %s", i, mark, settled.Mark)
		}
		if errs[i] != nil {
			wantKind(t, errs[i], fault.KindNotFound)
		}
	}
}

func uploadAsSigned(t *testing.T, s Subject, base string) {
	address := uploadAddress(t, s, base, "a/k", 5)
	for name, tt := range map[string]struct{ method, contentType, body string }{
		"another method":    {"POST", tableType, "hello"},
		"a download":        {"GET", "", ""},
		"a look":            {"HEAD", "", ""},
		"a deletion":        {"DELETE", "", ""},
		"another type":      {"PUT", "text/html", "hello"},
		"a type less exact": {"PUT", "text/csv", "hello"},
		"no body":           {"PUT", "", ""},
		"a shorter body":    {"PUT", tableType, "hell"},
		"a longer body":     {"PUT", tableType, "hello!"},
	} {
		if got := request(t, tt.method, address, tt.contentType, tt.body); got.ok() {
			t.Errorf("%s is let through: %d", name, got.status)
		}
	}
	_, err := s.Arrived(t.Context(), "a/k")
	wantKind(t, err, fault.KindNotFound)
	if got := request(t, "PUT", address, tableType, "hello"); !got.ok() {
		t.Errorf("what was signed is refused: %d %s", got.status, got.body)
	}
}

// bent gives the address with each part changed, one at a time, under a name
// that says which.
func bent(t *testing.T, address string) map[string]string {
	t.Helper()
	all := map[string]string{}
	change := func(name string, f func(u *url.URL, q url.Values)) {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		f(u, q)
		u.RawQuery = q.Encode()
		all[name] = u.String()
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for param, values := range u.Query() {
		change(param+" longer", func(_ *url.URL, q url.Values) { q.Set(param, values[0]+"1") })
		change(param+" empty", func(_ *url.URL, q url.Values) { q.Set(param, "") })
		change(param+" gone", func(_ *url.URL, q url.Values) { q.Del(param) })
	}
	change("another key", func(u *url.URL, _ url.Values) { u.Path += "2" })
	change("a key above", func(u *url.URL, _ url.Values) { u.Path = u.Path[:strings.LastIndex(u.Path, "/")] })
	change("a parameter more", func(_ *url.URL, q url.Values) { q.Set("x-extra", "1") })
	return all
}

func uploadTampered(t *testing.T, s Subject, base string) {
	put(t, s, "a/other", "x")
	address := uploadAddress(t, s, base, "a/k", 5)
	for name, address := range bent(t, address) {
		if got := request(t, "PUT", address, tableType, "hello"); got.ok() {
			t.Errorf("%s is let through: %d", name, got.status)
		}
	}
	for _, key := range []string{"a/k", "a/k2"} {
		_, err := s.Arrived(t.Context(), key)
		wantKind(t, err, fault.KindNotFound)
	}
}

func downloads(t *testing.T, s Subject, base string) {
	put(t, s, "a/k", "<script>")
	for _, name := range []string{"results.csv", "żółw \"a\" 50%.csv", "a/../b.csv"} {
		address, err := s.PresignGet(t.Context(), objects.Download{Key: "a/k", Name: name, ContentType: tableType, Expires: soon(), Base: base})
		if err != nil {
			t.Fatal(err)
		}
		got := request(t, "GET", address, "", "")
		if got.status != 200 || got.body != "<script>" || got.header.Get("Content-Type") != tableType {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
		disposition := got.header.Get("Content-Disposition")
		if kind, _, err := mime.ParseMediaType(disposition); disposition != objects.Attachment(name) || kind != "attachment" || err != nil {
			t.Errorf("%s: %v", disposition, err)
		}
		for _, method := range []string{"PUT", "POST", "DELETE"} {
			if got := request(t, method, address, tableType, "hello"); got.ok() {
				t.Errorf("%s is let through: %d", method, got.status)
			}
		}
	}
	want(t, s, "a/k", "<script>")
}

func downloadTampered(t *testing.T, s Subject, base string) {
	put(t, s, "a/k", "mine")
	put(t, s, "a/k2", "not mine")
	address, err := s.PresignGet(t.Context(), objects.Download{Key: "a/k", Name: "n.csv", ContentType: tableType, Expires: soon(), Base: base})
	if err != nil {
		t.Fatal(err)
	}
	for name, address := range bent(t, address) {
		if got := request(t, "GET", address, "", ""); got.ok() {
			t.Errorf("%s is let through: %d", name, got.status)
		}
	}
}

func linkExpires(t *testing.T, s Subject, base string) {
	put(t, s, "a/k", "bytes")
	address, err := s.PresignGet(t.Context(), objects.Download{
		Key: "a/k", Name: "n", ContentType: tableType, Expires: time.Now().Add(2 * time.Second), Base: base,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Some servers know only their own clock, so the end is waited for.
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(30 * time.Second); request(t, "GET", address, "", "").ok(); <-again.C {
		if time.Now().After(deadline) {
			t.Fatal("the link still works")
		}
	}
}

func nonsenseIsNotSigned(t *testing.T, s Subject, _ string) {
	for _, contentType := range []string{"", "text", "text/plain\r\nX-Injected: 1", "text/żółw"} {
		_, err := s.PresignPut(t.Context(), objects.Upload{Key: "k", ContentType: contentType, Size: 1, Expires: soon()})
		wantKind(t, err, fault.KindInvalid)
		_, err = s.PresignGet(t.Context(), objects.Download{Key: "k", ContentType: contentType, Expires: soon()})
		wantKind(t, err, fault.KindInvalid)
		_, err = s.Put(t.Context(), "k", contentType, strings.NewReader("x"), 1)
		wantKind(t, err, fault.KindInvalid)
	}
	_, err := s.PresignPut(t.Context(), objects.Upload{Key: "k", ContentType: tableType, Size: -1, Expires: soon()})
	wantKind(t, err, fault.KindInvalid)
}

func unsettledUploadIsDeleted(t *testing.T, s Subject, base string) {
	upload(t, s, base, "teams/a/1", "hello")
	upload(t, s, base, "teams/a/2", "hello")
	upload(t, s, base, "teams/ab/3", "hello")
	if err := s.Delete(t.Context(), "teams/a/1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeletePrefix(t.Context(), "teams/a/"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"teams/a/1", "teams/a/2"} {
		_, err := s.Arrived(t.Context(), key)
		wantKind(t, err, fault.KindNotFound)
	}
	if _, err := s.Arrived(t.Context(), "teams/ab/3"); err != nil {
		t.Error(err)
	}
}
