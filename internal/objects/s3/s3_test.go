package s3

import (
	"crypto/rand"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/objectstest"
)

// server is the address of a real bucket. Without one the test is skipped,
// except in CI, where nothing may be missed.
func server(t *testing.T) *url.URL {
	t.Helper()
	address := os.Getenv("MILLRACE_TEST_S3")
	if address == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("MILLRACE_TEST_S3 is not set: use `make test`")
		}
		t.Skip("MILLRACE_TEST_S3 is not set: scripts/with-s3 starts a server")
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// with changes a parameter of the address.
func with(u *url.URL, name, value string) *url.URL {
	changed := *u
	q := u.Query()
	q.Set(name, value)
	changed.RawQuery = q.Encode()
	return &changed
}

func fresh(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), with(server(t), "prefix", "t-"+rand.Text()).String(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestABucketKeepsThePromisesOfAStore(t *testing.T) {
	objectstest.Run(t, func(t *testing.T) (objectstest.Subject, string) {
		s := fresh(t)
		return objectstest.Subject{Store: s, Presigner: s}, ""
	})
}

// The clock of the machine, with which addresses are signed, is not the installation's:
// an address is good for as long as it says all the same.
func TestAddressesLiveOnAMachineWithAWrongClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(t)
			s.now = func() time.Time { return time.Now().Add(-off) }
			expires := s.now().Add(5 * time.Minute)
			address, err := s.PresignPut(t.Context(), objects.Upload{Key: "a/k", ContentType: "text/csv", Size: 5, Expires: expires})
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			signed, err := time.Parse("20060102T150405Z", u.Query().Get("X-Amz-Date"))
			if err != nil {
				t.Fatal(err)
			}
			life, err := strconv.Atoi(u.Query().Get("X-Amz-Expires"))
			if until := signed.Add(time.Duration(life) * time.Second); err != nil || until.Before(expires.Add(-2*time.Second)) {
				t.Errorf("it is good until %s, and not until %s, %v", until, expires, err)
			}
			send(t, address, "first")
		})
	}
}

