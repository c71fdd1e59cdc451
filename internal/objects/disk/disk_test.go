package disk_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/objects/objectstest"
)

var signer = disk.NewSigner([]byte("a key for tests only"))

func open(t *testing.T, dir string) *disk.Store {
	t.Helper()
	s, err := disk.Open(t.Context(), dir, signer, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestAFolderKeepsThePromisesOfAStore(t *testing.T) {
	objectstest.Run(t, func(t *testing.T) (objectstest.Subject, string) {
		s := open(t, t.TempDir())
		server := httptest.NewServer(serve(s))
		t.Cleanup(server.Close)
		return objectstest.Subject{Store: s, Presigner: s}, server.URL
	})
}

// serve is the least a server does with signed addresses.
func serve(s *disk.Store) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		signed, err := signer.Verify(r.Method, r.URL, time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		if r.Method == http.MethodPut {
			take(w, r, s, signed)
			return
		}
		give(w, r, s, signed)
	}
}

func take(w http.ResponseWriter, r *http.Request, s *disk.Store, signed disk.Signed) {
	if r.Header.Get("Content-Type") != signed.ContentType || r.ContentLength != signed.Size {
		http.Error(w, "not what was signed", http.StatusForbidden)
		return
	}
	if _, err := s.Put(r.Context(), signed.Key, signed.ContentType, r.Body, signed.Size); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
	}
}

func give(w http.ResponseWriter, r *http.Request, s *disk.Store, signed disk.Signed) {
	f, err := s.Open(r.Context(), signed.Key, 0, -1)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", signed.ContentType)
	w.Header().Set("Content-Disposition", objects.Attachment(signed.Name))
	http.ServeContent(w, r, "", time.Time{}, f.(*os.File))
}

func TestFilesAreForTheServerAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, dir)
	if _, err := s.Put(t.Context(), "a/b/c", "text/plain", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		seen++
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %s", info.Name(), info.Mode())
		}
		return nil
	})
	if err != nil || seen != 9 {
		t.Errorf("%d files and folders, %v", seen, err)
	}
}

func TestNothingIsLeftOfADeletedObject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	for _, key := range []string{"a/b/c", "a/b/d/e"} {
		if _, err := s.Put(t.Context(), key, "text/plain", strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), "a/b/c"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeletePrefix(t.Context(), "a/b/"); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"objects", "tmp"} {
		if left, err := os.ReadDir(filepath.Join(dir, sub)); err != nil || len(left) != 0 {
			t.Errorf("in %s: %v, %v", sub, left, err)
		}
	}
}

func TestNoLinkLeadsOutOfTheFolder(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	for name, target := range map[string]string{"folder": outside, "file": filepath.Join(outside, "secret")} {
		if err := os.Symlink(target, filepath.Join(dir, "objects", name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"folder/secret", "file"} {
		if _, err := s.Stat(t.Context(), key); err == nil {
			t.Errorf("%s is there", key)
		}
		if _, err := s.Open(t.Context(), key, 0, -1); err == nil {
			t.Errorf("%s can be read", key)
		}
	}
	if _, err := s.Put(t.Context(), "folder/new", "text/plain", strings.NewReader("x"), 1); err == nil {
		t.Error("the folder can be written to")
	}
	if page, err := s.List(t.Context(), "", "", 10); err != nil || len(page) != 0 {
		t.Errorf("%v, %v", page, err)
	}
	if n, _ := s.DeletePrefix(t.Context(), "folder/"); n != 0 {
		t.Error("the folder can be emptied")
	}
	if _, err := os.Stat(filepath.Join(outside, "secret")); err != nil {
		t.Error(err)
	}
}

func TestAnObjectIsNotAFolder(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	if _, err := s.Put(t.Context(), "a/b", "text/plain", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a/b/c", "a"} {
		if _, err := s.Put(t.Context(), key, "text/plain", strings.NewReader("x"), 1); !fault.Is(err, fault.KindConflict) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestOldTemporaryFilesAreSweptAtTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir)
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": time.Hour} {
		path := filepath.Join(dir, "tmp", name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	open(t, dir)
	left, err := os.ReadDir(filepath.Join(dir, "tmp"))
	if err != nil || len(left) != 1 || left[0].Name() != "young" {
		t.Errorf("%v, %v", left, err)
	}
}

// A folder is emptied while something is written into it: the bytes are gone at
// once, although their sender goes on, and never become an object.
func TestWhatIsBeingWrittenGoesWithItsPrefix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := s.Put(t.Context(), "teams/a/k", "text/plain", r, 4)
		done <- err
	}()
	if _, err := io.WriteString(w, "ab"); err != nil { // from here on it has been opened
		t.Fatal(err)
	}
	if n, err := s.DeletePrefix(t.Context(), "teams/a/"); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := io.WriteString(w, "cd"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := <-done; !fault.Is(err, fault.KindNotFound) {
		t.Errorf("it was kept: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "objects")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestAFileWithTooManyNamesIsCopied(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes 65,000 links")
	}
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := s.Put(t.Context(), "k", "text/plain", strings.NewReader("bytes"), 5); err != nil {
		t.Fatal(err)
	}
	if err := fillLinks(filepath.Join(dir, "objects", "k"), t.TempDir()); err != nil {
		t.Skip(err)
	}
	if err := s.Link(t.Context(), "k", "copy"); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), "copy", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); err != nil || string(text) != "bytes" {
		t.Errorf("%q, %v", text, err)
	}
}

// fillLinks gives the file as many names as it can have.
func fillLinks(file, dir string) error {
	const most = 70_000
	for i := range most {
		err := os.Link(file, filepath.Join(dir, strconv.Itoa(i)))
		if errors.Is(err, syscall.EMLINK) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("this file system takes very many links")
}
