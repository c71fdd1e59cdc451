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

// serviceUser is the user that the package makes.
const serviceUser = "millrace"

// owner is who owns what a command of root leaves in a data folder.
type owner struct{ uid, gid int }

// self is the owner of what this process makes anyway.
func self() owner { return owner{os.Geteuid(), os.Getegid()} }

// ownerFor is the owner of a data folder. Of one that is not there it is the owner of the
// folder above; where that is root, it is the user that the package has made.
func ownerFor(data string) (owner, error) {
	if os.Geteuid() != 0 {
		return self(), nil
	}
	for path := data; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return owner{}, err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || path != data && stat.Uid == 0 {
			return packaged(), nil
		}
		return owner{int(stat.Uid), int(stat.Gid)}, nil
	}
}

func packaged() owner {
	u, err := user.Lookup(serviceUser)
	if err != nil {
		return self()
	}
	uid, errUser := strconv.Atoi(u.Uid)
	gid, errGroup := strconv.Atoi(u.Gid)
	if errUser != nil || errGroup != nil {
		return self()
	}
	return owner{uid, gid}
}

// canReach refuses a folder that is below one which the owner must not pass through.
func (o owner) canReach(path string) error {
	for o.uid != 0 && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		passes := info.Mode().Perm()&0o001 != 0
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == o.uid {
			passes = info.Mode().Perm()&0o100 != 0
		} else if ok && slices.Contains(o.groups(), int(stat.Gid)) {
			passes = info.Mode().Perm()&0o010 != 0
		}
		if !passes {
			return fmt.Errorf("user %s, who shall own the data folder, cannot pass through %s: choose another --data, or let others pass through that folder", userName(o.uid), path)
		}
	}
	return nil
}

// give makes a file of a folder the owner's.
func (o owner) give(folder *os.Root, name string) error {
	if o == self() {
		return nil
	}
	return folder.Lchown(name, o.uid, o.gid)
}

// become has this process be the owner from now on.
func (o owner) become() error {
	if o == self() {
		return nil
	}
	if u, err := user.LookupId(strconv.Itoa(o.uid)); err == nil {
		_ = os.Setenv("HOME", u.HomeDir) // where programs look for their configuration
	}
	_, _ = user.Current() // the audit log names who ran the command
	err := errors.Join(syscall.Setgroups(o.groups()), syscall.Setgid(o.gid), syscall.Setuid(o.uid))
	if err != nil {
		return fmt.Errorf("cannot become user %s: %w", userName(o.uid), err)
	}
	return nil
}

// groups are those that the service of this user has.
func (o owner) groups() []int {
	groups := []int{o.gid}
	u, err := user.LookupId(strconv.Itoa(o.uid))
	if err != nil {
		return groups
	}
	names, err := u.GroupIds()
	if err != nil {
		return groups
	}
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil && id != o.gid {
			groups = append(groups, id)
		}
	}
	return groups
}

// ActAsOwner has a process of root be the owner of the data folder from now on. Where there
// is no folder yet, it stays root.
func ActAsOwner(data string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if _, err := os.Stat(data); err != nil {
		return nil
	}
	o, err := ownerFor(data)
	if err != nil {
		return err
	}
	return o.become()
}
