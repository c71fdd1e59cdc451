package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/screen"
)

// Upload is a file on its way to an address.
type Upload struct {
	screen.World
	HTTP        *http.Client
	To          api.PresignedUpload
	ContentType string
}

// Put sends the bytes of f, again from the start when the connection breaks, and
// returns the hash of what it read.
func (u Upload) Put(f *os.File, length int64) (sum string, err error) {
	for try := 1; ; try++ {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		hash, shown := sha256.New(), newMeter(u.World, filepath.Base(f.Name()), 0, length)
		again, err := u.once(io.TeeReader(io.LimitReader(f, length), io.MultiWriter(hash, shown)), length)
		shown.bar.Close()
		if err == nil || errors.Is(err, errTaken) && try > 1 {
			// A try whose answer was lost had arrived; verify tells whether whole.
			return hex.EncodeToString(hash.Sum(nil)), nil
		}
		if !again || try >= maxTries || !u.Now().Before(u.To.ExpiresAt.Time) {
			return "", err
		}
		if err := u.Sleep(u.Ctx, time.Duration(try)*time.Second); err != nil {
			return "", err
		}
	}
}

// errTaken is an address that was used or has expired.
var errTaken = errors.New("the upload's address was refused: try again")

func (u Upload) once(body io.Reader, length int64) (again bool, err error) {
	r, err := http.NewRequestWithContext(u.Ctx, u.To.Method, u.To.URL, body)
	if err != nil {
		return false, err
	}
	r.ContentLength = length
	if length == 0 {
		r.Body = http.NoBody
	}
	r.Header.Set("Content-Type", u.ContentType)
	resp, err := u.HTTP.Do(r)
	if err != nil {
		return true, err
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

// refusal is what a store answered, in its own words where they are ours.
func refusal(resp *http.Response) error {
	var f api.Failure
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err == nil && json.Unmarshal(text, &f) == nil && f.Error != "" {
		return &client.Error{Status: resp.StatusCode, Code: f.Code, Message: f.Error}
	}
	return &client.Error{Status: resp.StatusCode, Message: "the store answered " + resp.Status}
}
