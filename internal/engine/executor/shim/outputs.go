package shim

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"
)

// Collect finds and hashes what a command left in its working folder, and
// names the ports that have nothing.
func Collect(work string, patterns []OutputPattern) (outputs []Output, missing []string) {
	if len(patterns) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(work)
	if err == nil {
		defer root.Close()
	}
	for _, p := range patterns {
		var found []Output
		complete := err == nil
		if complete {
			found, complete = p.collect(root)
		}
		outputs = append(outputs, found...)
		if !complete && !p.Optional || len(found) == 0 && !p.Optional {
			missing = append(missing, p.Port)
		}
	}
	return outputs, missing
}

// collect is incomplete when a file is there but cannot be carried on: its
// name is no text, or it is no file that belongs to the command.
func (p OutputPattern) collect(root *os.Root) (found []Output, complete bool) {
	names := []string{p.Path}
	if p.Many {
		names, _ = fs.Glob(root.FS(), p.Path)
	}
	complete = true
	for _, name := range names {
		out, err := hashed(root, name)
		if err != nil || !utf8.ValidString(name) {
			complete = false
			continue
		}
		out.Port = p.Port
		found = append(found, out)
	}
	return found, complete
}

func hashed(root *os.Root, name string) (Output, error) {
	file, err := openRegular(root, name)
	if err != nil {
		return Output{}, err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return Output{}, err
	}
	return Output{Path: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}
