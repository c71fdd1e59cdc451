package environments

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/offline"
)

// loadedLock is the lock that was loaded for what is asked for, if there is one.
func (s *Store) loadedLock(key string) (l environment.Lock, found bool, err error) {
	digest, found, err := s.Loaded.Lookup(offline.Environment, key)
	if err != nil || !found {
		return l, false, err
	}
	text, err := s.Loaded.Read(digest, environment.MaxLock)
	if err != nil {
		return l, false, err
	}
	l, err = environment.ParseLock(string(text))
	return l, err == nil, err
}

// CheckLoaded reports what is wrong with the lock of an environment in a folder.
func CheckLoaded(folder offline.Folder, digest string) error {
	text, err := folder.Read(digest, environment.MaxLock)
	if err != nil {
		return err
	}
	lock, err := environment.ParseLock(string(text))
	if err == nil && lock.Digest() != digest {
		err = errors.New("its lock is not as it was written")
	}
	return err
}

// CheckFile reports what is wrong with the name of a package's file.
func CheckFile(name string) error {
	if _, _, _, conda := environment.SplitCondaFile(name); !conda && !wheelName.MatchString(name) {
		return fmt.Errorf("%q is not the name of a package's file", name)
	}
	return nil
}

// packagesFor answers for the packages that a step may fetch. Where all of a lock were
// loaded no index is asked.
func (s *Store) packagesFor(ctx context.Context, lock *environment.Lock, note func(why string)) (http.Handler, error) {
	if lock != nil {
		loaded, all, err := s.loadedWheels(*lock)
		if err != nil {
			return nil, err
		}
		if all {
			return s.keeping(*lock, s.loadedHandler(loaded, note)), nil
		}
	}
	switch _, err := s.index.all(ctx); {
	case errors.Is(err, errNoOwnIndex):
		return nil, failure("%s", err)
	case err != nil:
		return nil, err
	}
	handler := s.index.handler(s.MaxOne, note)
	if lock != nil {
		handler = s.keeping(*lock, handler)
	}
	return handler, nil
}

// loadedWheels are the files of a lock that were loaded, by package, and whether that is
// at least one of each package.
func (s *Store) loadedWheels(lock environment.Lock) (wheels map[string][]file, all bool, err error) {
	wheels = map[string][]file{}
	for _, p := range lock.Packages {
		for _, hash := range p.Hashes {
			name, found, err := s.Loaded.Lookup(offline.Package, hash)
			if err != nil {
				return nil, false, err
			}
			if found {
				wheels[p.Name] = append(wheels[p.Name], file{Filename: name, URL: "/loaded/" + hash + "/" + url.PathEscape(name), Hashes: map[string]string{"sha256": hash}})
			}
		}
	}
	return wheels, len(wheels) == len(lock.Packages), nil
}

// loadedHandler answers one build with what was loaded. An interpreter that the machine
// lacks still comes from the mirror.
func (s *Store) loadedHandler(wheels map[string][]file, note func(why string)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /simple/{name}/", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if wheels[name] == nil {
			http.NotFound(w, r)
			return
		}
		writePage(w, name, wheels[name])
	})
	mux.HandleFunc("GET /loaded/{hash}/{name}", func(w http.ResponseWriter, r *http.Request) {
		f, err := s.Loaded.Open(r.PathValue("hash"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		defer f.Close()
		http.ServeContent(w, r, "", time.Time{}, f)
	})
	mux.Handle("GET /python/{release}/{file}", s.index.handler(s.MaxOne, note))
	return mux
}

// keeping adds the files of a lock to the bundle, if there is one, as they are fetched.
func (s *Store) keeping(lock environment.Lock, next http.Handler) http.Handler {
	if s.Keep == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		if !wheelName.MatchString(name) || r.Header.Get("Range") != "" {
			next.ServeHTTP(w, r)
			return
		}
		content, err := s.Keep.Begin()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(&copied{w, content}, r)
		wanted := slices.ContainsFunc(lock.Packages, func(p environment.Locked) bool { return slices.Contains(p.Hashes, content.SHA256()) })
		blob, err := content.End(wanted, nil)
		if wanted && err == nil {
			s.Keep.Add(offline.Item{Kind: offline.Package, Name: blob.SHA256, Value: name, Blobs: []offline.Blob{blob}})
		}
	})
}

// copied is an answer that is written to a second place as well.
type copied struct {
	http.ResponseWriter
	to io.Writer
}

func (c *copied) Write(p []byte) (int, error) {
	if _, err := c.to.Write(p); err != nil {
		return 0, err
	}
	return c.ResponseWriter.Write(p)
}

// fetchPackage writes a conda package that was loaded, or else asks its channel.
func (s *Store) fetchPackage(ctx context.Context, p environment.Locked, most int64, w io.Writer) (size int64, err error) {
	_, loaded, err := s.Loaded.Lookup(offline.Package, p.Hashes[0])
	if err != nil {
		return 0, err
	}
	if !loaded {
		return s.channels.Fetch(ctx, p, most, w)
	}
	f, err := s.Loaded.Open(p.Hashes[0])
	if err != nil {
		return 0, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err = io.Copy(io.MultiWriter(w, sum), io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return size, err
	case size > most:
		return size, errors.New("its packages are too large")
	case hex.EncodeToString(sum.Sum(nil)) != p.Hashes[0]:
		return size, fmt.Errorf("%s was loaded and is damaged: load its bundle again", p.File.Name)
	}
	return size, nil
}

// keepPackage adds a conda package to the bundle.
func (s *Store) keepPackage(p environment.Locked, path string) error {
	if s.Keep == nil {
		return nil
	}
	blob, err := s.Keep.PutFile(path)
	if err != nil {
		return err
	}
	s.Keep.Add(offline.Item{Kind: offline.Package, Name: blob.SHA256, Value: p.File.Name, Blobs: []offline.Blob{blob}})
	return nil
}

// Save builds what is asked for, so that the bundle has all that this takes, and adds the
// lock that was chosen.
func (t Team) Save(ctx context.Context, canonical string) (lock environment.Lock, err error) {
	s := t.store
	spec, err := environment.Read(canonical)
	if err != nil {
		return lock, err
	}
	digest, err := t.Resolve(ctx, canonical)
	if err != nil {
		return lock, err
	}
	_, _, release, err := t.Root(ctx, canonical, digest)
	if err != nil {
		return lock, err
	}
	release()
	if lock, err = t.lock(ctx, canonical); err != nil {
		return lock, err
	}
	for _, p := range lock.Packages {
		if !slices.ContainsFunc(p.Hashes, func(hash string) bool { return s.Keep.Has(offline.Package, hash) }) {
			return lock, fmt.Errorf("%s %s was installed, and its file could not be kept", p.Name, p.Version)
		}
	}
	if spec.Lock != "" { // which the definition has
		return lock, nil
	}
	blob, err := s.Keep.Put(strings.NewReader(lock.String()))
	if err == nil {
		s.Keep.Add(offline.Item{Kind: offline.Environment, Name: spec.Key(), Value: blob.SHA256, Blobs: []offline.Blob{blob}})
	}
	return lock, err
}