func TestAStrayUploadIsSweptWhenItIsOld(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	address, err := s.PresignPut(t.Context(), objects.Upload{Key: "a/k", ContentType: "text/csv", Size: 5, Expires: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	send(t, address, "first")
	if _, err := s.Arrived(t.Context(), "a/k"); err != nil {
		t.Fatal(err)
	}
	send(t, address, "stray")
	for _, tt := range []struct {
		before time.Duration
		want   int
	}{{-time.Hour, 0}, {time.Hour, 1}, {time.Hour, 0}} {
		if n, err := s.Sweep(t.Context(), time.Now().Add(tt.before)); err != nil || n != tt.want {
			t.Errorf("swept %d, %v; want %d", n, err, tt.want)
		}
	}
	if _, err := s.Stat(t.Context(), "a/k"); err != nil {
		t.Error(err)
	}
}

// cutOff leaves a part of an upload behind.
func (s *Store) cutOff(t *testing.T, key string) {
	t.Helper()
	name := s.prefix + settled + key
	id, err := s.client.NewMultipartUpload(t.Context(), s.bucket, name, minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.PutObjectPart(t.Context(), s.bucket, name, id, 1, strings.NewReader("part"), 4, minio.PutObjectPartOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestThePartsOfAnUploadGoWithTheirPrefix(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	s.cutOff(t, "teams/a/k")
	s.cutOff(t, "teams/ab/k")
	if n, err := s.DeletePrefix(t.Context(), "teams/a/"); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := s.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil || n != 1 {
		t.Errorf("%d uploads are left, %v; want the neighbour's", n, err)
	}
}

func TestAnUploadThatWasCutOffIsSweptWhenItIsOld(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	s.cutOff(t, "a/k")
	for _, tt := range []struct {
		before time.Duration
		want   int
	}{{-time.Hour, 0}, {time.Hour, 1}, {time.Hour, 0}} {
		if n, err := s.Sweep(t.Context(), time.Now().Add(tt.before)); err != nil || n != tt.want {
			t.Errorf("swept %d, %v; want %d", n, err, tt.want)
		}
	}
}

func TestALargeObjectIsLinkedInParts(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	s.copied = 5 << 20 // the least that S3 takes
	text := strings.Repeat("0123456789abcdef", 12<<16)
	if _, err := s.Put(t.Context(), "a/k", "text/csv", strings.NewReader(text), int64(len(text))); err != nil {
		t.Fatal(err)
	}
	if err := s.Link(t.Context(), "a/k", "b/k"); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), "b/k", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != text {
		t.Errorf("%d bytes of %d, or others; %v", len(got), len(text), err)
	}
	if o, err := s.Stat(t.Context(), "b/k"); err != nil || o.ContentType != "text/csv" {
		t.Errorf("%+v, %v", o, err)
	}
}

func send(t *testing.T, address, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/csv")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
}

func TestAWrongAddressIsExplained(t *testing.T) {
	t.Parallel()
	right := server(t)
	bucket := *right
	bucket.Host = "no-such-bucket"
	for name, tt := range map[string]struct {
		address *url.URL
		want    string
	}{
		"another bucket":  {&bucket, `there is no bucket "no-such-bucket"`},
		"another key":     {with(right, "access-key", "nobody"), "access key"},
		"another secret":  {with(right, "secret-key", "wrong"), "does not let us use the bucket"},
		"another server":  {with(right, "endpoint", "http://127.0.0.1:1"), "does not answer"},
		"half the secret": {with(right, "secret-key", ""), "needs both or none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), tt.address.String(), time.Now)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestAnAddressThatMakesNoSenseIsRefused(t *testing.T) {
	for _, address := range []string{
		"", "bucket", "s3://", "https://bucket?region=x", "s3://bucket/folder", "s3://user:hidden@bucket",
		"s3://bucket?endpoint=127.0.0.1:7070", "s3://bucket?endpoint=ftp://host", "s3://bucket?endpoint=http://host/path",
		"s3://bucket?regoin=x", "s3://bucket?region=a&region=b", "s3://bucket?prefix=../a", "s3://bucket?secret-key=hidden;x",
		"s3://bucket?access-key=a&secret-key=b&endpoint=http://user:hidden@127.0.0.1:9",
		"s3://bucket?access-key=a&secret-key=b&endpoint=http://127.0.0.1:9%3Fkey%3Dhidden", "s3://bucket?access-key=a&secret-key=hidden&endpoint=http://[hidden",
		"s3://bucket?region=x&public-endpoint=files.example", "s3://bucket?public-endpoint=https://files.example",
	} {
		_, err := Open(t.Context(), address, time.Now)
		if err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"} {
		t.Setenv(name, "")
	}
	if _, err := Open(t.Context(), "s3://bucket", time.Now); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Error(err)
	}
}

func TestCredentialsMayComeFromTheEnvironment(t *testing.T) {
	right := server(t)
	q := right.Query()
	t.Setenv("AWS_ACCESS_KEY_ID", q.Get("access-key"))
	t.Setenv("AWS_SECRET_ACCESS_KEY", q.Get("secret-key"))
	q.Del("access-key")
	q.Del("secret-key")
	right.RawQuery = q.Encode()
	if _, err := Open(t.Context(), right.String(), time.Now); err != nil {
		t.Error(err)
	}
}

// Clients come by another name, such as a proxy's, which their signatures cover.
func TestClientsMayHaveAnAddressOfTheirOwn(t *testing.T) {
	t.Parallel()
	right := server(t)
	s, err := Open(t.Context(), with(with(right, "prefix", "t-"+rand.Text()), "public-endpoint", "https://files.example").String(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Origins()[0]; got != "https://files.example" {
		t.Error(got)
	}
	if _, err := s.Put(t.Context(), "a/k", "text/csv", strings.NewReader("inside"), 6); err != nil {
		t.Fatal(err)
	}
	address, err := s.PresignGet(t.Context(), objects.Download{Key: "a/k", Name: "k.csv", ContentType: "text/csv", Expires: time.Now().Add(time.Minute)})
	if err != nil || !strings.HasPrefix(address, "https://files.example/") {
		t.Fatal(address, err)
	}
	endpoint := right.Query().Get("endpoint")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+strings.TrimPrefix(address, "https://files.example"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "files.example" // as a proxy passes it on
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "inside" {
		t.Errorf("%s %v", text, err)
	}
}

func TestALinkThatHasExpiredIsNotMade(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	_, err := s.PresignGet(t.Context(), objects.Download{Key: "k", ContentType: "text/csv", Expires: time.Now()})
	if !fault.Is(err, fault.KindInvalid) {
		t.Error(err)
	}
}

func TestABucketTakesObjectsInParts(t *testing.T) {
	objectstest.RunParts(t, func(t *testing.T) objectstest.PartStore {
		s := fresh(t)
		return objectstest.PartStore{Store: s, Presigner: s, PartObjects: s}
	}, objectstest.SendPart)
}
