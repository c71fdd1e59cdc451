package outputcopy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/archive"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// file is what becomes an object: a stretch of one that we keep.
type file struct {
	Object
	blob string
	from int64
}

// atOnce is how many small files are copied at the same time.
const atOnce = 8

// large is from which size on a file is copied in parts.
const large = 64 << 20

// copyAll copies what is left, and last the manifest.
func (c *Copier) copyAll(ctx context.Context, owner string, p *progress) error {
	due := p.now()
	r, list, err := c.Outputs.OutputsToCopy(ctx, due.Team, due.Run)
	if err != nil {
		return lasting(err)
	}
	files, m, err := c.plan(ctx, r, list)
	if err != nil {
		return lasting(err)
	}
	target := due.For(due.Run)
	if _, prefix := target.S3(); !fits(prefix, files) {
		return final{fault.Invalid("the path of an output is too long for a bucket: a key has at most %d bytes", outputto.MaxKey)}
	}
	from := p.begin(files)
	bucket, err := c.Buckets.OpenBucket(ctx, due.Team, target)
	if err != nil {
		return lasting(err)
	}
	if p.uploadsOther() {
		c.abort(ctx, bucket, p)
	}
	if err := c.copyFiles(ctx, owner, bucket, p, from); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	return bucket.Put(ctx, Object{manifestName, int64(len(text)), hex.EncodeToString(sum[:]), "application/json"}, bytes.NewReader(text))
}

// lasting is final where nothing will be otherwise the next time: an output or a
// connection is gone.
func lasting(err error) error {
	if fault.Is(err, fault.KindNotFound) || fault.Is(err, fault.KindConflict) || fault.Is(err, fault.KindForbidden) || fault.Is(err, fault.KindInvalid) {
		return final{err}
	}
	return err
}

// abortLast forgets what has arrived of a large file when there will be no other
// attempt.
func (c *Copier) abortLast(ctx context.Context, p *progress) {
	now := p.now()
	if now.Upload == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lease/2)
	defer cancel()
	bucket, err := c.Buckets.OpenBucket(ctx, now.Team, now.For(now.Run))
	if err != nil {
		return // which is what the copy failed for
	}
	c.abort(ctx, bucket, p)
}

// abort forgets what has arrived of a large file, when nobody will go on with it: the
// team would pay for it for ever.
func (c *Copier) abort(ctx context.Context, bucket Bucket, p *progress) {
	now := p.now()
	c.complain(ctx, "cannot abort an upload to a bucket", bucket.Abort(ctx, now.UploadOf, now.Upload))
	p.uploading("", "")
}

func fits(prefix string, files []file) bool {
	for _, f := range files {
		if len(prefix)+len(f.Name) > outputto.MaxKey {
			return false
		}
	}
	return true
}

