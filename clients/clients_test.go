package clients_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/clients"
)

func list(t *testing.T, c *clients.Catalog) []clients.File {
	t.Helper()
	files, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, c *clients.Catalog, name string) (clients.File, []byte) {
	t.Helper()
	f, content, err := c.Open(name)
	if err != nil {
		t.Fatal(name, err)
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return f, text
}

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Installers refuse a wheel whose RECORD is wrong, and read its name and METADATA.
func TestWheelsAreWhatTheyRecord(t *testing.T) {
	t.Parallel()
	files := list(t, clients.New(""))
	if len(files) != 2 {
		t.Fatalf("%+v", files)
	}
	for i, want := range []struct {
		kind     clients.Kind
		project  string
		contains string
		metadata []string
	}{
		{clients.Python, "millrace-python", "millrace/_async/client.py", []string{"Requires-Dist: httpx>=0.28\n", "Provides-Extra: pandas\nRequires-Dist: pandas>=2.2; extra == 'pandas'\n", "Provides-Extra: polars\n", "Requires-Python: >=3.11\n", "\n\n# millrace\n"}},
		{clients.Snakemake, "snakemake-logger-plugin-millrace", "snakemake_logger_plugin_millrace/__init__.py", []string{"Requires-Dist: snakemake-interface-common>=1.20\n"}},
	} {
		f, text := read(t, clients.New(""), files[i].Name)
		stem := strings.ReplaceAll(want.project, "-", "_") + "-" + f.Version
		if f != files[i] || f.Kind != want.kind || f.Project != want.project || f.Name != stem+"-py3-none-any.whl" || f.SHA256 != sum(text) || f.Size != int64(len(text)) {
			t.Errorf("%+v is listed as %+v", f, files[i])
		}
		z, err := zip.NewReader(bytes.NewReader(text), f.Size)
		if err != nil {
			t.Fatal(err)
		}
		record, metadata := checkRecord(t, z, stem+".dist-info/")
		if !record[want.contains] {
			t.Errorf("%s lacks %s", f.Name, want.contains)
		}
		for _, line := range append(want.metadata, "Name: "+want.project+"\n", "Version: "+f.Version+"\n") {
			if !strings.Contains(metadata, line) {
				t.Errorf("METADATA of %s lacks %q:\n%.600s", f.Name, line, metadata)
			}
		}
	}
}

// checkRecord holds every file of a wheel against RECORD.
func checkRecord(t *testing.T, z *zip.Reader, info string) (names map[string]bool, metadata string) {
	t.Helper()
	texts := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if texts[f.Name], err = io.ReadAll(r); err != nil { // this checks the CRC as well
			t.Fatal(f.Name, err)
		}
	}
	rows, err := csv.NewReader(bytes.NewReader(texts[info+"RECORD"])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	names = map[string]bool{}
	for _, row := range rows {
		names[row[0]] = true
		s := sha256.Sum256(texts[row[0]])
		want := []string{row[0], "sha256=" + base64.RawURLEncoding.EncodeToString(s[:]), fmt.Sprint(len(texts[row[0]]))}
		if row[0] == info+"RECORD" {
			want = []string{row[0], "", ""}
		}
		if strings.Join(row, ",") != strings.Join(want, ",") {
			t.Errorf("RECORD has %v, want %v", row, want)
		}
	}
	if len(names) != len(texts) {
		t.Errorf("RECORD has %d of %d files", len(names), len(texts))
	}
	return names, string(texts[info+"METADATA"])
}

// Two builds of the same sources have to be one file, since people compare hashes.
func TestTheSameSourcesMakeTheSameWheels(t *testing.T) {
	t.Parallel()
	if a, b := list(t, clients.New("")), list(t, clients.New("")); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%+v and %+v", a, b)
	}
}

