package session

import (
	"cmp"
	"fmt"
	"mime"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/transfer"
)

// Upload sends one file and checks that what the server has is what was sent.
func (s *Session) Upload(path, contentType string) (api.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return api.File{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return api.File{}, err
	}
	if !info.Mode().IsRegular() {
		return api.File{}, fmt.Errorf("%s is not a regular file", path)
	}
	kind, _, _ := mime.ParseMediaType(cmp.Or(contentType, mime.TypeByExtension(filepath.Ext(path)), "application/octet-stream"))
	if info.Size() > transfer.LargeFrom {
		sent, err := transfer.Large{Console: s.Console, HTTP: s.Calls.HTTP, API: s.API, Server: s.Server + " " + s.Calls.Team, ContentType: kind}.Put(f, info)
		if err != nil {
			return sent, fmt.Errorf("%s: %w", path, s.Explain(err))
		}
		return sent, nil
	}
	r, err := s.API.PresignUploadWithResponse(s.Ctx, nil, api.Presign{Filename: filepath.Base(path), ContentType: kind, Size: info.Size()})
	if err != nil {
		return api.File{}, fmt.Errorf("%s: %w", path, s.Explain(err))
	}
	sum, err := transfer.Upload{Console: s.Console, HTTP: s.Calls.HTTP, To: r.JSON200.Data, ContentType: kind}.Put(f, info.Size())
	if err != nil {
		return api.File{}, fmt.Errorf("%s: %w", path, s.Explain(err))
	}
	return s.verify(path, r.JSON200.Data.Key, sum)
}

// UploadKey is upload for whoever only needs the key.
func (s *Session) UploadKey(path string) (string, error) {
	f, err := s.Upload(path, "")
	return f.Key, err
}

// verify compares hashes. A bucket's may not be known yet; then the store's
// own checks have to do, and verify says so.
func (s *Session) verify(path, key, sum string) (api.File, error) {
	f, err := s.File(key)
	if err != nil {
		return f, fmt.Errorf("couldn't upload %s: %w", path, err)
	}
	if f.Sha256 == nil {
		s.Note("%s: the server has not hashed it yet.", path)
		return f, nil
	}
	if *f.Sha256 != sum {
		return f, fmt.Errorf("%s was damaged or changed during the upload (SHA-256 %s here, %s there): delete it with millrace files rm %s and upload it again", path, sum, *f.Sha256, key)
	}
	return f, nil
}
