package executor

import (
	"context"
	"io"
	"strings"
)

// Input is one file that a command reads.
type Input struct {
	Path   string `json:"path"`             // below the folder of inputs, such as reads/0/a.fq
	Object string `json:"object,omitempty"` // the key of what it holds; empty: Text
	Text   []byte `json:"text,omitempty"`
	Folder string `json:"folder,omitempty"` // on this machine, with files that nobody changes; Path is a folder, too

	Size      int64  `json:"size,omitempty"`      // of what it holds, where it is known
	SHA256    string `json:"sha256,omitempty"`    // of the object, where it is known
	Directory bool   `json:"directory,omitempty"` // the object is the manifest of a folder; Path is one, too
}

// Copied reports whether its bytes are no object as they are: they are on this
// machine, or several objects.
func (in Input) Copied() bool {
	return in.Folder != "" || in.Directory || strings.Contains(in.Object, "://")
}

// Fetch puts an object into a new file that a command may read, and must not
// change unless it is its own.
type Fetch func(ctx context.Context, object, file string) error

// Files moves the bytes of attempts. It belongs to a driver, since only that
// knows where they are; nobody else touches them.
type Files interface {
	// Folder is the attempt's folder, as Spec.Dir; empty where this machine sees
	// none.
	Folder(k Key) string

	// Stage makes an attempt's folders and brings its inputs, before it is
	// submitted.
	Stage(ctx context.Context, s Spec, fetch Fetch) error

	// Discard removes what was staged for an attempt that was not submitted.
	Discard(ctx context.Context, k Key) error

	// Collect opens a file that a command has made and its record names. One that
	// is not there any more is fault.KindInvalid. Of a folder it is the bytes of all
	// files in the order of its manifest, which Manifest() returns at their end; one
	// that has changed is fs.ErrInvalid. The caller closes it.
	Collect(ctx context.Context, h Handle, o Output) (io.ReadCloser, error)

	// Open reads a file that a command writes while it runs, by its path below the
	// attempt's folder, such as tmp/events; fs.ErrNotExist where there is none. The
	// caller closes it.
	Open(ctx context.Context, h Handle, path string) (io.ReadSeekCloser, error)

	// Progress is how far a running command says that it has come.
	Progress(ctx context.Context, h Handle) (done, total float64, ok bool)
}
