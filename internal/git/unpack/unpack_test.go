package unpack_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/git/gittest"
	"github.com/millrace/millrace/internal/git/unpack"
)

// packed is all that a repository has, as Git packs it.
func packed(t *testing.T, r *gittest.Repository) string {
	t.Helper()
	return filepath.Join(r.Dir, "p-"+r.Git("pack-objects", "-q", "--all", "p")+".pack")
}

// generous takes whatever these tests have.
func generous(commit string) unpack.Order {
	return unpack.Order{Commit: commit, File: 1 << 20, Tree: 4 << 20, Files: 100}
}

// run is the program on a pack.
func run(argv []string) (out []byte, said string, status int) {
	var b, complaints bytes.Buffer
	status = unpack.Main(append([]string{"millrace"}, argv...), &b, &complaints)
	return b.Bytes(), complaints.String(), status
}

// listed is an archive, an entry a line, and the submodules that it tells of.
func listed(t *testing.T, archive []byte) (list []string, modules []unpack.Submodule) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, modules
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			if err := json.Unmarshal([]byte(h.PAXRecords[unpack.SubmodulesRecord]), &modules); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%c %o %s %s%s", h.Typeflag, h.Mode, h.Name, h.Linkname, text)))
	}
}

// mill is a repository with one of each.
func mill(t *testing.T) (r *gittest.Repository, commit string) {
	t.Helper()
	r = gittest.New(t)
	r.Write("README", "hello")
	r.Write("bin/run", "#!/bin/sh")
	r.Write("bin/deep/er/x", "x")
	if err := os.Chmod(filepath.Join(r.Dir, "bin/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("bin/run", filepath.Join(r.Dir, "start")); err != nil {
		t.Fatal(err)
	}
	return r, r.Commit()
}

func TestAPackIsWrittenAsAnArchive(t *testing.T) {
	t.Parallel()
	r, commit := mill(t)
	r.Git("tag", "-a", "-m", "one", "v1")
	r.Git("tag", "-a", "-m", "two", "v2", "v1")
	blob := r.Git("rev-parse", "HEAD:README")
	pack := packed(t, r)
	all := []string{"0 644 README hello", "5 755 bin/", "5 755 bin/deep/", "5 755 bin/deep/er/", "0 644 bin/deep/er/x x", "0 755 bin/run #!/bin/sh", "2 777 start bin/run"}
	for name, tt := range map[string]struct {
		commit string
		path   string
		only   []string
		want   []string
		said   string
	}{
		"all":                   {commit, "", nil, all, ""},
		"by a tag of a tag":     {r.Git("rev-parse", "v2"), "", nil, all, ""},
		"a folder":              {commit, "bin", nil, []string{"5 755 deep/", "5 755 deep/er/", "0 644 deep/er/x x", "0 755 run #!/bin/sh"}, ""},
		"with slashes around":   {commit, "/bin/deep/", nil, []string{"5 755 er/", "0 644 er/x x"}, ""},
		"two names":             {commit, "", []string{"README", "start", "nothing"}, []string{"0 644 README hello", "2 777 start bin/run"}, ""},
		"no such folder":        {commit, "bin/nothing", nil, nil, "it has no folder bin/nothing"},
		"a file as a folder":    {commit, "README", nil, nil, "it has no folder README"},
		"a link as a folder":    {commit, "start", nil, nil, "it has no folder start"},
		"up":                    {commit, "../bin", nil, nil, "it has no folder ../bin"},
		"a commit of elsewhere": {strings.Repeat("ab", 20), "", nil, nil, "the commit " + strings.Repeat("ab", 20) + " is not among what its host sent"},
		"no hash":               {"main", "", nil, nil, "the commit main is not among what its host sent"},
		"a file as a commit":    {blob, "", nil, nil, blob + " is not a commit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := generous(tt.commit)
			o.Path, o.Only = tt.path, tt.only
			out, said, status := run(unpack.TreeArguments(pack, o))
			if tt.said != "" {
				if status != unpack.Refused || said != tt.said {
					t.Errorf("%d: %s", status, said)
				}
				return
			}
			if status != 0 || said != "" {
				t.Fatalf("%d: %s", status, said)
			}
			list, modules := listed(t, out)
			if diff := cmp.Diff(tt.want, list); diff != "" || len(modules) > 0 {
				t.Errorf("%s, %+v", diff, modules)
			}
		})
	}
}

func TestAPackIsUnpackedWithinItsLimits(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", strings.Repeat("a", 1<<20))
	r.Write("b", strings.Repeat("b", 1<<20))
	r.Write("d/c", "")
	commit := r.Commit()
	pack := packed(t, r)
	for name, tt := range map[string]struct {
		change func(*unpack.Order)
		said   string
	}{
		"as large as may be":   {func(o *unpack.Order) { o.File, o.Tree, o.Files = 1<<20, 2<<20, 4 }, ""},
		"a byte too large":     {func(o *unpack.Order) { o.File = 1<<20 - 1 }, "larger than 0 MB"},
		"a byte too many":      {func(o *unpack.Order) { o.Tree = 2<<20 - 1 }, "its files are larger than 1 MB together"},
		"one entry too many":   {func(o *unpack.Order) { o.Files = 3 }, "it has more than 3 files and folders"},
		"nothing may be there": {func(o *unpack.Order) { o.Files = 0 }, "it has more than 0 files and folders"},
	} {
		o := generous(commit)
		tt.change(&o)
		_, said, status := run(unpack.TreeArguments(pack, o))
		if tt.said == "" && status != 0 || tt.said != "" && (status != unpack.Refused || !strings.Contains(said, tt.said)) {
			t.Errorf("%s: %d: %s", name, status, said)
		}
	}
}

