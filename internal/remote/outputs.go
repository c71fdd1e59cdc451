package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs/outputcopy"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// Outputs are what runs leave elsewhere.
type Outputs struct {
	client *Client
	open   Connections
}

var _ outputcopy.Buckets = (*Outputs)(nil)

// NewOutputs makes it. Private networks are for installations that allow them.
func NewOutputs(allowPrivate bool, open Connections) *Outputs {
	c := New(allowPrivate)
	if t, ok := c.transport.(*http.Transport); ok {
		t.ResponseHeaderTimeout = 10 * time.Minute // some stores copy parts together before they answer
	}
	return &Outputs{c, open}
}

// bucketOf is a target that a connection of the team is for.
func (o *Outputs) bucketOf(ctx context.Context, team ids.Team, t outputto.Target) (*target, error) {
	c, secret, err := o.open.OpenConnection(ctx, team, t.Connection)
	if err != nil {
		return nil, err
	}
	name, prefix := t.S3()
	if c.Type != connections.S3 || c.Bucket != name {
		return nil, fault.Invalid("the connection %s is not for the bucket %s", c.Name, name)
	}
	return &target{o.client, c, secret, prefix}, c.Holds(prefix)
}

// OpenBucket is a target that a connection of the team is for.
func (o *Outputs) OpenBucket(ctx context.Context, team ids.Team, t outputto.Target) (outputcopy.Bucket, error) {
	return o.bucketOf(ctx, team, t)
}

// CheckTarget is nil where a connection of the team may write to a target now. It
// leaves nothing there: an upload in parts is begun, and aborted.
func (o *Outputs) CheckTarget(ctx context.Context, team ids.Team, t outputto.Target) error {
	b, err := o.bucketOf(ctx, team, t)
	if err != nil {
		return err
	}
	core, err := b.client.bucket(ctx, b.conn, b.secret)
	if err != nil {
		return err
	}
	const probe = "manifest.json"
	upload, err := core.NewMultipartUpload(ctx, b.conn.Bucket, b.prefix+probe, minio.PutObjectOptions{})
	if err == nil {
		err = sensible(upload)
	}
	if err == nil {
		err = core.AbortMultipartUpload(ctx, b.conn.Bucket, b.prefix+probe, upload)
	}
	return explain(b.conn, err)
}

// FitsTarget is nil where a connection of the team is for a target.
func (o *Outputs) FitsTarget(ctx context.Context, team ids.Team, t outputto.Target) error {
	_, err := o.bucketOf(ctx, team, t)
	return err
}

// target is what is below a prefix of a bucket.
type target struct {
	client *Client
	conn   connections.Connection
	secret connections.Credentials
	prefix string
}

const (
	// slowest is how many bytes a second must arrive for a request not to be given
	// up, after a time that every request has.
	slowest  = 100 << 10
	graceful = 10 * time.Minute

	leastPart = 64 << 20
	mostParts = 10_000
	// partsAtOnce is how many parts of an object are sent at the same time.
	partsAtOnce = 4
)

// limited is a client for one request of a size.
func (b *target) limited(ctx context.Context, size int64) (context.Context, context.CancelFunc, *minio.Core, error) {
	ctx, cancel := context.WithTimeout(ctx, graceful+time.Duration(size/slowest)*time.Second)
	core, err := b.client.bucket(ctx, b.conn, b.secret)
	return ctx, cancel, core, err
}

func options(o outputcopy.Object) minio.PutObjectOptions {
	return minio.PutObjectOptions{ContentType: o.Type, UserMetadata: map[string]string{"sha256": o.SHA256}}
}

// maxName is how long the names are that a store gives to uploads and parts: we keep
// them.
const maxName = 2 << 10

func sensible(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("%w: a name of %d bytes", errTooLong, len(name))
	}
	return nil
}

// source remembers why reading failed: the client only says that it did. It may still
// be read when the request has been answered.
type source struct {
	io.Reader
	failed atomic.Pointer[error]
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed.Store(&err)
	}
	return n, err
}

