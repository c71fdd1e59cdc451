// Package machine reads where pip and conda on this machine take packages from: in the
// variables and files that they read themselves, without running them.
package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"syscall"
)

// Machine says whose configuration is read. The zero value is this machine's.
type Machine struct {
	Root string              // of the paths that no variable names; empty: /
	Env  func(string) string // the variables; nil: those of this process
}

// maxFile is how many bytes a file of settings may have.
const maxFile = 1 << 20

func (m Machine) env(name string) string {
	if m.Env == nil {
		return os.Getenv(name)
	}
	return m.Env(name)
}

// read returns the text of a file, or nothing where there is none. A file that this
// account may not read is an error: without it packages would come from elsewhere.
func read(path string) (text string, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() { // such as /dev/null, or a pipe that nobody writes to
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s has more than %d MB", path, maxFile>>20)
	}
	return string(b), err
}

// setting is a value and where it was found: a variable, or a file.
type setting struct{ value, from string }

// checkAddress refuses what cannot be asked for packages. The error does not name the
// address: it may hold a password.
func checkAddress(s setting, option string) error {
	u, err := url.Parse(s.value)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s names something that is not an address such as https://packages.example.org/simple/", s.from)
	case u.User != nil:
		return fmt.Errorf("%s names an address with credentials, which the server takes only from %s", s.from, option)
	}
	return nil
}