// Every Python file of the packages is in the wheels, and nothing that running them leaves.
func TestEverySourceIsInAWheel(t *testing.T) {
	t.Parallel()
	for _, project := range []string{"python", "snakemake"} {
		err := filepath.WalkDir(filepath.Join(project, "src"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) == ".pyc" {
				return err
			}
			if _, err := fs.Stat(clients.Files, filepath.ToSlash(path)); err != nil {
				t.Error(err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnlyRegularFilesOfTheFolderAreOffered(t *testing.T) {
	t.Parallel()
	outside, folder := filepath.Join(t.TempDir(), "secret"), t.TempDir()
	put(t, outside, "secret")
	in := func(name string) string { return filepath.Join(folder, name) }
	put(t, in("millrace-client-darwin-arm64"), "a program")
	put(t, in("SHA256SUMS"), "sums")
	put(t, in(".hidden"), "hidden")
	put(t, in("a b"), "spaces")
	put(t, in(clients.Index), "taken")
	for _, err := range []error{os.Symlink(outside, in("link")), os.Symlink("SHA256SUMS", in("inside")), os.Mkdir(in("folder"), 0o700), syscall.Mkfifo(in("pipe"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(in("SHA256SUMS"), in("hard")); err != nil {
		t.Fatal(err)
	}
	c := clients.New(folder)
	files := list(t, c)
	var names []string
	for _, f := range files[2:] {
		names = append(names, f.Name+" "+string(f.Kind)+" "+f.Platform)
	}
	if got := strings.Join(names, ", "); got != "SHA256SUMS other , hard other , millrace-client-darwin-arm64 program darwin/arm64" {
		t.Errorf("it offers %s", got)
	}
	if f, text := read(t, c, "SHA256SUMS"); string(text) != "sums" || f.SHA256 != sum(text) || f != files[2] {
		t.Errorf("%+v %q", f, text)
	}
	for _, name := range []string{"link", "inside", "folder", "pipe", ".hidden", "a b", clients.Index, "../" + filepath.Base(folder) + "/SHA256SUMS", "", ".", "nothing"} {
		if _, _, err := c.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
	said := fmt.Sprint(c.Check())
	for _, name := range []string{`"link"`, `"inside"`, `"folder"`, `"pipe"`, `".hidden"`, `"a b"`, `"index.json"`} {
		if !strings.Contains(said, name) {
			t.Errorf("the check does not name %s: %s", name, said)
		}
	}
}

func TestTheFolderHasABoundedNumberOfFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i := range clients.MaxFiles + 1 {
		put(t, filepath.Join(folder, fmt.Sprintf("file-%03d", i)), "x")
	}
	c := clients.New(folder)
	if files := list(t, c); len(files) != 2+clients.MaxFiles || files[len(files)-1].Name != "file-099" {
		t.Errorf("%d files, the last is %s", len(files), files[len(files)-1].Name)
	}
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "has 101 files") {
		t.Error(err)
	}
}

// A file is hashed again when it was replaced or written to, whatever its size.
func TestAChangedFileHasAnotherHash(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "millrace-linux-amd64")
	c := clients.New(folder)
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i, text := range []string{"one", "two", "longer"} {
		put(t, path, text)
		if err := os.Chtimes(path, at, at.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
		if f := list(t, c)[2]; f.SHA256 != sum([]byte(text)) || f.Size != int64(len(text)) {
			t.Errorf("%q is listed as %+v", text, f)
		}
	}
	// The same size and time, but another file.
	put(t, path+".new", "REPLACED"[:6])
	if err := errors.Join(os.Chtimes(path+".new", at, at.Add(2*time.Second)), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
	if f := list(t, c)[2]; f.SHA256 != sum([]byte("REPLAC")) {
		t.Errorf("a replaced file has its old hash: %+v", f)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if files := list(t, c); len(files) != 2 {
		t.Errorf("a file that is gone is listed: %+v", files[2:])
	}
}

// Hashing a large file takes time, which a list must not take each time.
func TestAnUnchangedFileIsReadOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "millrace-linux-amd64")
	put(t, path, "one")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	c := clients.New(folder)
	first := list(t, c)[2]
	// What is written behind the back of its time shows that nobody read it again.
	put(t, path, "two")
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if again := list(t, c)[2]; again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
}

func TestAFolderThatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	c := clients.New(filepath.Join(t.TempDir(), "missing"))
	if err := c.Check(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := c.List(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
