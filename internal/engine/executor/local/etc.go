package local

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor/command"
)

// shared are the files and folders of /etc that programs under /usr need. What
// others may not read is left out of them.
var shared = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "nsswitch.conf", "localtime", "timezone", "alternatives",
	"ssl", "pki", "ca-certificates", "services", "protocols", "host.conf", "gai.conf", "mime.types", "magic", "magic.mime",
	"os-release", "debian_version", "locale.alias", "inputrc", "terminfo", "fonts", "perl", "python3", "R", "java-*", "Rprofile",
}

// made are the files of /etc that must say nothing about the host.
var made = map[string]string{
	"passwd":      "root:x:0:0:root:/root:/bin/sh\n" + command.User + ":x:1000:1000::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
	"group":       "root:x:0:\n" + command.User + ":x:1000:\nnogroup:x:65534:\n",
	"hosts":       "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 millrace\n",
	"hostname":    "millrace\n",
	"resolv.conf": "",
}

const maxShared = 8 << 20 // bytes of one file

// freshEtc copies what a sandbox shows as /etc: one mount in place of a dozen
// for every task. What earlier servers made is removed once no task sees it.
func freshEtc(folder string, idle bool) (string, error) {
	if old, _ := filepath.Glob(filepath.Join(folder, ".etc-*")); idle {
		for _, dir := range old {
			_ = os.RemoveAll(dir)
		}
	}
	etc, err := os.MkdirTemp(folder, ".etc-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(etc, 0o755); err != nil {
		return "", err
	}
	for _, name := range shared {
		found, _ := filepath.Glob(filepath.Join("/etc", name))
		for _, path := range found {
			copyShared(path, etc)
		}
	}
	for name, text := range made {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o600); err != nil {
			return "", err
		}
		if err := os.Chmod(filepath.Join(etc, name), 0o644); err != nil {
			return "", err
		}
	}
	return etc, nil
}

// copyShared leaves out what it cannot copy: no program needs all of it.
func copyShared(from, etc string) {
	_ = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil || !d.IsDir() && info.Mode().Perm()&0o004 == 0 {
			return nil //nolint:nilerr // not for everybody
		}
		target := filepath.Join(etc, strings.TrimPrefix(path, "/etc"))
		switch {
		case d.IsDir() && info.Mode().Perm()&0o005 != 0o005:
			return fs.SkipDir
		case d.IsDir():
			return makeOpen(target)
		case info.Mode().IsRegular() && info.Size() <= maxShared:
			copyFile(path, target)
		case info.Mode().Type() == fs.ModeSymlink:
			if link, err := os.Readlink(path); err == nil {
				_ = os.Symlink(link, target)
			}
		}
		return nil
	})
}

// makeOpen is a folder for everybody, whatever the umask.
func makeOpen(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

func copyFile(from, to string) {
	text, err := os.ReadFile(from)
	if err == nil && os.WriteFile(to, text, 0o600) == nil {
		_ = os.Chmod(to, 0o644)
	}
}
