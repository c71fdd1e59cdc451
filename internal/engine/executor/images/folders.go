package images

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

const maxLinks = 64

// folder is where a folder of the image really is. What is missing is made.
func (u *unpacker) folder(name string) (string, error) { return u.find(name, true) }

// find follows links as a task inside the image would, so that none can lead
// out of it: an absolute one begins at the image's own top.
func (u *unpacker) find(name string, missing bool) (string, error) {
	at, rest, links := ".", strings.Split(name, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if err := u.step(); err != nil {
			return "", err
		}
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			at = path.Dir(at) // of the top: the top
			continue
		}
		next := path.Join(at, part)
		info, err := u.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist) && missing:
			if err := errors.Join(u.count(), u.mark(next)); err != nil {
				return "", err
			}
			if err := u.mkdir(next); err != nil {
				return "", err
			}
			at = next
		case errors.Is(err, fs.ErrNotExist):
			return "", defectf("it has no folder %q", printable(next))
		case err != nil:
			return "", err
		case info.IsDir():
			at = next
		case info.Mode().Type() != fs.ModeSymlink:
			return "", defectf("its file %q is used as a folder", printable(next))
		default:
			target, err := u.root.Readlink(next)
			if err != nil {
				return "", err
			}
			if links++; links > maxLinks {
				return "", defectf("its links go round in circles at %q", printable(next))
			}
			if strings.HasPrefix(target, "/") {
				at = "."
			}
			rest = append(strings.Split(target, "/"), rest...)
		}
		if strings.Count(at, "/") > maxDepth {
			return "", defect("its folders are too deep")
		}
	}
	return at, nil
}

// whiteOut removes what lower layers have at a name.
func (u *unpacker) whiteOut(dir, name string) error {
	if name == "" || name == "." || name == ".." {
		return defect("one of its whiteouts leads out of it")
	}
	return u.clear(path.Join(dir, name))
}

// clear removes what this layer did not make.
func (u *unpacker) clear(at string) error {
	if !u.made[at] {
		return u.root.RemoveAll(at)
	}
	info, err := u.root.Lstat(at)
	if err != nil || !info.IsDir() {
		return nil
	}
	return u.empty(at)
}

// empty makes a folder show nothing of lower layers.
func (u *unpacker) empty(dir string) error {
	names, err := u.names(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := errors.Join(u.step(), u.clear(path.Join(dir, name))); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) names(dir string) ([]string, error) {
	f, err := u.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// addEssentials adds the little that a sandbox needs: a file for resolv.conf to be
// mounted on, a name for the task's user, and a writable place where programs
// expect one. Places that an image puts behind links stay as they are.
func (u *unpacker) addEssentials() error {
	u.made = map[string]bool{}
	for _, dir := range []string{"etc", "var"} {
		info, err := u.root.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			err = u.mkdir(dir)
		} else if err == nil && !info.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
	}
	err := errors.Join(u.root.RemoveAll("var/tmp"), u.root.Symlink("/tmp", "var/tmp"), u.root.RemoveAll("etc/resolv.conf"))
	return errors.Join(err,
		u.ensure("etc/resolv.conf", "", ""),
		u.ensure("etc/hosts", "localhost", "127.0.0.1 localhost\n::1 localhost\n"),
		u.ensure("etc/passwd", ":1000:", "task:x:1000:1000::/tmp:/bin/sh\n"),
		u.ensure("etc/group", ":1000:", "task:x:1000:\n"))
}

const maxEssential = 1 << 20 // bytes of a file that is added to

// ensure adds a line to a small file that lacks it.
func (u *unpacker) ensure(name, has, line string) error {
	info, err := u.root.Lstat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxEssential) {
		return nil
	}
	var text []byte
	if err == nil {
		if text, err = u.root.ReadFile(name); err != nil {
			return err
		}
	}
	if has != "" && strings.Contains(string(text), has) {
		return nil
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	// It may be one of several names, which must not all change.
	if err := u.root.RemoveAll(name); err != nil {
		return err
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(string(text) + line)
	return errors.Join(err, f.Chmod(fileMode), f.Close())
}
