package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
)

// upload sends one file and checks that what the server has is what was sent.
func (s *session) upload(path, contentType string) (api.File, error) {
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
		return api.File{}, fmt.Errorf("%s is no ordinary file", path)
	}
	kind, _, _ := mime.ParseMediaType(cmp.Or(contentType, mime.TypeByExtension(filepath.Ext(path)), "application/octet-stream"))
	r, err := s.api.PresignUploadWithResponse(s.Ctx, nil, api.Presign{Filename: filepath.Base(path), ContentType: kind, Size: info.Size()})
	if err != nil {
		return api.File{}, fmt.Errorf("%s: %w", path, s.explain(err))
	}
	sum, err := s.put(f, info.Size(), kind, r.JSON200.Data)
	if err != nil {
		return api.File{}, fmt.Errorf("%s: %w", path, err)
	}
	return s.verify(path, r.JSON200.Data.Key, sum)
}

// uploadKey is upload for whoever only needs the key.
func (s *session) uploadKey(path string) (string, error) {
	f, err := s.upload(path, "")
	return f.Key, err
}

// put sends the bytes, again from the start when the connection breaks, and
// returns the hash of what it read.
func (s *session) put(f *os.File, length int64, kind string, to api.PresignedUpload) (sum string, err error) {
	for try := 1; ; try++ {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		hash, shown := sha256.New(), s.transfer(filepath.Base(f.Name()), 0, length)
		again, err := s.putOnce(io.TeeReader(io.LimitReader(f, length), io.MultiWriter(hash, shown)), length, kind, to)
		shown.bar.close()
		if err == nil || errors.Is(err, errTaken) && try > 1 {
			// A try whose answer was lost had arrived; verify tells whether whole.
			return hex.EncodeToString(hash.Sum(nil)), nil
		}
		if !again || try >= maxTries || !s.Now().Before(to.ExpiresAt.Time) {
			return "", err
		}
		if err := s.Sleep(s.Ctx, time.Duration(try)*time.Second); err != nil {
			return "", err
		}
	}
}

// errTaken is an address that was used or has expired.
var errTaken = errors.New("the upload's address was refused: try again")

func (s *session) putOnce(body io.Reader, length int64, kind string, to api.PresignedUpload) (again bool, err error) {
	r, err := http.NewRequestWithContext(s.Ctx, to.Method, to.URL, body)
	if err != nil {
		return false, err
	}
	r.ContentLength = length
	if length == 0 {
		r.Body = http.NoBody
	}
	r.Header.Set("Content-Type", kind)
	// The address is the permission: nothing else is sent, whoever it points to.
	resp, err := s.calls.http.Do(r)
	if err != nil {
		return true, s.explain(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode < http.StatusMultipleChoices:
		return false, nil
	case resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusConflict, resp.StatusCode == http.StatusGone:
		return false, errTaken
	default:
		return resp.StatusCode >= http.StatusInternalServerError, refusal(resp)
	}
}

// verify compares hashes. A bucket's may not be known yet; then the store's
// own checks have to do, and verify says so.
func (s *session) verify(path, key, sum string) (api.File, error) {
	f, err := s.file(key)
	if err != nil {
		return f, fmt.Errorf("%s did not arrive: %w", path, err)
	}
	if f.Sha256 == nil {
		s.note("%s: the server has not hashed it yet.", path)
		return f, nil
	}
	if *f.Sha256 != sum {
		return f, fmt.Errorf("%s arrived damaged or changed while it was sent (SHA-256 %s here, %s there): delete it with millrace files rm %s and upload it again", path, sum, *f.Sha256, key)
	}
	return f, nil
}

// refusal is what a store answered, in its own words where they are ours.
func refusal(resp *http.Response) error {
	var f api.Failure
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err == nil && json.Unmarshal(text, &f) == nil && f.Error != "" {
		return &client.Error{Status: resp.StatusCode, Code: f.Code, Message: f.Error}
	}
	return &client.Error{Status: resp.StatusCode, Message: "the store answered " + resp.Status}
}
