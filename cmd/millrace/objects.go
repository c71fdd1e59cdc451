package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/objects/s3"
)

// openObjects opens the store that the settings name. Transfers is nil where
// clients speak to it directly.
func (s *settings) openObjects(ctx context.Context, signingKey []byte) (objects.Kept, files.PartObjects, httpapi.Transfers, error) {
	if s.StorageURL != "" {
		store, err := s3.Open(ctx, s.StorageURL, time.Now)
		return objects.Kept{Store: store, Presigner: store}, store, nil, err
	}
	signer := disk.NewSigner(signingKey)
	store, err := disk.Open(ctx, s.objectsFolder(), signer, time.Now)
	if err == nil && s.Embedded() { // whoever was writing to it is dead
		_, err = store.Sweep(ctx, time.Now())
	}
	return objects.Kept{Store: store, Presigner: store}, store, signer, err
}

func (s *settings) objectsFolder() string { return filepath.Join(s.Data, "objects") }

// lookedAt is how many of the newest files the doctor looks for.
const lookedAt = 100

// checkObjects looks for the newest files of the database where the settings
// say that files are. It changes nothing: a server may be at work.
func (s *settings) checkObjects(ctx context.Context) error {
	db, err := s.OpenBeside(ctx, credits.DefaultCatalog())
	if err != nil {
		return nil // the check of the database says why
	}
	defer db.Close()
	keys, err := db.NewestBlobs(ctx, lookedAt)
	if err != nil {
		return err
	}
	var store objects.Store
	if s.StorageURL != "" {
		store, err = s3.Open(ctx, s.StorageURL, time.Now)
	} else if len(keys) > 0 { // else there need not be a folder yet
		store, err = disk.Open(ctx, s.objectsFolder(), nil, time.Now)
	}
	if err != nil {
		return err
	}
	missing := 0
	for _, key := range keys {
		if _, err := store.Stat(ctx, key); fault.Is(err, fault.KindNotFound) {
			missing++
		} else if err != nil {
			return err
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d of the newest %d files are missing: is this the storage of this database, and as new as it?", missing, len(keys))
	}
	return nil
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
