package disk_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
)

var (
	noon     = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	upload   = objects.Upload{Key: "teams/a/k.csv", ContentType: "text/csv", Size: 5, Expires: noon, Base: "https://one.example"}
	download = objects.Download{Key: "teams/a/k.csv", Name: "k & co.csv", ContentType: "text/csv", Expires: noon, Base: "https://one.example"}
)

// sign makes both addresses.
func sign(t *testing.T, s *disk.Signer) (put, get *url.URL) {
	t.Helper()
	text, err := s.PresignPut(upload)
	if err != nil {
		t.Fatal(err)
	}
	if put, err = url.Parse(text); err != nil {
		t.Fatal(err)
	}
	if text, err = s.PresignGet(download); err != nil {
		t.Fatal(err)
	}
	if get, err = url.Parse(text); err != nil {
		t.Fatal(err)
	}
	return put, get
}

func TestAnAddressAllowsWhatWasSignedUntilItExpires(t *testing.T) {
	t.Parallel()
	put, get := sign(t, signer)
	putAllows := disk.Signed{Method: "PUT", Key: upload.Key, ContentType: "text/csv", Size: 5, Expires: noon}
	getAllows := disk.Signed{Method: "GET", Key: upload.Key, ContentType: "text/csv", Name: "k & co.csv", Expires: noon}
	for name, tt := range map[string]struct {
		method string
		u      *url.URL
		now    time.Time
		want   disk.Signed
	}{
		"an upload":               {"PUT", put, noon.Add(-time.Second), putAllows},
		"a download":              {"GET", get, noon.Add(-time.Second), getAllows},
		"a look":                  {"HEAD", get, noon.Add(-time.Second), getAllows},
		"an upload too late":      {"PUT", put, noon, disk.Signed{}},
		"a download too late":     {"GET", get, noon.Add(time.Hour), disk.Signed{}},
		"a look at an upload":     {"HEAD", put, noon.Add(-time.Second), disk.Signed{}},
		"a download of an upload": {"GET", put, noon.Add(-time.Second), disk.Signed{}},
		"an upload to a download": {"PUT", get, noon.Add(-time.Second), disk.Signed{}},
		"no method":               {"", get, noon.Add(-time.Second), disk.Signed{}},
	} {
		got, err := signer.Verify(tt.method, tt.u, tt.now)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if refused := fault.Is(err, fault.KindForbidden); refused != (tt.want.Key == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryOriginServesTheSameAddress(t *testing.T) {
	t.Parallel()
	_, get := sign(t, signer)
	get.Scheme, get.Host = "http", "two.example:8080"
	if _, err := signer.Verify("GET", get, noon.Add(-time.Second)); err != nil {
		t.Error(err)
	}
}

func TestABentAddressAllowsNothing(t *testing.T) {
	t.Parallel()
	for name, bend := range map[string]func(u *url.URL){
		"another secret":           func(u *url.URL) { *u, _ = signedWith(t, "another key") },
		"another path":             func(u *url.URL) { u.Path = strings.Replace(u.Path, "/objects/", "/object/", 1) },
		"another key":              func(u *url.URL) { u.Path += "x" },
		"a later expiry":           func(u *url.URL) { replace(u, "&e=1", "&e=2") },
		"a number written longer":  func(u *url.URL) { replace(u, "&l=5", "&l=05") },
		"a parameter twice":        func(u *url.URL) { u.RawQuery += "&l=6" },
		"a signature twice":        func(u *url.URL) { u.RawQuery += "&s=" + u.Query().Get("s") },
		"a signature with padding": func(u *url.URL) { replace(u, u.Query().Get("s"), u.Query().Get("s")+"%3D") },
		"no signature":             func(u *url.URL) { replace(u, "s="+u.Query().Get("s"), "") },
		"a broken query":           func(u *url.URL) { u.RawQuery += "&%zz" },
		"a semicolon":              func(u *url.URL) { u.RawQuery += ";l=6" },
		// The path must not be replaceable by a parameter of whatever name.
		"a key as a parameter": func(u *url.URL) {
			u.RawQuery += "&" + url.Values{"/objects/": {upload.Key}, "k": {upload.Key}, "": {upload.Key}}.Encode()
			u.Path += "x"
		},
		"parameters in the key": func(u *url.URL) { u.Path, u.RawQuery = u.Path+"?"+u.RawQuery, "" },
	} {
		put, _ := sign(t, signer)
		bend(put)
		if got, err := signer.Verify("PUT", put, noon.Add(-time.Hour)); !fault.Is(err, fault.KindForbidden) {
			t.Errorf("%s allows %+v, %v", name, got, err)
		}
	}
}

func signedWith(t *testing.T, key string) (put, get url.URL) {
	t.Helper()
	p, g := sign(t, disk.NewSigner([]byte(key)))
	return *p, *g
}

func replace(u *url.URL, before, after string) {
	u.RawQuery = strings.Replace("&"+u.RawQuery, before, after, 1)
}

// FuzzVerify signs, overwrites a part of the address with something else, and
// looks whether what it still allows, if anything, is what was signed.
func FuzzVerify(f *testing.F) {
	f.Add("a/k.csv", "text/csv", "k.csv", int64(5), uint(0), uint(0), "")
	f.Add("a/ż?&=%2F+;k", "text/csv; charset=utf-8", "\x00\"&s=", int64(0), uint(20), uint(1), "&m=PUT")
	f.Add("objects/..%2f", "a/b", "", int64(1)<<40, uint(10), uint(300), "objects/x?s=")
	f.Fuzz(func(t *testing.T, key, contentType, name string, size int64, at, length uint, with string) {
		put, errPut := signer.PresignPut(objects.Upload{Key: key, ContentType: contentType, Size: size, Expires: noon})
		get, errGet := signer.PresignGet(objects.Download{Key: key, ContentType: contentType, Name: name, Expires: noon})
		if errPut == nil {
			stillAllows(t, put, overwrite(put, at, length, with), disk.Signed{
				Method: "PUT", Key: key, ContentType: contentType, Size: size, Expires: noon,
			})
		}
		if errGet == nil {
			stillAllows(t, get, overwrite(get, at, length, with), disk.Signed{
				Method: "GET", Key: key, ContentType: contentType, Name: name, Expires: noon,
			})
		}
	})
}

func overwrite(s string, at, length uint, with string) string {
	from := min(at, uint(len(s)))
	to := from + min(length, uint(len(s))-from)
	return s[:from] + with + s[to:]
}

func stillAllows(t *testing.T, address, changed string, want disk.Signed) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := signer.Verify(want.Method, u, noon.Add(-time.Second)); err != nil || !cmp.Equal(got, want) {
		t.Fatalf("%s allows %+v, %v", address, got, err)
	}
	if u, err = url.Parse(changed); err != nil {
		return
	}
	for _, method := range []string{"PUT", "GET", "HEAD", "DELETE"} {
		got, err := signer.Verify(method, u, noon.Add(-time.Second))
		if err == nil && !cmp.Equal(got, want) {
			t.Errorf("%s became %s and allows %+v", address, changed, got)
		}
	}
}
