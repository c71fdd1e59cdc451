package produced

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
)

// Objects keeps what was produced.
type Objects interface {
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	Stat(ctx context.Context, key string) (files.Blob, error)
}

// Key is where an output is kept. It has no folder of its own, which would cost
// a write before it is safe, unless no file could be called that.
func Key(team ids.Team, run ids.Run, output, name string) string {
	before := "."
	if len(output)+len(before)+len(name) > maxFileName {
		before = "/"
	}
	return fmt.Sprintf("teams/%s/runs/%s/%s%s%s", team, run, output, before, name)
}

const maxFileName = 255 // bytes, on most file systems

// Reread is what an earlier worker had stored under a key when it went down; it
// is hashed again before it is believed.
func Reread(ctx context.Context, from Objects, key string) (files.Blob, error) {
	blob, err := from.Stat(ctx, key)
	if err != nil {
		return blob, err
	}
	bytes, err := from.Open(ctx, key, 0, -1)
	if err != nil {
		return blob, err
	}
	defer bytes.Close()
	h := sha256.New()
	_, err = io.Copy(h, bytes)
	blob.SHA256 = hex.EncodeToString(h.Sum(nil))
	return blob, err
}
