package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/screen"
)

// Upload is a file on its way to an address.
type Upload struct {
	screen.Console
	HTTP        *http.Client
	To          api.PresignedUpload
	ContentType string
	Shown       *Meter // of all that is uploaded together
}

// Put sends the bytes of f, again from the start when the connection breaks, and
// returns the hash of what it read.
func (u Upload) Put(f *os.File, length int64) (sum string, err error) {
	for try := 1; ; try++ {
		hash, shown := sha256.New(), &counted{to: u.Shown}
		body := &source{in: io.TeeReader(io.NewSectionReader(f, 0, length), io.MultiWriter(hash, shown))}
		again, err := u.once(body, length)
		body.end()
		if errors.Is(err, errTaken) && try > 1 {
			// A try whose answer was lost has arrived; its hash tells whether whole.
			hash.Reset()
			_, err = io.Copy(hash, io.NewSectionReader(f, 0, length))
		}
		if err == nil {
			return hex.EncodeToString(hash.Sum(nil)), nil
		}
		shown.takeBack()
		if !again || try >= maxTries || !u.Now().Before(u.To.ExpiresAt.Time) {
			return "", err
		}
		if err := u.Sleep(u.Ctx, time.Duration(try)*time.Second); err != nil {
			return "", err
		}
	}
}

// source is a body that nobody reads after its end: a request that was
// answered early may still be reading.
type source struct {
	mu    sync.Mutex
	in    io.Reader
	ended bool
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, io.ErrClosedPipe
	}
	return s.in.Read(p)
}

func (s *source) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
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
		return true, unsigned(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode < http.StatusMultipleChoices:
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // so that the connection is used again
		return false, nil
	case resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusConflict, resp.StatusCode == http.StatusGone:
		return false, errTaken
	default:
		return resp.StatusCode >= http.StatusInternalServerError, refusal(resp)
	}
}

// unsigned is a failure without the address, which is a secret.
func unsigned(err error) error {
	e, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	host := "the store"
	if u, parseErr := url.Parse(e.URL); parseErr == nil {
		host = u.Host
	}
	return fmt.Errorf("%s: %w", host, e.Err)
}

// refusal is what a store answered, in its own words where they are ours.
func refusal(resp *http.Response) error {
	var f api.Failure
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err == nil && json.Unmarshal(text, &f) == nil && f.Error != "" {
		return &client.Error{Status: resp.StatusCode, Code: f.Code, Message: f.Error}
	}
	return &client.Error{Status: resp.StatusCode, Message: "the storage responded with " + resp.Status}
}
