package s3

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/objects"
)

// PresignPut signs the content type and the length with the address. It may
// be used until it expires, but only what Arrived has seen counts.
func (s *Store) PresignPut(ctx context.Context, u objects.Upload) (string, error) {
	name, err := s.name(staging, u.Key)
	if err != nil {
		return "", err
	}
	if err := objects.CheckUpload(u); err != nil {
		return "", err
	}
	return s.presign(ctx, http.MethodPut, name, u.Expires, nil, http.Header{
		"Content-Type":   {u.ContentType},
		"Content-Length": {strconv.FormatInt(u.Size, 10)},
	})
}

// PresignGet signs the name and the type under which the bytes are given out.
// S3 binds the method, so the address is good for GET only.
func (s *Store) PresignGet(ctx context.Context, d objects.Download) (string, error) {
	name, err := s.name(settled, d.Key)
	if err != nil {
		return "", err
	}
	if err := objects.CheckDownload(d); err != nil {
		return "", err
	}
	return s.presign(ctx, http.MethodGet, name, d.Expires, url.Values{
		"response-content-disposition": {objects.Attachment(d.Name)},
		"response-content-type":        {d.ContentType},
	}, nil)
}

func (s *Store) presign(ctx context.Context, method, name string, expires time.Time, q url.Values, h http.Header) (string, error) {
	// The library signs with the clock of this machine, which may be behind.
	life := max(expires.Sub(s.now()), time.Until(expires))
	if life < time.Second {
		return "", fault.Invalid("a link that lives for less than a second is of no use")
	}
	u, err := s.public.PresignHeader(ctx, method, s.bucket, name, life, q, h)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// attempts to settle an upload that is sent again and again.
const attempts = 3

// Arrived moves what was uploaded out of the reach of its address. Whoever
// comes first decides what the object is.
func (s *Store) Arrived(ctx context.Context, key string) (objects.Object, error) {
	from, err := s.name(staging, key)
	if err != nil {
		return objects.Object{}, err
	}
	to, err := s.name(settled, key)
	if err != nil {
		return objects.Object{}, err
	}
	for range attempts {
		if o, err := s.stat(ctx, key, to); !fault.Is(err, fault.KindNotFound) {
			return o, err
		}
		err := s.settle(ctx, from, to)
		if fault.Is(err, fault.KindNotFound) {
			break // nothing was sent, or somebody else has just settled it
		}
		// A conflict is somebody who was faster, or bytes that were replaced
		// between our look and the copy.
		if err != nil && !fault.Is(err, fault.KindConflict) {
			return objects.Object{}, err
		}
	}
	return s.stat(ctx, key, to)
}

func (s *Store) settle(ctx context.Context, from, to string) error {
	staged, err := s.stat(ctx, "", from)
	if err != nil {
		return err
	}
	if err := s.copy(ctx, from, to, staged); err != nil {
		return err
	}
	// The copy is what counts; what cannot be removed is swept later.
	_ = s.client.RemoveObject(ctx, s.bucket, from, minio.RemoveObjectOptions{})
	return nil
}

// Sweep removes uploads that nobody settled, and the parts of those that were
// cut off.
func (s *Store) Sweep(ctx context.Context, before time.Time) (n int, err error) {
	n, err = s.removeAll(ctx, s.prefix+staging, func(o minio.ObjectInfo) bool { return o.LastModified.Before(before) })
	if err != nil {
		return n, err
	}
	// Those that clients send over days are not meant.
	aborted, err := s.abortAll(ctx, s.prefix, func(u minio.ObjectMultipartInfo) bool {
		return u.Initiated.Before(before) && !strings.Contains(u.Key, "/"+files.ByParts+"/")
	})
	return n + aborted, err
}

// abortAll calls off the uploads by parts that are chosen of those below a name.
func (s *Store) abortAll(ctx context.Context, below string, chosen func(minio.ObjectMultipartInfo) bool) (n int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing if we leave early
	for u := range s.client.ListIncompleteUploads(ctx, s.bucket, below, true) {
		if u.Err != nil {
			return n, foreseen(u.Err)
		}
		if !chosen(u) {
			continue
		}
		if err := s.client.AbortMultipartUpload(ctx, s.bucket, u.Key, u.UploadID); err != nil {
			return n, foreseen(err)
		}
		n++
	}
	return n, nil
}
