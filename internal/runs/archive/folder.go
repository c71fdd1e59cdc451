package archive

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"

	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/runs"
)

// WriteFolder writes an output that is a folder as an archive of its own. Whoever gets
// an error has half of it.
func (a Archive) WriteFolder(ctx context.Context, w io.Writer, o runs.Output) error {
	out := zip.NewWriter(w)
	if _, err := a.addFolder(ctx, out, entryName(o.Name)+"/", o); err != nil {
		return err
	}
	return out.Close()
}

// addFolder copies a folder to below a name, with its links and empty folders.
func (a Archive) addFolder(ctx context.Context, out *zip.Writer, below string, o runs.Output) (folders.Manifest, error) {
	m, err := a.manifest(ctx, o)
	if err != nil {
		return m, err
	}
	in, err := a.Open(ctx, runs.Output{Blob: o.Folder.Data})
	if err != nil {
		return m, err
	}
	defer in.Close()
	if _, err := out.CreateHeader(&zip.FileHeader{Name: below, Modified: a.At}); err != nil {
		return m, err
	}
	data := bufio.NewReaderSize(in, 1<<20)
	for _, e := range m.Entries {
		if err := a.addEntry(out, below, e, data); err != nil {
			return m, err
		}
	}
	return m, nil
}

// manifest is that of a folder, if it still is what it was.
func (a Archive) manifest(ctx context.Context, o runs.Output) (folders.Manifest, error) {
	in, err := a.Open(ctx, o)
	if err != nil {
		return folders.Manifest{}, err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return folders.Manifest{}, err
	}
	if folders.Hash(text) != o.SHA256 {
		return folders.Manifest{}, fmt.Errorf("the manifest of the folder %s has changed", o.Name)
	}
	return folders.Parse(text)
}

func (a Archive) addEntry(out *zip.Writer, below string, e folders.Entry, data io.Reader) error {
	h := &zip.FileHeader{Name: below + e.Path, Method: zip.Store, Modified: a.At}
	switch {
	case e.Folder:
		h.Name += "/"
	case e.Link != "":
		h.SetMode(fs.ModeSymlink | 0o777)
	case e.Executable:
		h.SetMode(0o755)
	default:
		h.SetMode(0o644)
	}
	to, err := out.CreateHeader(h)
	switch {
	case err != nil || e.Folder:
		return err
	case e.Link != "":
		_, err := io.WriteString(to, e.Link)
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(to, sum), data, e.Size); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != e.SHA256 {
		return fmt.Errorf("%s has changed while it was read", e.Path)
	}
	return nil
}