func (s *source) err() error {
	if failed := s.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// Put writes an object in one piece.
func (b *target) Put(ctx context.Context, o outputcopy.Object, r io.Reader) error {
	ctx, cancel, core, err := b.limited(ctx, o.Size)
	defer cancel()
	if err != nil {
		return err
	}
	in := &source{Reader: r}
	_, err = core.PutObject(ctx, b.conn.Bucket, b.prefix+o.Name, in, o.Size, "", "", options(o))
	if failed := in.err(); failed != nil {
		return failed
	}
	return explain(b.conn, err)
}

// PutLarge writes an object in parts, and goes on with an upload that has begun.
func (b *target) PutLarge(ctx context.Context, o outputcopy.Object, in outputto.Large) error {
	size := max(leastPart, (o.Size/mostParts+1<<20)>>20<<20)
	upload, there, err := b.resume(ctx, o, in.Upload)
	if err != nil || upload == written {
		return explain(b.conn, err)
	}
	if upload == "" {
		if upload, err = b.begin(ctx, o); err != nil {
			return explain(b.conn, err)
		}
		if err := in.Begun(ctx, upload); err != nil {
			return err
		}
	}
	parts := make([]minio.CompletePart, (o.Size+size-1)/size)
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	for i := range parts {
		from := int64(i) * size
		length := min(size, o.Size-from)
		parts[i].PartNumber = i + 1
		if p, ok := there[i+1]; ok && p.Size == length {
			parts[i].ETag = p.ETag
			in.Arrived(length)
			continue
		}
		g.Go(func() error {
			if within.Err() != nil {
				return within.Err()
			}
			err := panics.Catch(func() (err error) {
				parts[i].ETag, err = b.part(within, o, upload, i+1, length, func() (io.ReadCloser, error) { return in.Open(within, from, length) })
				return err
			})
			if err == nil {
				in.Arrived(length)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := in.Whole(); err != nil {
		return err
	}
	ctx, cancel, core, err := b.limited(ctx, o.Size)
	defer cancel()
	if err == nil {
		_, err = core.CompleteMultipartUpload(ctx, b.conn.Bucket, b.prefix+o.Name, upload, parts, minio.PutObjectOptions{})
	}
	return explain(b.conn, err)
}

// written stands for an upload whose object is there already.
const written = "written"

// resume finds what has arrived of an upload. One that is not there any more may have
// become the object, before anybody could write that down.
func (b *target) resume(ctx context.Context, o outputcopy.Object, upload string) (string, map[int]minio.ObjectPart, error) {
	if upload == "" {
		return "", nil, nil
	}
	ctx, cancel, core, err := b.limited(ctx, 0)
	defer cancel()
	if err != nil {
		return "", nil, err
	}
	there := map[int]minio.ObjectPart{}
	for marker := 0; ; {
		page, err := core.ListObjectParts(ctx, b.conn.Bucket, b.prefix+o.Name, upload, marker, 1000)
		if err != nil && minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
			info, err := core.StatObject(ctx, b.conn.Bucket, b.prefix+o.Name, minio.StatObjectOptions{})
			if err == nil && info.Size == o.Size && metadata(info, "sha256") == o.SHA256 {
				return written, nil, nil
			}
			return "", nil, nil
		}
		if err != nil {
			return "", nil, err
		}
		for _, p := range page.ObjectParts {
			if p.PartNumber <= mostParts && sensible(p.ETag) == nil {
				there[p.PartNumber] = p
			}
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= marker || page.NextPartNumberMarker >= mostParts {
			return upload, there, nil
		}
		marker = page.NextPartNumberMarker
	}
}

// metadata is what somebody wrote beside an object, however the store spells its name.
func metadata(info minio.ObjectInfo, name string) string {
	for key, value := range info.UserMetadata {
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

func (b *target) begin(ctx context.Context, o outputcopy.Object) (string, error) {
	ctx, cancel, core, err := b.limited(ctx, 0)
	defer cancel()
	if err != nil {
		return "", err
	}
	upload, err := core.NewMultipartUpload(ctx, b.conn.Bucket, b.prefix+o.Name, options(o))
	if err == nil {
		err = sensible(upload)
	}
	return upload, err
}

func (b *target) part(ctx context.Context, o outputcopy.Object, upload string, number int, length int64, open func() (io.ReadCloser, error)) (etag string, err error) {
	ctx, cancel, core, err := b.limited(ctx, length)
	defer cancel()
	if err != nil {
		return "", err
	}
	r, err := open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	in := &source{Reader: r}
	p, err := core.PutObjectPart(ctx, b.conn.Bucket, b.prefix+o.Name, upload, number, in, length, minio.PutObjectPartOptions{})
	if failed := in.err(); failed != nil {
		return "", failed
	}
	if err == nil {
		err = sensible(p.ETag)
	}
	return p.ETag, explain(b.conn, err)
}

// Abort forgets what has arrived of an object.
func (b *target) Abort(ctx context.Context, name, upload string) error {
	ctx, cancel, core, err := b.limited(ctx, 0)
	defer cancel()
	if err == nil {
		err = core.AbortMultipartUpload(ctx, b.conn.Bucket, b.prefix+name, upload)
	}
	return explain(b.conn, err)
}
