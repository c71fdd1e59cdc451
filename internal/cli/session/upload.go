package session

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/transfer"
)

const (
	// sentAtOnce is how many small files are on their way at the same time.
	sentAtOnce = 16
	// verifiedAtOnce is how many uploads the server is asked about together.
	verifiedAtOnce = 25
	// longQuery is how many bytes of an address their keys may be: a proxy may limit it to
	// 8 KB.
	longQuery = 6_000
	// noticedWithin is how long the server may take to find a file in a bucket: it looks for
	// new ones once in a minute.
	noticedWithin = 90 * time.Second
)

// local is a file or folder that is uploaded.
type local struct {
	path string
	info os.FileInfo
	kind string // the media type
}

func (l local) small() bool { return !l.info.IsDir() && l.info.Size() <= transfer.LargeFrom }

// Upload sends files and folders, and checks that what the server has is what was sent.
// Small files go several at once. It calls arrived for each in their order. It sends
// nothing if one of them cannot be read.
func (s *Session) Upload(paths []string, contentType string, arrived func(api.File)) error {
	list := make([]local, len(paths))
	for i, path := range paths {
		var err error
		if list[i], err = readable(path, contentType); err != nil {
			return err
		}
	}
	for len(list) > 0 {
		small := slices.IndexFunc(list, func(l local) bool { return !l.small() })
		if small < 0 {
			small = len(list)
		}
		if err := s.uploadSmall(list[:small], arrived); err != nil {
			return err
		}
		if list = list[small:]; len(list) == 0 {
			break
		}
		f, err := s.uploadLarge(list[0])
		if err != nil {
			return fmt.Errorf("%s: %w", list[0].path, s.Explain(err))
		}
		arrived(f)
		list = list[1:]
	}
	return nil
}

// UploadKeys is Upload for whoever only needs the keys.
func (s *Session) UploadKeys(paths []string) (keys []string, err error) {
	err = s.Upload(paths, "", func(f api.File) { keys = append(keys, f.Key) })
	return keys, err
}

