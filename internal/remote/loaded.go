package remote

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/offline"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// loadedEndpoint is whose word the hash of loaded bytes is.
const loadedEndpoint = "offline"

// loaded is what was loaded for an address that is asked for as nobody.
func (i *Inputs) loaded(a addresses.Address) (o addresses.Object, known bool, err error) {
	if a.Connection != "" {
		return o, false, nil
	}
	sum, known, err := i.Loaded.Lookup(offline.Input, a.URL)
	if err != nil || !known {
		return o, false, err
	}
	f, err := i.Loaded.Open(sum)
	if err != nil {
		return o, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return o, false, err
	}
	return addresses.Object{Address: a, Endpoint: loadedEndpoint, Size: info.Size(), ETag: sum}, true, nil
}

// openLoaded reads a stretch of what was loaded.
func (i *Inputs) openLoaded(o addresses.Object, from, length int64) (io.ReadCloser, error) {
	f, err := i.Loaded.Open(o.ETag)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Conflict("what was loaded for %s is not here any more: load its bundle again", o.Shown())
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if length < 0 {
		return f, nil
	}
	return stretch{io.LimitReader(f, length), f}, nil
}

// stretch is a part of a file.
type stretch struct {
	io.Reader
	file *os.File
}

func (s stretch) Close() error { return s.file.Close() }
