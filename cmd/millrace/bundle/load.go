package bundle

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/images"
	"github.com/millrace/millrace/internal/offline"
)

// Load takes a bundle into the data folder of a server, and prints how far it has come.
func Load(ctx context.Context, b *offline.Bundle, data, into string, out io.Writer) error {
	p := &progress{out: out}
	return b.Load(ctx, offline.Loading{Data: data, Into: into, Check: check, Loaded: p.loaded, Copying: p.copying})
}

// progress prints what was loaded, and now and then how much was copied.
type progress struct {
	out   io.Writer
	bytes int64
}

func (p *progress) loaded(item offline.Item, done, of int) {
	name := item.Name
	if item.Kind == offline.Package {
		name = item.Value
	}
	fmt.Fprintf(p.out, "%d of %d: %s %q\n", done, of, item.Kind, name)
}

const printEach = 256 << 20 // bytes

func (p *progress) copying(n int) {
	before := p.bytes / printEach
	if p.bytes += int64(n); p.bytes/printEach > before {
		fmt.Fprintf(p.out, "  %d MB\n", p.bytes>>20)
	}
}

// check refuses what could not be used, or is not whole.
func check(item offline.Item, folder offline.Folder) error {
	hash := ""
	if len(item.Blobs) > 0 {
		hash = item.Blobs[0].SHA256
	}
	switch item.Kind {
	case offline.Image:
		return images.CheckLoaded(folder, item.Name, item.Value)
	case offline.Environment:
		return environments.CheckLoaded(folder, item.Value)
	case offline.Package:
		if item.Name != hash || hash == "" {
			return errors.New("it is not named after its content")
		}
		return environments.CheckFile(item.Value)
	case offline.Pack, offline.Input:
		if item.Value != hash || hash == "" {
			return errors.New("it is not its content")
		}
	case offline.Commit:
		if commit, err := hex.DecodeString(item.Value); err != nil || len(commit) != 20 {
			return errors.New("it is no commit")
		}
	}
	return nil
}
