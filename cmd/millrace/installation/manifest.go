package installation

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ManifestName is the list of the files of a backup with their SHA-256, in the format of
// sha256sum. It is written last.
const ManifestName = "backup.sha256"

// DumpName is the database of a backup from PostgreSQL, as pg_dump writes it.
const DumpName = "millrace.dump"

// unfinishedName is in a folder while a backup or a restore writes to it.
const unfinishedName = "unfinished"

// maxName bounds a line of a manifest.
const maxName = 64 << 10

var (
	escape   = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)
	unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
)

// manifestLine is the line of a file, with names escaped as sha256sum does.
func manifestLine(name, sum string) string {
	if escaped := escape.Replace(name); escaped != name {
		return `\` + sum + "  " + escaped + "\n"
	}
	return sum + "  " + name + "\n"
}

// readManifest calls do for each file that a manifest lists.
func readManifest(r io.Reader, do func(name, sum string) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxName)
	for n := 1; lines.Scan(); n++ {
		line, escaped := strings.CutPrefix(lines.Text(), `\`)
		sum, name, found := strings.Cut(line, "  ")
		if escaped {
			name = unescape.Replace(name)
		}
		if raw, err := hex.DecodeString(sum); !found || err != nil || len(raw) != 32 || !filepath.IsLocal(name) {
			return fmt.Errorf("line %d of %s is not one that sha256sum writes for a file in the backup", n, ManifestName)
		}
		if err := do(name, sum); err != nil {
			return err
		}
	}
	return lines.Err()
}

// markUnfinished says in a folder that what a command writes to it is not complete.
func markUnfinished(folder, text string) error {
	path := filepath.Join(folder, unfinishedName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close(), syncFolder(folder))
}

// markFinished takes the mark away. All that was written is on disk before.
func markFinished(folder string) error {
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && e.Name() == "lost+found" { // root's, and nothing of ours is in it
			return fs.SkipDir
		}
		if err != nil || !e.IsDir() {
			return err
		}
		return syncFolder(path)
	})
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(filepath.Join(folder, unfinishedName)), syncFolder(folder))
}

// unfinished is the text of the mark. It is empty where there is none.
func unfinished(folder string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, unfinishedName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// checkFinished refuses a data folder into which a backup or a restore was not completed.
func checkFinished(folder string) error {
	text, err := unfinished(folder)
	if err != nil || text == "" {
		return err
	}
	what, _, _ := strings.Cut(text, "\n")
	return fmt.Errorf("%s is not complete: %s did not finish; run that command again", folder, what)
}
