package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// makeFolder makes the data folder, or closes the one that is there to everybody but
// its owner. What it holds opens every account. One that has a file of these
// names is ours.
func makeFolder(path string, ours ...string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("cannot look at the data folder: %w", err)
	}
	if owner := ownerOf(info); owner != os.Geteuid() {
		return fmt.Errorf("the data folder %s belongs to user %s, who could read and replace what is in it: give this server one of its own, such as --data %s, or make %s its owner",
			path, userName(owner), filepath.Join(path, "millrace"), userName(os.Geteuid()))
	}
	return shut(path, info, ours)
}

// The permissions of everybody but the owner.
const (
	anyOther    fs.FileMode = 0o077
	otherWrites fs.FileMode = 0o022
)

// shut takes away what others may do in a folder of ours. One where
// they keep things of their own, such as /tmp, stays as it is and is refused.
func shut(path string, info fs.FileInfo, ours []string) error {
	if info.Mode().Perm()&anyOther == 0 {
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("cannot look into the data folder: %w", err)
	}
	if info.Mode().Perm()&otherWrites != 0 && len(entries) > 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return slices.Contains(ours, e.Name()) }) {
		return fmt.Errorf("others may write to the data folder %s, and what is in it is not Millrace's: give this server one of its own, such as --data %s",
			path, filepath.Join(path, "millrace"))
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return fmt.Errorf("others can look into the data folder %s, and it cannot be closed to them: %w", path, err)
	}
	if after, err := os.Stat(path); err != nil || after.Mode().Perm()&anyOther != 0 {
		return errors.Join(err, fmt.Errorf("others can look into the data folder %s, and its file system keeps no permissions: choose --data on another one", path))
	}
	return nil
}

func ownerOf(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return os.Geteuid() // a system without owners
}

func userName(id int) string {
	u, err := user.LookupId(strconv.Itoa(id))
	if err != nil {
		return strconv.Itoa(id)
	}
	return u.Username
}
