package archive

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/runs"
)

// opened gives outputs from memory.
func opened(texts map[string]string) func(context.Context, runs.Output) (io.ReadCloser, error) {
	return func(_ context.Context, o runs.Output) (io.ReadCloser, error) {
		text, ok := texts[o.Blob]
		if !ok {
			return nil, errors.New("it is gone")
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
}

func made(node, name, blob, text string) runs.Listed {
	sum := sha256.Sum256([]byte(text))
	return runs.Listed{Output: runs.Output{Node: node, Port: "out", Name: name, Blob: blob, SHA256: hex.EncodeToString(sum[:])}}
}

func TestAnArchiveHoldsEveryOutputUnderANameOfItsOwn(t *testing.T) {
	t.Parallel()
	shard := made("a", "x.csv", "3", "three")
	shard.Scattered, shard.Shard = true, 7
	a := Archive{Outputs: []runs.Listed{
		made("a", "x.csv", "1", "one"), made("a", "x.csv", "2", "two"), shard, made("b", "../../etc/passwd\x00", "4", "four"), made("b", "..", "4", "four"),
	}, Open: opened(map[string]string{"1": "one", "2": "two", "3": "three", "4": "four"}), At: time.Unix(1e9, 0)}
	var file bytes.Buffer
	if err := a.WriteZip(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name] = string(text)
	}
	for name, text := range map[string]string{
		"a/out/x.csv": "one", "a/out/x_2.csv": "two", "a/out/7/x.csv": "three", "b/out/.._.._etc_passwd_": "four", "b/out/_": "four",
	} {
		sum := sha256.Sum256([]byte(text))
		if got[name] != text || !strings.Contains(got["SHA256SUMS"], hex.EncodeToString(sum[:])+"  "+name+"\n") {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	if len(got) != 6 {
		t.Errorf("%q", got)
	}
}

func TestAnArchiveOfWhatHasChangedIsCutOff(t *testing.T) {
	t.Parallel()
	for name, texts := range map[string]map[string]string{"changed": {"1": "another"}, "gone": {}} {
		var file bytes.Buffer
		err := (Archive{Outputs: []runs.Listed{made("a", "x", "1", "one")}, Open: opened(texts), At: time.Unix(1e9, 0)}).WriteZip(t.Context(), &file)
		if err == nil {
			t.Errorf("%s: it was written", name)
		}
		if _, err := zip.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len())); err == nil {
			t.Errorf("%s: what was written reads like an archive", name)
		}
	}
}
