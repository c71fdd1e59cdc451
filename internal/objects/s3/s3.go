// Package s3 keeps objects in a bucket. What clients upload by a presigned
// PUT lands below staging/ and is moved below objects/ when it is settled, so
// that an address which is used twice changes nothing.
//
// That an object is never overwritten rests on If-None-Match, which Amazon,
// MinIO, versitygw and others honour. With a server that ignores it, two
// writers of one key at the same instant both succeed.
package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
)

// Below the prefix: what is settled, and what clients have sent.
const (
	settled = "objects/"
	staging = "staging/"
)

const (
	maxName  = 1024     // bytes of a name, prefix included
	sentPart = 16 << 20 // bytes in memory while a length is unknown
	copyPart = 1 << 30  // far below what S3 allows, so that the answer comes in time
)

// Store is a bucket, or what is below a prefix in it.
type Store struct {
	client *minio.Core
	public *minio.Core // signs addresses for clients
	bucket string
	prefix string // empty, or ending in a slash
	copied int64  // bytes that the server is asked to copy with one request
	now    func() time.Time
}

// Origins are where the addresses lead that it signs: the server itself, or
// the bucket's own name there.
func (s *Store) Origins() []string {
	u := s.public.EndpointURL()
	return []string{u.Scheme + "://" + u.Host, u.Scheme + "://" + s.bucket + "." + u.Host}
}

// Put streams to the bucket. What fails on the way leaves nothing.
func (s *Store) Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (objects.Object, error) {
	name, err := s.name(settled, key)
	if err = errors.Join(err, objects.CheckType(contentType)); err != nil {
		return objects.Object{}, err
	}
	// A key that is taken is found out before gigabytes are sent.
	if err := s.free(ctx, name); err != nil {
		return objects.Object{}, err
	}
	m := objects.Measure(ctx, r, size)
	info, err := s.send(ctx, name, contentType, m, size)
	if err != nil {
		return objects.Object{}, err
	}
	o := m.Object(key, contentType)
	o.Mark, o.ModifiedAt = info.ETag, info.LastModified
	if o.ModifiedAt.IsZero() { // not every answer to an upload says it
		o.ModifiedAt = s.now()
	}
	return o, nil
}

func (s *Store) send(ctx context.Context, name, contentType string, m *objects.Measured, size int64) (minio.UploadInfo, error) {
	opts := minio.PutObjectOptions{ContentType: contentType}
	opts.SetMatchETagExcept("*")
	if size < 0 {
		opts.PartSize = sentPart
	}
	var body io.Reader = m
	if size == 0 {
		// Nothing would be read, and so nobody would see that there is more.
		if _, err := io.Copy(io.Discard, m); err != nil {
			return minio.UploadInfo{}, err
		}
		body = bytes.NewReader(nil)
	}
	info, err := s.client.Client.PutObject(ctx, s.bucket, name, body, size, opts)
	if why := m.Err(); why != nil {
		return minio.UploadInfo{}, why // the source failed, and the server only noticed
	}
	return info, foreseen(err)
}

// Stat asks for the object's head.
func (s *Store) Stat(ctx context.Context, key string) (objects.Object, error) {
	name, err := s.name(settled, key)
	if err != nil {
		return objects.Object{}, err
	}
	return s.stat(ctx, key, name)
}

func (s *Store) stat(ctx context.Context, key, name string) (objects.Object, error) {
	info, err := s.client.StatObject(ctx, s.bucket, name, minio.StatObjectOptions{})
	if err != nil {
		return objects.Object{}, foreseen(err)
	}
	return describe(key, info), nil
}

// Open reads from the bucket while the caller reads.
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if offset == 0 && length < 0 {
		return s.get(ctx, key, minio.GetObjectOptions{})
	}
	o, err := s.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if offset < 0 || offset > o.Size {
		return nil, fault.Invalid("the object has %d bytes and none at %d", o.Size, offset)
	}
	if rest := o.Size - offset; length < 0 || length > rest {
		length = rest
	}
	if length == 0 { // which S3 has no range for
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	var opts minio.GetObjectOptions
	if err := opts.SetRange(offset, offset+length-1); err != nil {
		return nil, err
	}
	return s.get(ctx, key, opts)
}

func (s *Store) get(ctx context.Context, key string, opts minio.GetObjectOptions) (io.ReadCloser, error) {
	name, err := s.name(settled, key)
	if err != nil {
		return nil, err
	}
	body, _, _, err := s.client.GetObject(ctx, s.bucket, name, opts)
	if err != nil {
		return nil, foreseen(err)
	}
	return body, nil
}

// free is nil where nothing is.
func (s *Store) free(ctx context.Context, name string) error {
	_, err := s.stat(ctx, "", name)
	if err == nil {
		return conflict()
	}
	if fault.Is(err, fault.KindNotFound) {
		return nil
	}
	return err
}

// name is what the bucket calls the key.
func (s *Store) name(area, key string) (string, error) {
	if err := objects.CheckKey(key); err != nil {
		return "", err
	}
	name := s.prefix + area + key
	if len(name) > maxName {
		return "", fault.Invalid("an object's key is too long for this bucket")
	}
	return name, nil
}

func describe(key string, info minio.ObjectInfo) objects.Object {
	return objects.Object{
		Key: key, Size: info.Size, ContentType: info.ContentType, Mark: info.ETag, ModifiedAt: info.LastModified,
	}
}
