package s3

import (
	"bytes"
	"context"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/objects"
)

// Link copies within the bucket.
func (s *Store) Link(ctx context.Context, from, to string) error {
	source, err := s.name(settled, from)
	if err != nil {
		return err
	}
	target, err := s.name(settled, to)
	if err != nil {
		return err
	}
	found, err := s.stat(ctx, from, source)
	if err != nil {
		return err
	}
	if err := s.free(ctx, target); err != nil {
		return err
	}
	return s.copy(ctx, source, target, found)
}

// copy takes the bytes that were found and no others, to where nothing is. It
// goes by parts although one request could do it, because at the end of an
// upload by parts more servers look whether the key is free.
func (s *Store) copy(ctx context.Context, from, to string, found objects.Object) error {
	opts := minio.PutObjectOptions{ContentType: found.ContentType}
	opts.SetMatchETagExcept("*")
	if found.Size == 0 { // which has no parts
		_, err := s.client.Client.PutObject(ctx, s.bucket, to, bytes.NewReader(nil), 0, opts)
		return foreseen(err)
	}
	id, err := s.client.NewMultipartUpload(ctx, s.bucket, to, minio.PutObjectOptions{ContentType: found.ContentType})
	if err != nil {
		return foreseen(err)
	}
	parts, err := s.copyParts(ctx, from, to, id, found)
	if err == nil {
		_, err = s.client.CompleteMultipartUpload(ctx, s.bucket, to, id, parts, opts)
	}
	if err != nil {
		// What cannot be taken back is swept later.
		_ = s.client.AbortMultipartUpload(context.WithoutCancel(ctx), s.bucket, to, id)
	}
	return foreseen(err)
}

func (s *Store) copyParts(ctx context.Context, from, to, id string, found objects.Object) ([]minio.CompletePart, error) {
	var parts []minio.CompletePart
	for offset := int64(0); offset < found.Size; offset += s.copied {
		p, err := s.client.CopyObjectPart(ctx, s.bucket, from, s.bucket, to, id, len(parts)+1,
			offset, min(s.copied, found.Size-offset), map[string]string{"X-Amz-Copy-Source-If-Match": `"` + found.Mark + `"`})
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}