// Whatever is wrong with a pack, it is refused with a sentence: nothing panics, and
// nothing that is not what was packed comes out.
func TestADamagedPackIsRefused(t *testing.T) {
	t.Parallel()
	r, commit := mill(t)
	pack := packed(t, r)
	whole, err := os.ReadFile(pack)
	if err != nil {
		t.Fatal(err)
	}
	good, _, _ := run(unpack.TreeArguments(pack, generous(commit)))
	try := func(name string, content []byte) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "x.pack")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		out, said, status := run(unpack.TreeArguments(file, generous(commit)))
		if status == 0 && !bytes.Equal(out, good) || status != 0 && said == "" {
			t.Errorf("%s: %d: %q", name, status, said)
		}
		if _, said, status := run(unpack.CountArguments(file)); status != 0 && said == "" {
			t.Errorf("%s, counted: %d", name, status)
		}
	}
	try("empty", nil)
	try("another file", []byte(strings.Repeat("PK\x03\x04", 100)))
	try("no objects", append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"), make([]byte, 20)...))
	try("billions of objects", append([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"), make([]byte, 20)...))
	for at := 1; at < len(whole); at += 7 {
		try(fmt.Sprintf("cut at %d", at), whole[:at])
		flipped := bytes.Clone(whole)
		flipped[at] ^= 0x5a
		try(fmt.Sprintf("another byte at %d", at), flipped)
	}
	if _, _, status := run(unpack.TreeArguments(filepath.Join(t.TempDir(), "none"), generous(commit))); status != 1 {
		t.Errorf("without a file: %d", status)
	}
	if _, _, status := run([]string{unpack.TreeArguments(pack, generous(commit))[0], pack, "no JSON"}); status != 1 {
		t.Errorf("without an order: %d", status)
	}
}

func TestSubmodulesAreToldOf(t *testing.T) {
	t.Parallel()
	other := strings.Repeat("cd", 20)
	const modules = "[submodule \"a\"]\n\tpath = lib/a\n\turl = https://example.org/a\n[submodule \"gone\"]\n\tpath = gone\n\turl = https://example.org/gone\n"
	for name, tt := range map[string]struct {
		file string
		want []unpack.Submodule
		said string
	}{
		"with an address":   {modules, []unpack.Submodule{{Path: "lib/a", URL: "https://example.org/a", Commit: other}}, ""},
		"without a file":    {"", []unpack.Submodule{{Path: "lib/a", Commit: other}}, ""},
		"a file of nothing": {"# nothing\n", []unpack.Submodule{{Path: "lib/a", Commit: other}}, ""},
		"a broken file":     {"[submodule \"a\npath", nil, "its file .gitmodules cannot be read"},
		"a huge file":       {modules + strings.Repeat("# and so on\n", 30_000), nil, "its file .gitmodules cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gittest.New(t)
			if tt.file != "" {
				r.Write(".gitmodules", tt.file)
				r.Git("add", "-A")
			}
			r.Git("update-index", "--add", "--cacheinfo", "160000,"+other+",lib/a")
			r.Git("commit", "-q", "-m", "module")
			out, said, status := run(unpack.TreeArguments(packed(t, r), generous(r.Git("rev-parse", "HEAD"))))
			if tt.said != "" {
				if status != unpack.Refused || said != tt.said {
					t.Errorf("%d: %s", status, said)
				}
				return
			}
			list, found := listed(t, out)
			if diff := cmp.Diff(tt.want, found); diff != "" || status != 0 {
				t.Errorf("%d: %s: %s", status, said, diff)
			}
			if last := list[len(list)-1]; last != "5 755 lib/a/" { // an empty folder, for whoever brings it
				t.Errorf("the folder is %s", last)
			}
		})
	}
}

func TestCommitsAreCounted(t *testing.T) {
	t.Parallel()
	r, _ := mill(t)
	for range 3 {
		r.Commit()
	}
	out, said, status := run(unpack.CountArguments(packed(t, r)))
	if status != 0 || string(out) != "4" {
		t.Errorf("%d: %s%s", status, out, said)
	}
	for _, args := range [][]string{nil, {"millrace"}, {"millrace", "serve", "x"}, {"millrace", "git-tree"}} {
		if unpack.IsCall(args) {
			t.Errorf("%q is taken for a call", args)
		}
	}
	if !unpack.IsCall(append([]string{"millrace"}, unpack.CountArguments("x")...)) {
		t.Error("a call is not known")
	}
}
