package transfer

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/internal/cli/screen"
)

// LargeFrom is the length from which files are sent in parts.
const LargeFrom = 64 << 20

// Large is a file that is sent in parts. What has arrived stays when the line
// breaks or the program ends, and the next one goes on from there.
type Large struct {
	screen.Console
	HTTP        *http.Client
	API         *client.ClientWithResponses
	Server      string
	ContentType string

	entries []api.FolderEntry // of a folder
}

// content is what is sent in parts.
type content struct {
	io.ReaderAt
	Name    string
	path    string
	size    int64
	version string // another one once what is at this path has changed
}

// Put sends what is missing of f, and returns the file that the server has made
// of it after comparing its SHA-256 with ours.
func (u Large) Put(f *os.File, info os.FileInfo) (api.File, error) {
	whole, err := filepath.Abs(f.Name())
	if err != nil {
		return api.File{}, err
	}
	return u.put(content{f, filepath.Base(whole), whole, info.Size(), strconv.FormatInt(info.ModTime().UnixNano(), 10)})
}

func (u Large) put(f content) (api.File, error) {
	note, err := u.note(f)
	if err != nil {
		return api.File{}, err
	}
	state, err := u.resume(note, f)
	if err != nil {
		return api.File{}, err
	}
	var sum string
	group, ctx := errgroup.WithContext(u.Ctx)
	group.Go(func() (err error) {
		sum, err = sumOf(ctx, f, f.size)
		return err
	})
	group.Go(func() error { return u.within(ctx).sendMissing(f, state) })
	if err := group.Wait(); err != nil {
		return api.File{}, fmt.Errorf("%w. Uploaded parts are kept for 7 days: run the same command again to continue", err)
	}
	done, err := u.complete(state.UploadID, sum)
	if over(err) {
		_ = os.Remove(note)
	}
	return done, err
}

// over reports whether an upload that was completed like this leaves nothing to go on with:
// not where signing in, or asking later, may complete it.
func over(err error) bool {
	e, refused := errors.AsType[*client.Error](err)
	if err == nil {
		return true
	}
	if !refused || e.Status >= http.StatusInternalServerError || e.Code == "upload_busy" {
		return false
	}
	return !slices.Contains([]int{http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusTooManyRequests}, e.Status)
}

func (u Large) within(ctx context.Context) Large {
	u.Ctx = ctx
	return u
}

// note is where the id of an upload is kept for the next program. Another file, or
// the same one after it was changed, has another.
func (u Large) note(f content) (string, error) {
	folder, err := u.Config()
	if err != nil {
		return "", err
	}
	name := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s", u.Server, f.path, f.size, f.version))
	folder = filepath.Join(folder, "uploads")
	return filepath.Join(folder, hex.EncodeToString(name[:16])), os.MkdirAll(folder, 0o700)
}

// resume is the upload that an earlier program began, or a new one.
func (u Large) resume(note string, f content) (api.LargeUploadState, error) {
	if id, err := os.ReadFile(note); err == nil {
		r, err := u.API.GetUploadWithResponse(u.Ctx, string(id), nil)
		if err == nil && r.JSON200.Data.Size == f.size {
			u.Note("%s: resuming an earlier upload.", f.Name)
			return r.JSON200.Data, nil
		}
		if e, refused := errors.AsType[*client.Error](err); err != nil && (!refused || e.Status >= http.StatusInternalServerError || e.Status == http.StatusUnauthorized) {
			return api.LargeUploadState{}, err // it may well be there
		}
	}
	r, err := u.API.BeginUploadWithResponse(u.Ctx, nil, api.NewUpload{Filename: f.Name, ContentType: u.ContentType, Size: f.size, Entries: u.entries})
	if err != nil {
		return api.LargeUploadState{}, err
	}
	b := r.JSON201.Data
	return api.LargeUploadState{UploadID: b.UploadID, PartSize: b.PartSize, PartCount: b.PartCount, Size: f.size}, os.WriteFile(note, []byte(b.UploadID), 0o600)
}

// md5Of goes with a part to a bucket, which then refuses one that breaks off: there
// are servers that would take what has come for the whole. Ours would not.
func md5Of(part *io.SectionReader) (string, error) {
	h := md5.New()
	_, err := io.Copy(h, io.NewSectionReader(part, 0, part.Size()))
	return base64.StdEncoding.EncodeToString(h.Sum(nil)), err
}

// complete asks until there is an answer: hashing a large file takes its time, and
// who asks again gets the same.
func (u Large) complete(id, sum string) (api.File, error) {
	for try := 1; ; try++ {
		r, err := u.API.CompleteUploadWithResponse(u.Ctx, id, nil, api.FinishUpload{Sha256: &sum, Entries: u.entries})
		if err == nil {
			return r.JSON200.Data, nil
		}
		e, refused := errors.AsType[*client.Error](err)
		if refused && e.Status < http.StatusInternalServerError && e.Code != "upload_busy" || try >= 2*maxTries {
			return api.File{}, err
		}
		if err := u.Sleep(u.Ctx, time.Duration(try)*time.Second); err != nil {
			return api.File{}, err
		}
	}
}

func sumOf(ctx context.Context, f io.ReaderAt, size int64) (string, error) {
	h, in, piece := sha256.New(), io.NewSectionReader(f, 0, size), make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := in.Read(piece)
		h.Write(piece[:n])
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// counted remembers what one try has shown.
type counted struct {
	to *Meter
	n  int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	c.to.add(int64(len(p)))
	return len(p), nil
}

func (c *counted) takeBack() { c.to.add(-c.n) }