// copyFiles copies the files from one on: several small ones together, a large one
// by itself.
func (c *Copier) copyFiles(ctx context.Context, owner string, b Bucket, p *progress, from int) error {
	until := c.Now().Add(turn)
	over := func() bool { return !c.Now().Before(until) }
	for i := from; i < len(p.files); {
		if over() {
			return errTurn
		}
		if p.files[i].Size > large {
			if err := c.copyLarge(ctx, owner, b, p, i, over); err != nil {
				return err
			}
			p.done(i)
			i++
			continue
		}
		g, within := errgroup.WithContext(ctx)
		g.SetLimit(atOnce)
		for ; i < len(p.files) && p.files[i].Size <= large && within.Err() == nil && !over(); i++ {
			at := i
			g.Go(func() error {
				err := panics.Catch(func() error { return c.copySmall(within, b, p.files[at]) })
				if err == nil {
					p.done(at)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Copier) copySmall(ctx context.Context, b Bucket, f file) error {
	in, err := c.open(ctx, f, 0, f.Size)
	if err != nil {
		return err
	}
	defer in.Close()
	return b.Put(ctx, f.Object, &checked{in: in, left: f.Size, sum: sha256.New(), want: f.SHA256})
}

func (c *Copier) open(ctx context.Context, f file, from, length int64) (io.ReadCloser, error) {
	if length == 0 {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	in, err := c.Objects.Open(ctx, f.blob, f.from+from, length)
	if fault.Is(err, fault.KindNotFound) {
		err = final{fault.NotFound("the output %s is not there any more", f.Name)}
	}
	return in, err
}

// copyLarge copies in parts. Their bytes are read twice, because the parts go side by
// side and a hash is of bytes in their order.
func (c *Copier) copyLarge(ctx context.Context, owner string, b Bucket, p *progress, i int, over func() bool) error {
	f := p.files[i]
	reading, stop := context.WithCancel(ctx)
	defer stop()
	whole := make(chan error, 1)
	go func() {
		whole <- panics.Catch(func() error {
			in, err := c.open(reading, f, 0, f.Size)
			if err == nil {
				defer in.Close()
				_, err = io.Copy(io.Discard, &checked{in: in, left: f.Size, sum: sha256.New(), want: f.SHA256})
			}
			return err
		})
	}()
	return b.PutLarge(ctx, f.Object, outputto.Large{
		Upload: p.now().Upload,
		Open: func(ctx context.Context, from, length int64) (io.ReadCloser, error) {
			if over() {
				return nil, errTurn
			}
			return c.open(ctx, f, from, length)
		},
		Begun: func(ctx context.Context, upload string) error {
			p.uploading(f.Name, upload)
			return c.Store.SaveOutputCopy(ctx, owner, p.now(), c.Now().Add(lease))
		},
		Arrived: p.arrived,
		Whole:   func() error { return <-whole },
	})
}

// checked reads bytes that must have a hash. Their last ones come only when they do, so
// that nothing else can become an object.
type checked struct {
	in   io.Reader
	left int64
	sum  hash.Hash
	want string
}

func (r *checked) Read(to []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.in.Read(to[:min(int64(len(to)), r.left)])
	r.sum.Write(to[:n])
	r.left -= int64(n)
	if r.left > 0 && errors.Is(err, io.EOF) {
		return n, io.ErrUnexpectedEOF
	}
	if r.left == 0 && hex.EncodeToString(r.sum.Sum(nil)) != r.want {
		return 0, final{fault.Conflict("an output has changed since it was verified")}
	}
	return n, err
}

const manifestName = "manifest.json"

// manifest says what a copy is. It is written when everything else is there.
type manifest struct {
	Version      int            `json:"version"`
	RunID        string         `json:"runId"`
	WorkflowID   string         `json:"workflowId"`
	WorkflowName string         `json:"workflowName"`
	CompletedAt  time.Time      `json:"completedAt"`
	Files        []manifestFile `json:"files"`
	Links        []manifestLink `json:"links,omitempty"`        // of folders, which buckets do not have
	EmptyFolders []string       `json:"emptyFolders,omitempty"` // the same
}

type manifestFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

type manifestLink struct {
	Name   string `json:"name"`
	Target string `json:"target"`
}

// plan is what becomes of the outputs, always in the same order.
func (c *Copier) plan(ctx context.Context, r runs.Run, list []runs.Listed) (files []file, m manifest, err error) {
	names := archive.Archive{Outputs: list}.Names()
	m = manifest{
		Version: 1, RunID: string(r.ID), WorkflowID: string(r.Workflow), WorkflowName: r.WorkflowName, CompletedAt: r.FinishedAt.UTC(), Files: []manifestFile{},
	}
	for i, o := range list {
		if o.Folder == nil {
			files = append(files, file{Object{names[i], o.Size, o.SHA256, o.ContentType}, o.Blob, 0})
			continue
		}
		below, err := c.planFolder(ctx, names[i], o.Output, &m)
		if err != nil {
			return nil, m, err
		}
		files = append(files, below...)
	}
	for _, f := range files {
		m.Files = append(m.Files, manifestFile{f.Name, f.Size, f.SHA256})
	}
	return files, m, nil
}

// planFolder is what becomes of a folder: its files lie one after the other in one
// object of ours.
func (c *Copier) planFolder(ctx context.Context, name string, o runs.Output, m *manifest) (files []file, err error) {
	in, err := c.Objects.Open(ctx, o.Blob, 0, -1)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	if folders.Hash(text) != o.SHA256 {
		return nil, fault.Conflict("the folder %s has changed since it was verified", o.Name)
	}
	folder, err := folders.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the folder %s: %w", o.Name, err)
	}
	var at int64
	for _, e := range folder.Entries {
		switch {
		case e.Link != "":
			m.Links = append(m.Links, manifestLink{name + e.Path, e.Link})
		case e.Folder:
			m.EmptyFolders = append(m.EmptyFolders, name+e.Path+"/")
		default:
			files = append(files, file{Object{Name: name + e.Path, Size: e.Size, SHA256: e.SHA256}, o.Folder.Data, at})
			at += e.Size
		}
	}
	return files, nil
}
