package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/domain/fault"
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
