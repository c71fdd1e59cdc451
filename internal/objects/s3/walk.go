package s3

import (
	"context"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/objects"
)

// List asks for one page.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objects.Object, error) {
	return s.list(ctx, s.prefix+settled, prefix, after, limit)
}

// Staged asks for one page, too.
func (s *Store) Staged(ctx context.Context, prefix, after string, limit int) (keys []string, err error) {
	page, err := s.list(ctx, s.prefix+staging, prefix, after, limit)
	for _, o := range page {
		keys = append(keys, o.Key)
	}
	return keys, err
}

func (s *Store) list(ctx context.Context, area, prefix, after string, limit int) ([]objects.Object, error) {
	if err := objects.CheckPage(prefix, after, limit); err != nil {
		return nil, err
	}
	opts := minio.ListObjectsOptions{Prefix: area + prefix, Recursive: true, MaxKeys: limit}
	if after != "" {
		opts.StartAfter = area + after
	}
	var page []objects.Object
	for info := range s.client.ListObjectsIter(ctx, s.bucket, opts) {
		if info.Err != nil {
			return nil, foreseen(info.Err)
		}
		page = append(page, describe(strings.TrimPrefix(info.Key, area), info))
		if len(page) == limit {
			break
		}
	}
	return page, nil
}

// Delete removes the object, and what was uploaded to its key.
func (s *Store) Delete(ctx context.Context, key string) error {
	for _, area := range []string{settled, staging} {
		name, err := s.name(area, key)
		if err != nil {
			return err
		}
		if err := s.client.RemoveObject(ctx, s.bucket, name, minio.RemoveObjectOptions{}); err != nil {
			return foreseen(err)
		}
	}
	return nil
}

// DeletePrefix removes what it lists, and calls off what is being sent there:
// its parts are kept until then.
func (s *Store) DeletePrefix(ctx context.Context, prefix string) (n int, err error) {
	if err := objects.CheckPrefix(prefix); err != nil {
		return 0, err
	}
	all := func(minio.ObjectInfo) bool { return true }
	for _, area := range []string{settled, staging} {
		if _, err := s.abortAll(ctx, s.prefix+area+prefix, func(minio.ObjectMultipartInfo) bool { return true }); err != nil {
			return 0, err
		}
	}
	if _, err := s.removeAll(ctx, s.prefix+staging+prefix, all); err != nil {
		return 0, err
	}
	return s.removeAll(ctx, s.prefix+settled+prefix, all)
}

// removeAll removes what is below a name and chosen, a thousand with one
// request.
func (s *Store) removeAll(ctx context.Context, below string, chosen func(minio.ObjectInfo) bool) (n int, err error) {
	var listing error
	list := func(yield func(minio.ObjectInfo) bool) {
		for info := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: below, Recursive: true}) {
			if listing = info.Err; listing != nil {
				return
			}
			if chosen(info) && !yield(info) {
				return
			}
		}
	}
	results, err := s.client.RemoveObjectsWithIter(ctx, s.bucket, list, minio.RemoveObjectsOptions{})
	if err != nil {
		return 0, foreseen(err)
	}
	for r := range results {
		if r.Err != nil {
			return n, foreseen(r.Err)
		}
		n++
	}
	return n, foreseen(listing)
}
