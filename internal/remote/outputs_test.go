package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/runs/outputcopy"
	"github.com/millrace/millrace/internal/runs/outputto"
)

func TestAPrivateEndpointGetsNoOutputs(t *testing.T) {
	t.Parallel()
	c, secret := bucket(t)
	o := NewOutputs(false, keptBy{"conn_1": {c, secret}})
	err := o.CheckTarget(t.Context(), "team_1", outputto.Target{URL: Address(c.Bucket, c.Prefix), Connection: "conn_1"})
	if !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "public internet") {
		t.Errorf("%v", err)
	}
}

func TestObjectsAreWrittenToABucket(t *testing.T) {
	t.Parallel()
	c, secret := bucket(t)
	o := NewOutputs(true, keptBy{"conn_1": {c, secret}})
	target := outputto.Target{URL: Address(c.Bucket, c.Prefix+"out/"), Connection: "conn_1"}
	if err := o.CheckTarget(t.Context(), "team_1", target); err != nil {
		t.Fatal(err)
	}
	client, err := New(true).bucket(t.Context(), c, secret)
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.OpenBucket(t.Context(), "team_1", target)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("text"))
	small := outputcopy.Object{Name: "a/odd [1] #?.txt", Size: 4, SHA256: hex.EncodeToString(sum[:]), Type: "text/plain"}
	for range 2 { // again does no harm
		if err := b.Put(t.Context(), small, strings.NewReader("text")); err != nil {
			t.Fatal(err)
		}
	}
	info, err := client.StatObject(t.Context(), c.Bucket, c.Prefix+"out/"+small.Name, minio.StatObjectOptions{})
	if err != nil || info.Size != 4 || metadata(info, "sha256") != small.SHA256 || info.ContentType != "text/plain" {
		t.Errorf("%+v, %v", info, err)
	}
	broken := errors.New("the disk is broken")
	if err := b.Put(t.Context(), outputcopy.Object{Name: "b", Size: 4}, io.MultiReader(strings.NewReader("te"), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, err := client.StatObject(t.Context(), c.Bucket, c.Prefix+"out/b", minio.StatObjectOptions{}); err == nil {
		t.Error("half an object is there")
	}
	for name, wrong := range map[string]outputto.Target{
		"another team's connection": {URL: target.URL, Connection: "conn_2"},
		"another bucket":            {URL: "s3://elsewhere/out/", Connection: "conn_1"},
		"outside of its prefix":     {URL: "s3://" + c.Bucket + "/out/", Connection: "conn_1"},
	} {
		if err := o.FitsTarget(t.Context(), "team_1", wrong); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for u := range client.ListIncompleteUploads(t.Context(), c.Bucket, c.Prefix, true) {
		t.Errorf("an upload is left: %+v", u)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// An upload that became the object before anybody could write that down is not begun
// again, and one that was aborted is.
func TestALargeObjectIsNotWrittenTwice(t *testing.T) {
	t.Parallel()
	c, secret := bucket(t)
	o := NewOutputs(true, keptBy{"conn_1": {c, secret}})
	b, err := o.OpenBucket(t.Context(), "team_1", outputto.Target{URL: Address(c.Bucket, c.Prefix), Connection: "conn_1"})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 1<<20)
	sum := sha256.Sum256([]byte(text))
	object := outputcopy.Object{Name: "large", Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}
	var uploads []string
	opened, arrived := 0, int64(0)
	in := outputto.Large{
		Open: func(_ context.Context, from, length int64) (io.ReadCloser, error) {
			opened++
			return io.NopCloser(strings.NewReader(text[from : from+length])), nil
		},
		Begun:   func(_ context.Context, upload string) error { uploads = append(uploads, upload); return nil },
		Arrived: func(n int64) { arrived += n },
		Whole:   func() error { return nil },
	}
	if err := b.PutLarge(t.Context(), object, in); err != nil || opened != 1 || len(uploads) != 1 || arrived != object.Size {
		t.Fatalf("%v, opened %d times, %d uploads", err, opened, len(uploads))
	}
	in.Upload = uploads[0]
	if err := b.PutLarge(t.Context(), object, in); err != nil || opened != 1 || len(uploads) != 1 {
		t.Errorf("%v, opened %d times, %d uploads", err, opened, len(uploads))
	}
	other := object
	other.SHA256 = strings.Repeat("0", 64)
	in.Whole = func() error { return errors.New("it has changed") }
	if err := b.PutLarge(t.Context(), other, in); err == nil || len(uploads) != 2 {
		t.Errorf("%v, %d uploads", err, len(uploads))
	}
	if err := b.Abort(t.Context(), other.Name, uploads[1]); err != nil {
		t.Error(err)
	}
}

// A store of a team's own that answers without end takes neither our memory nor our time.
func TestAnEndlessAnswerIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	much := strings.Repeat("u", 64<<10)
	endless := func(w io.Writer, begin string) {
		for _, err := io.WriteString(w, begin); err == nil; {
			_, err = io.WriteString(w, much)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "/refused"):
			w.WriteHeader(http.StatusForbidden)
			endless(w, "<Error><Code>AccessDenied</Code><Message>")
		case q.Has("list-type"):
			endless(w, "<ListBucketResult><Name>")
		case q.Has("uploads") && strings.HasSuffix(r.URL.Path, "/begin"):
			endless(w, "<InitiateMultipartUploadResult><UploadId>")
		case q.Has("uploads"):
			upload := "u"
			if strings.HasSuffix(r.URL.Path, "/long") {
				upload = much[:maxName+1]
			}
			fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", upload)
		case r.Method == http.MethodPut:
			w.Header().Set("ETag", `"1"`)
		case r.Method == http.MethodPost:
			endless(w, "<CompleteMultipartUploadResult><Key>")
		default: // an object has any size
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			_, _ = io.CopyN(w, zeros{}, maxAnswer+1)
		}
	}))
	defer server.Close()
	c := connections.Connection{Type: connections.S3, Settings: connections.Settings{Endpoint: server.URL, Bucket: "lab"}}
	b := &target{New(true), c, connections.Credentials{AccessKey: "a", SecretKey: "s"}, "out/"}
	put := func(name string) error {
		return b.PutLarge(t.Context(), outputcopy.Object{Name: name, Size: 1}, outputto.Large{
			Open: func(context.Context, int64, int64) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader("x")), nil
			},
			Begun:   func(context.Context, string) error { return nil },
			Arrived: func(int64) {},
			Whole:   func() error { return nil },
		})
	}
	for name, ask := range map[string]func() error{
		"a listing": func() error { _, err := b.client.List(t.Context(), c, b.secret, "", ""); return err },
		"a name":    func() error { return put("begin") },
		"too long":  func() error { return put("long") },
	} {
		if err := ask(); !fault.Is(err, fault.KindUnavailable) || !errors.Is(err, errTooLong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := put("a"); !fault.Is(err, fault.KindUnavailable) { // the library reads a part of the last answer only
		t.Errorf("the end: %v", err)
	}
	if _, err := b.client.get(t.Context(), c, b.secret, "refused", addresses.Object{}, 0, -1); err == nil {
		t.Error("a refusal is no object")
	}
	in, err := b.client.get(t.Context(), c, b.secret, "object", addresses.Object{}, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if n, err := io.Copy(io.Discard, in); err != nil || n != maxAnswer+1 {
		t.Errorf("of an object %d bytes came, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// An answer may come before a request has been read, which goes on for a while.
func TestAnAnswerMayComeBeforeTheEndOfItsRequest(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer server.Close()
	c := connections.Connection{Type: connections.S3, Settings: connections.Settings{Endpoint: server.URL, Bucket: "lab"}}
	b := &target{New(true), c, connections.Credentials{AccessKey: "a", SecretKey: "s"}, ""}
	for range 20 {
		in := io.MultiReader(io.LimitReader(zeros{}, 4<<20), failing{errors.New("the disk is broken")})
		if err := b.Put(t.Context(), outputcopy.Object{Name: "a", Size: 8 << 20}, in); err == nil {
			t.Error("it is there")
		}
	}
}

// Parts are written in goroutines of their own, in which a panic would end the server.
func TestPanicOverAPartIsAnErrorOfTheObject(t *testing.T) {
	t.Parallel()
	c, secret := bucket(t)
	b, err := NewOutputs(true, keptBy{"conn_1": {c, secret}}).OpenBucket(t.Context(), "team_1", outputto.Target{URL: Address(c.Bucket, c.Prefix), Connection: "conn_1"})
	if err != nil {
		t.Fatal(err)
	}
	err = b.PutLarge(t.Context(), outputcopy.Object{Name: "large", Size: 1 << 20}, outputto.Large{
		Open:  func(context.Context, int64, int64) (io.ReadCloser, error) { panic("out of order") },
		Begun: func(context.Context, string) error { return nil },
	})
	if !panics.Is(err) {
		t.Errorf("%v", err)
	}
}
