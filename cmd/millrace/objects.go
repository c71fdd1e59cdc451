package main

import (
	"context"
	"net/url"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/objects/s3"
)

// openObjects opens the store that the settings name. Transfers is nil where
// clients speak to it directly.
func (s *settings) openObjects(ctx context.Context, signingKey []byte) (objects.Kept, httpapi.Transfers, error) {
	if s.StorageURL != "" {
		store, err := s3.Open(ctx, s.StorageURL, time.Now)
		return objects.Kept{Store: store}, nil, err
	}
	signer := disk.NewSigner(signingKey)
	store, err := disk.Open(ctx, filepath.Join(s.Data, "objects"), signer, time.Now)
	if err == nil && s.embedded() { // whoever was writing to it is dead
		_, err = store.Sweep(ctx, time.Now())
	}
	return objects.Kept{Store: store}, signer, err
}

// connects are the origins, beside our own, that the app in a browser talks
// to: the bucket's, and the editor-sync host's.
func (s *settings) connects(keep objects.Kept) []string {
	var origins []string
	if bucket, ok := keep.Store.(*s3.Store); ok {
		origins = bucket.Origins()
	}
	if s.CollabURL != "" {
		if u, err := url.Parse(s.CollabURL); err == nil {
			origins = append(origins, u.Scheme+"://"+u.Host)
		}
	}
	return origins
}
