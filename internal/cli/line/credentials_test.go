package line_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/cli/line"
)

// Several programs at once lose nothing of one another, and whoever reads meanwhile
// reads one of them whole.
func TestCredentialsAreChangedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	keep := line.Credentials{Folder: filepath.Join(t.TempDir(), "new", "folder")}
	if ring, err := keep.Read(); err != nil || ring.Servers == nil || len(ring.Servers) != 0 {
		t.Fatalf("before there are any: %+v, %v", ring, err)
	}
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			err := keep.Update(func(ring *line.Keyring) error {
				ring.Servers["http://"+strconv.Itoa(n)] = &line.Grant{Token: strconv.Itoa(n)}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := keep.Read(); err != nil {
				t.Errorf("in the middle of it: %v", err)
			}
		})
	}
	wg.Wait()
	ring, err := keep.Read()
	if err != nil || len(ring.Servers) != 20 {
		t.Errorf("%d are left, %v", len(ring.Servers), err)
	}
	refused := errors.New("refused")
	err = keep.Update(func(ring *line.Keyring) error {
		clear(ring.Servers)
		return refused
	})
	if again, readErr := keep.Read(); !errors.Is(err, refused) || readErr != nil || len(again.Servers) != 20 {
		t.Errorf("a change that failed: %v, %d are left", err, len(again.Servers))
	}
	entries, err := os.ReadDir(keep.Folder)
	if err != nil || len(entries) != 2 { // the file, and the lock
		t.Errorf("%v, %v", entries, err)
	}
}

func TestCredentialsThatCannotBeReadAreNotReplaced(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"half": `{"servers":{`, "another kind": `{"servers":[]}`, "nothing": "", "words": "hello"} {
		keep := line.Credentials{Folder: t.TempDir()}
		path := filepath.Join(keep.Folder, "credentials.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := keep.Update(func(*line.Keyring) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "delete it and run millrace login") {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%s: it is %q now, %v", name, got, err)
		}
	}
	keep := line.Credentials{Folder: t.TempDir()}
	if err := os.WriteFile(filepath.Join(keep.Folder, "credentials.json"), []byte(`{"current":"http://a","servers":null}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := keep.Update(func(ring *line.Keyring) error { ring.Servers["http://a"] = &line.Grant{Token: "x"}; return nil }); err != nil {
		t.Errorf("one without servers: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (line.Credentials{Folder: filepath.Join(file, "x")}).Update(func(*line.Keyring) error { return nil }); err == nil {
		t.Error("a folder below a file")
	}
}
