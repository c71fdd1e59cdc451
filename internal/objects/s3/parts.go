package s3

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
)

var _ files.PartObjects = (*Store)(nil)

// BeginParts begins an upload by parts to the key itself: nothing is there until it
// is joined, and after that the addresses of its parts lead nowhere.
func (s *Store) BeginParts(ctx context.Context, key, contentType string) (string, error) {
	name, err := s.name(settled, key)
	if err != nil {
		return "", err
	}
	id, err := s.client.NewMultipartUpload(ctx, s.bucket, name, minio.PutObjectOptions{ContentType: contentType})
	return id, foreseen(err)
}

// PresignPart signs the number and the length of a part.
func (s *Store) PresignPart(ctx context.Context, p files.PartAddress) (string, error) {
	name, err := s.name(settled, p.Key)
	if err != nil {
		return "", err
	}
	return s.presign(ctx, http.MethodPut, name, p.Expires, url.Values{"partNumber": {strconv.Itoa(p.Number)}, "uploadId": {p.StorageID}},
		http.Header{"Content-Length": {strconv.FormatInt(p.Size, 10)}})
}

// PutPart is not for buckets: clients speak to them directly.
func (s *Store) PutPart(context.Context, string, int, int64, io.Reader, int64) (string, error) {
	return "", fault.NotFound("there is nothing at this address")
}

// ArrivedParts asks the bucket, page by page.
func (s *Store) ArrivedParts(ctx context.Context, key, id string) (list []files.Part, err error) {
	name, err := s.name(settled, key)
	if err != nil {
		return nil, err
	}
	for marker := 0; ; {
		page, err := s.client.ListObjectParts(ctx, s.bucket, name, id, marker, 1000)
		if err != nil {
			return nil, gone(err)
		}
		for _, p := range page.ObjectParts {
			list = append(list, files.Part{Number: p.PartNumber, Size: p.Size, ETag: strings.Trim(p.ETag, `"`)})
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= marker {
			return list, nil
		}
		marker = page.NextPartNumberMarker
	}
}

// gone tells an upload that has ended from other refusals.
func gone(err error) error {
	if err != nil && minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
		return fault.NotFound("there is no such upload any more").WithCause(err)
	}
	return foreseen(err)
}

// JoinParts completes the upload. One that has ended may have been joined before.
func (s *Store) JoinParts(ctx context.Context, key, id string, parts []files.Part) (files.Blob, error) {
	name, err := s.name(settled, key)
	if err != nil {
		return files.Blob{}, err
	}
	list := make([]minio.CompletePart, len(parts))
	for i, p := range parts {
		list[i] = minio.CompletePart{PartNumber: p.Number, ETag: p.ETag}
	}
	if len(list) > 0 {
		opts := minio.PutObjectOptions{}
		opts.SetMatchETagExcept("*")
		_, err = s.client.CompleteMultipartUpload(ctx, s.bucket, name, id, list, opts)
		if err = gone(err); err != nil && !fault.Is(err, fault.KindNotFound) && !fault.Is(err, fault.KindConflict) {
			return files.Blob{}, err
		}
	}
	o, err := s.stat(ctx, key, name)
	return files.Blob{Key: key, Size: o.Size, Mark: o.Mark, ModifiedAt: o.ModifiedAt}, err
}

// AbortParts calls off every upload to a key, also one that a server began and
// died before it could say so.
func (s *Store) AbortParts(ctx context.Context, key string) error {
	name, err := s.name(settled, key)
	if err != nil {
		return err
	}
	_, err = s.abortAll(ctx, name, func(u minio.ObjectMultipartInfo) bool { return u.Key == name })
	return err
}
