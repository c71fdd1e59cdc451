//go:build unix

package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/cli/clitest"
)

// Nothing is sent of a folder with something in it that cannot be sent.
func TestAFolderThatCannotBeReadIsNotSent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"a pipe":                 {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "sub/pipe"), 0o600) }, "sub/pipe is a pipe, a socket or a device"},
		"a name that is no text": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "sub/\xff"), nil, 0o600) }, `the name of "sub/\xff" is not UTF-8`},
		"a file that nobody may read": {func(dir string) error {
			if os.Geteuid() == 0 { // who may read everything
				return syscall.Mkfifo(filepath.Join(dir, "sub/secret"), 0)
			}
			return os.WriteFile(filepath.Join(dir, "sub/secret"), nil, 0)
		}, "sub/secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &store{kept: map[string]string{}}
			dir := t.TempDir()
			write(t, dir, map[string]string{"a": "a", "sub/b": "b"})
			if err := tt.make(dir); err != nil {
				t.Skip(err) // a file system that has no such thing
			}
			_, err := clitest.New(t).Session(t, clitest.Serve(t, s.ServeHTTP)).UploadKeys([]string{dir})
			if err == nil || !strings.Contains(err.Error(), tt.want) || s.begun.Filename != "" {
				t.Errorf("%v, %+v", err, s.begun)
			}
		})
	}
}
