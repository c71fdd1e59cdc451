// Package archive puts the outputs of a run into one file, with their hashes.
package archive

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/millrace/millrace/internal/runs"
)

// Archive is the outputs of a run in one file, which is made while it is read.
type Archive struct {
	First   []Text // before the outputs
	Outputs []runs.Listed
	Open    func(ctx context.Context, o runs.Output) (io.ReadCloser, error)
	At      time.Time // of every entry
}

// Text is a small file.
type Text struct {
	Name string
	Data []byte
}

// sums is the file that says what the others are.
const sums = "SHA256SUMS"

// WriteZip writes the outputs as they are, below node and port, and last their
// hashes. Whoever gets an error has half an archive.
func (a Archive) WriteZip(ctx context.Context, w io.Writer) error {
	out, names := zip.NewWriter(w), a.Names()
	var known strings.Builder
	for _, t := range a.First {
		if err := a.write(out, t); err != nil {
			return err
		}
		fmt.Fprintf(&known, "%x  %s\n", sha256.Sum256(t.Data), t.Name)
	}
	for i, o := range a.Outputs {
		if o.Folder != nil {
			m, err := a.addFolder(ctx, out, names[i], o.Output)
			if err != nil {
				return err
			}
			for _, e := range m.Entries {
				if e.File() {
					fmt.Fprintf(&known, "%s  %s\n", e.SHA256, names[i]+e.Path)
				}
			}
			continue
		}
		if err := a.add(ctx, out, names[i], o.Output); err != nil {
			return err
		}
		fmt.Fprintf(&known, "%s  %s\n", o.SHA256, names[i])
	}
	if err := a.write(out, Text{sums, []byte(known.String())}); err != nil {
		return err
	}
	return out.Close()
}

func (a Archive) write(out *zip.Writer, t Text) error {
	w, err := out.CreateHeader(&zip.FileHeader{Name: t.Name, Method: zip.Deflate, Modified: a.At})
	if err != nil {
		return err
	}
	_, err = w.Write(t.Data)
	return err
}

// add copies an output, if it still is what it was.
func (a Archive) add(ctx context.Context, out *zip.Writer, name string, o runs.Output) error {
	in, err := a.Open(ctx, o)
	if err != nil {
		return err
	}
	defer in.Close()
	to, err := out.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store, Modified: a.At}) // most are compressed already
	if err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, h), in); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != o.SHA256 {
		return fmt.Errorf("the output %s of step %s has changed while it was read", o.Name, o.Node)
	}
	return nil
}

// Names are the paths of the outputs inside, each for one file alone. Those of folders
// end with a slash.
func (a Archive) Names() []string {
	list, taken := make([]string, len(a.Outputs)), map[string]bool{}
	for i, o := range a.Outputs {
		folder := path.Join(o.Node, o.Port)
		if o.Scattered {
			folder = path.Join(folder, strconv.Itoa(o.Shard))
		}
		name := entryName(o.Name)
		end := path.Ext(name)
		for n := 1; ; n++ {
			list[i] = folder + "/" + name
			if n > 1 {
				list[i] = fmt.Sprintf("%s/%s_%d%s", folder, strings.TrimSuffix(name, end), n, end)
			}
			if !taken[list[i]] {
				break
			}
		}
		taken[list[i]] = true
		if o.Folder != nil {
			list[i] += "/"
		}
	}
	return list
}

// entryName is a name that leads nowhere else, whatever a command called its file.
func entryName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	if strings.Trim(name, ". ") == "" {
		return "_"
	}
	return name
}
