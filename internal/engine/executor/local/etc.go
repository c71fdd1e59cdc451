package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

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

// sharedEtc returns the folder that sandboxes show as /etc: one mount in place of a dozen
// for every task. It stays for later servers until something in /etc changes, or the machine
// is started: not all of it may have reached the disk. What is of no use to this server is
// removed if no task sees it.
func sharedEtc(folder string, idle bool) (string, error) {
	etc := filepath.Join(folder, etcPrefix+stateOfEtc())
	if old, _ := filepath.Glob(filepath.Join(folder, etcPrefix+"*")); idle {
		for _, dir := range old {
			if dir != etc {
				_ = os.RemoveAll(dir)
			}
		}
	}
	if _, err := os.Stat(etc); err == nil {
		return etc, nil
	}
	fresh, err := os.MkdirTemp(folder, etcPrefix)
	if err != nil {
		return "", err
	}
	switch err = copyEtc(fresh); {
	case err == nil:
		err = os.Rename(fresh, etc)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fresh, nil // what is there will do for this server; a later one copies all of it
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(fresh))
	}
	return etc, nil
}

const etcPrefix = ".etc-"

// stateOfEtc names what is shared of /etc, as it is now.
func stateOfEtc() string {
	sum := sha256.New()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	sum.Write(boot)
	eachShared(func(path string, info fs.FileInfo) error {
		link, _ := os.Readlink(path)
		fmt.Fprintf(sum, "%q %s %d %d %q\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano(), link)
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(made)) {
		fmt.Fprintf(sum, "%q %q\n", name, made[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

func copyEtc(etc string) error {
	if err := os.Chmod(etc, 0o755); err != nil {
		return err
	}
	var full error
	eachShared(func(path string, info fs.FileInfo) error {
		err := copyShared(path, info, filepath.Join(etc, strings.TrimPrefix(path, "/etc")))
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			full = err
		}
		return err
	})
	for name, text := range made {
		path := filepath.Join(etc, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, 0o644)); err != nil {
			return err
		}
	}
	return full
}

// eachShared visits what is shared of /etc and may be read by everybody.
func eachShared(visit func(path string, info fs.FileInfo) error) {
	for _, name := range shared {
		found, _ := filepath.Glob(filepath.Join("/etc", name))
		for _, path := range found {
			_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return fs.SkipDir
				}
				info, err := d.Info()
				switch {
				case err != nil || !d.IsDir() && info.Mode().Perm()&0o004 == 0:
					return nil //nolint:nilerr // not for everybody
				case d.IsDir() && info.Mode().Perm()&0o005 != 0o005:
					return fs.SkipDir
				}
				return visit(path, info)
			})
		}
	}
}

// copyShared leaves out what it cannot copy: no program needs all of it.
func copyShared(path string, info fs.FileInfo, target string) error {
	switch {
	case info.IsDir():
		return makeOpen(target)
	case info.Mode().IsRegular() && info.Size() <= maxShared:
		return copyFile(path, target)
	case info.Mode().Type() == fs.ModeSymlink:
		if link, err := os.Readlink(path); err == nil {
			_ = os.Symlink(link, target)
		}
	}
	return nil
}

// makeOpen is a folder for everybody, whatever the umask.
func makeOpen(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return nil //nolint:nilerr // it is left out
	}
	err = errors.Join(os.WriteFile(to, text, 0o600), os.Chmod(to, 0o644))
	if err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}