// readable is what a path names, if it can be uploaded.
func readable(path, contentType string) (local, error) {
	info, err := os.Stat(path) // first: opening a pipe would wait
	if err != nil {
		return local{}, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return local{}, fmt.Errorf("%s is neither a regular file nor a folder", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return local{}, err
	}
	kind, _, _ := mime.ParseMediaType(cmp.Or(contentType, mime.TypeByExtension(filepath.Ext(path)), "application/octet-stream"))
	return local{path, info, kind}, f.Close()
}

// uploadLarge sends a large file or a folder, in parts.
func (s *Session) uploadLarge(l local) (api.File, error) {
	to := transfer.Large{Console: s.Console, HTTP: s.Calls.HTTP, API: s.API, Server: s.Server + " " + s.Calls.Team, ContentType: l.kind}
	if l.info.IsDir() {
		return to.PutFolder(l.path)
	}
	f, err := os.Open(l.path)
	if err != nil {
		return api.File{}, err
	}
	defer f.Close()
	return to.Put(f, l.info)
}

// sent is a small file that has left.
type sent struct {
	path, key, sum string
}

// uploadSmall sends small files. What has arrived when one fails is told all the same.
func (s *Session) uploadSmall(list []local, arrived func(api.File)) error {
	var size int64
	for _, l := range list {
		size += l.info.Size()
	}
	name := fmt.Sprintf("%d files", len(list))
	if len(list) == 1 {
		name = filepath.Base(list[0].path)
	}
	shown := transfer.NewMeter(s.Console, name, size)
	defer shown.Close()
	for some := range slices.Chunk(list, verifiedAtOnce) {
		gone, failed := s.sendSmall(some, shown)
		files, err := s.verify(gone)
		shown.Above(func() {
			for _, f := range files {
				arrived(f)
			}
		})
		if err := errors.Join(failed, err); err != nil {
			return err
		}
	}
	return nil
}

// sendSmall sends files several at once, and begins no other after one has failed.
func (s *Session) sendSmall(list []local, shown *transfer.Meter) ([]sent, error) {
	all := make([]sent, len(list))
	group, going := errgroup.WithContext(s.Ctx) // which ends nothing that is on its way
	group.SetLimit(sentAtOnce)
	for i, l := range list {
		if going.Err() != nil {
			break
		}
		group.Go(func() (err error) {
			all[i], err = s.sendOne(l, shown)
			return err
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(all, func(f sent) bool { return f.key == "" }), err
}

func (s *Session) sendOne(l local, shown *transfer.Meter) (sent, error) {
	f, err := os.Open(l.path)
	if err != nil {
		return sent{}, err
	}
	defer f.Close()
	r, err := s.API.PresignUploadWithResponse(s.Ctx, nil, api.Presign{Filename: filepath.Base(l.path), ContentType: l.kind, Size: l.info.Size()})
	if err != nil {
		return sent{}, fmt.Errorf("%s: %w", l.path, s.Explain(err))
	}
	sum, err := transfer.Upload{Console: s.Console, HTTP: s.Calls.HTTP, To: r.JSON200.Data, ContentType: l.kind, Shown: shown}.Put(f, l.info.Size())
	if err != nil {
		return sent{}, fmt.Errorf("%s: %w", l.path, s.Explain(err))
	}
	return sent{l.path, r.JSON200.Data.Key, sum}, nil
}

// verify compares the hashes of files with those that the server has, and returns the
// files that are whole. A bucket's may not be known yet; then the store's own checks
// have to do, and verify says so.
func (s *Session) verify(list []sent) (whole []api.File, err error) {
	there, failed := s.awaited(list)
	for _, l := range list {
		f, found := there[l.key]
		switch {
		case !found && failed != nil:
			continue // nobody knows
		case !found:
			err = errors.Join(err, fmt.Errorf("couldn't upload %s: the server refused it, or it did not arrive", l.path))
			continue
		case f.Sha256 == nil:
			s.Note("%s: the server has not hashed it yet.", screen.Clean(l.path))
		case *f.Sha256 != l.sum:
			err = errors.Join(err, fmt.Errorf("%s was damaged or changed during the upload (SHA-256 %s here, %s there): delete it with millrace files rm %s and upload it again", l.path, l.sum, *f.Sha256, l.key))
			continue
		}
		whole = append(whole, f)
	}
	return whole, errors.Join(failed, err)
}

// awaited are those of the files that the server has, once it has them all or has had its
// time. With an error they are those that are known by then.
func (s *Session) awaited(list []sent) (map[string]api.File, error) {
	there := map[string]api.File{}
	for waited := time.Duration(0); ; {
		some, err := s.filesByKey(list)
		if err != nil {
			return there, err
		}
		maps.Copy(there, some)
		list = slices.DeleteFunc(slices.Clone(list), func(f sent) bool {
			_, found := there[f.key]
			return found
		})
		if len(list) == 0 || waited >= noticedWithin {
			return there, nil
		}
		if waited == 0 {
			s.Note("Waiting for the server to check what has arrived.")
		}
		pause := min(waited+time.Second, 15*time.Second)
		if err := s.Sleep(s.Ctx, pause); err != nil {
			return there, err
		}
		waited += pause
	}
}

// filesByKey are those of the files that the server has.
func (s *Session) filesByKey(list []sent) (map[string]api.File, error) {
	there := map[string]api.File{}
	for len(list) > 0 {
		var keys []string
		for length := 0; len(list) > 0; list = list[1:] {
			length += len("&key=" + url.QueryEscape(list[0].key))
			if length > longQuery && len(keys) > 0 {
				break
			}
			keys = append(keys, list[0].key)
		}
		r, err := s.API.ListFilesWithResponse(s.Ctx, &api.ListFilesParams{Key: keys})
		if err != nil {
			return nil, s.Explain(err)
		}
		for _, f := range r.JSON200.Data {
			there[f.Key] = f
		}
	}
	return there, nil
}
