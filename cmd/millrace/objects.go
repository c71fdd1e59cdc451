package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/objects/s3"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store"
)

// openObjects opens the store that the settings name. Transfers is nil where
// clients speak to it directly.
func (s *settings) openObjects(ctx context.Context, signingKey []byte, now func() time.Time) (objects.Kept, files.PartObjects, httpapi.Transfers, error) {
	if s.StorageURL != "" {
		store, err := s3.Open(ctx, s.StorageURL, now)
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

// What the doctor looks at.
const (
	lookedAt      = 100       // of the newest files
	readBytes     = 256 << 20 // of their content
	outputsSample = 200
	statsAtOnce   = 16
)

// checkObjects looks for the newest files of the database where the settings
// say that files are, and compares the content of some with their hashes. It says how
// many those were, and changes nothing: a server may be at work.
func (s *settings) checkObjects(ctx context.Context) (how string, err error) {
	db, err := s.OpenBeside(ctx, credits.DefaultCatalog())
	if err != nil {
		return "", nil // the check of the database says why
	}
	defer db.Close()
	list, err := db.NewestObjects(ctx, lookedAt)
	if err != nil || len(list) == 0 { // there need not be a folder yet
		return "", errors.Join(err, s.checkBucket(ctx))
	}
	store, err := openStorage(ctx, s.StorageURL, s.objectsFolder())
	if err != nil {
		return "", err
	}
	found, err := compareObjects(ctx, store, list)
	if err = errors.Join(err, found.problem("newest", "files")); err != nil {
		return "", err
	}
	return fmt.Sprintf(" (of the newest %d, the content of %d was read)", len(list), found.read), nil
}

// checkBucket opens the bucket, if there is one.
func (s *settings) checkBucket(ctx context.Context) error {
	if s.StorageURL == "" {
		return nil
	}
	_, err := openStorage(ctx, s.StorageURL, "")
	return err
}

// checkOutputs opens the oldest and newest outputs.
func (s *settings) checkOutputs(ctx context.Context) finding {
	f := finding{what: "sample of outputs"}
	db, err := s.OpenBeside(ctx, credits.DefaultCatalog())
	if err != nil {
		return f // the check of the database says why
	}
	defer db.Close()
	how, err := sampleOutputs(ctx, db, s.StorageURL, s.objectsFolder())
	f.what, f.err = f.what+how, err
	return f
}

// sampleOutputs reads outputs and compares their hashes. It says how many those were.
func sampleOutputs(ctx context.Context, db *store.DB, storageURL, folder string) (how string, err error) {
	list, err := db.OldestAndNewestOutputs(ctx, outputsSample)
	if err != nil || len(list) == 0 {
		return "", err
	}
	objects, err := openStorage(ctx, storageURL, folder)
	if err != nil {
		return "", err
	}
	found, err := compareObjects(ctx, objects, list)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(" (of the oldest and newest %d, %d were opened)", len(list), found.read), found.problem("oldest and newest", "outputs")
}

// openStorage opens the store that the settings name beside a server.
func openStorage(ctx context.Context, url, folder string) (objects.Store, error) {
	if url != "" {
		return s3.Open(ctx, url, time.Now)
	}
	return disk.Open(ctx, folder, nil, time.Now)
}

// checkMarks looks at the marks of some outputs. They tell whether the storage was restored
// or copied, which makes the server verify outputs before it gives them out.
func (s *settings) checkMarks(ctx context.Context) finding {
	f := finding{what: "marks of outputs", warning: true}
	db, err := s.OpenBeside(ctx, credits.DefaultCatalog())
	if err != nil {
		return f // the check of the database says why
	}
	defer db.Close()
	list, err := db.OldestAndNewestOutputs(ctx, outputsSample)
	if err != nil || len(list) == 0 {
		f.err = err
		return f
	}
	store, err := openStorage(ctx, s.StorageURL, s.objectsFolder())
	if err != nil {
		return f // the check of stored files says why
	}
	other, lost, err := compareMarks(ctx, store, list)
	f.what += fmt.Sprintf(" (of the oldest and newest %d)", len(list))
	switch {
	case err != nil:
		f.err = err
	case lost > 0:
		f.warning = false
		f.err = fmt.Errorf("%d are missing or do not have the content that the database recorded: restore them from a backup", lost)
	case other > 0:
		f.err = fmt.Errorf("%d do not have the mark that the database recorded, as after a restored backup or a copied bucket: "+
			"then there is nothing to do, since the server verifies the content of each output when somebody first lists or reuses it; "+
			"if nothing was restored or copied, find out what else writes to this storage", other)
	}
	return f
}

// compareMarks counts the objects that have another mark than was recorded, and those
// that are missing or were found to have other content.
func compareMarks(ctx context.Context, store objects.Store, list []runs.Recorded) (other, lost int64, err error) {
	var others, losses atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(statsAtOnce)
	for _, o := range list {
		g.Go(func() error {
			found, err := store.Stat(ctx, o.Key)
			switch {
			case fault.Is(err, fault.KindNotFound):
				losses.Add(1)
			case err != nil:
				return err
			case found.Size != o.Size || found.Mark == o.RejectedMark:
				losses.Add(1)
			case found.Mark != o.Mark:
				others.Add(1)
			}
			return nil
		})
	}
	err = g.Wait()
	return others.Load(), losses.Load(), err
}

// compared is what was found of a list of objects.
type compared struct{ all, read, missing, changed int }

// problem says what is wrong with them, if anything is.
func (c compared) problem(which, what string) error {
	switch {
	case c.missing > 0:
		return fmt.Errorf("%d of the %s %d %s are missing: is this the storage of this database, and as new as it?", c.missing, which, c.all, what)
	case c.changed > 0:
		return fmt.Errorf("%d of the %s %d %s do not have the content that the database recorded: restore them from a backup", c.changed, which, c.all, what)
	}
	return nil
}

// compareObjects looks for objects, and reads as many of them as readBytes allows.
func compareObjects(ctx context.Context, store objects.Store, list []runs.Recorded) (compared, error) {
	c, left := compared{all: len(list)}, int64(readBytes)
	for _, o := range list {
		found, err := store.Stat(ctx, o.Key)
		switch {
		case fault.Is(err, fault.KindNotFound):
			c.missing++
		case err != nil:
			return c, err
		case found.Size != o.Size:
			c.changed++
		case o.Size <= left && o.SHA256 != "":
			c.read, left = c.read+1, left-o.Size
			same, err := hasHash(ctx, store, o.Key, o.SHA256)
			if err != nil {
				return c, err
			}
			if !same {
				c.changed++
			}
		}
	}
	return c, nil
}

// hasHash reports whether an object has the content with this hash.
func hasHash(ctx context.Context, store objects.Store, key, sum string) (bool, error) {
	r, err := store.Open(ctx, key, 0, -1)
	if err != nil {
		return false, err
	}
	defer r.Close()
	h := sha256.New()
	_, err = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)) == sum, err
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
