package files_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/store/storetest"
)

// beginFolder begins the upload of a folder and sends the bytes of its files.
func (b *bench) beginFolder(u *files.Uploads, text string, entries ...folders.Entry) files.LargeUpload {
	b.t.Helper()
	up, err := u.Begin(b.t.Context(), b.owner, files.Presign{Name: "reads.py", ContentType: files.FolderType, Size: int64(len(text)), Entries: entries})
	if err != nil {
		b.t.Fatal(err)
	}
	if text != "" {
		if _, err := u.Receive(b.t.Context(), up.Key, 1, strings.NewReader(text)); err != nil {
			b.t.Fatal(err)
		}
	}
	return up
}

func (b *bench) read(key string) string {
	b.t.Helper()
	in, err := b.objects.Open(b.t.Context(), key, 0, -1)
	if err != nil {
		b.t.Fatal(err)
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

var reads = []folders.Entry{{Path: "a.csv", Size: 5}, {Path: "empty", Folder: true}, {Path: "sub/b.csv", Size: 0}, {Path: "sub/c.csv", Size: 5}, {Path: "sub/link", Link: "../a.csv"}}

func TestAnUploadedFolderIsAFolder(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		u, p := b.uploads()
		up := b.beginFolder(u, "helloworld", reads...)
		reserved := b.stored()
		died := errors.New("the server died")
		p.joined = func() error { return died }
		if _, err := u.Complete(t.Context(), b.owner, up.ID, files.Finish{Entries: reads}); !errors.Is(err, died) {
			t.Fatal(err)
		}
		for range 2 { // who lost the answer asks again
			f, err := u.Complete(t.Context(), b.owner, up.ID, files.Finish{Entries: reads, SHA256: sum("helloworld")})
			if err != nil || f.Key != up.Key || f.Folder == nil || f.Folder.Files != 3 || f.Folder.Bytes != 10 || f.Contents() != 10 || f.DataURL == "" || f.ContentType != "application/json" || f.Name != "reads.py" {
				t.Fatalf("%+v, %v", f, err)
			}
			m, err := folders.Parse([]byte(b.read(f.Blob)))
			if err != nil || len(m.Entries) != 5 || m.Entries[0].SHA256 != sum("hello") || m.Entries[2].SHA256 != sum("") || m.Entries[3].SHA256 != sum("world") {
				t.Errorf("%+v, %v", m, err)
			}
			if folders.Hash(m.Text()) != f.SHA256 || b.read(f.Folder.Data) != "helloworld" || b.stored() != 10+f.Size || reserved != 10+f.Size {
				t.Errorf("%+v, %d bytes count, %d did before", f, b.stored(), reserved)
			}
		}
		given, err := b.db.FilesAmong(t.Context(), b.owner.Team, []string{up.Key})
		if err != nil || given[up.Key].Contents != 10 || !given[up.Key].Folder {
			t.Errorf("%+v, %v", given, err)
		}
		among, err := b.db.FoldersAmong(t.Context(), b.owner.Team, []string{up.Key})
		if err != nil || !among[up.Key] {
			t.Errorf("no input takes it: %v, %v", among, err)
		}
		if err := b.Delete(t.Context(), b.owner, files.FromUpload, up.Key); err != nil || b.there(up.Key) || b.stored() != 0 {
			t.Errorf("%v, its bytes are there: %v, %d bytes count", err, b.there(up.Key), b.stored())
		}
	})
}

func TestAFolderWithoutBytesIsAFolder(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		u, _ := b.uploads()
		for _, entries := range [][]folders.Entry{nil, {{Path: "empty"}}} {
			up := b.beginFolder(u, "", entries...)
			f, err := u.Complete(t.Context(), b.owner, up.ID, files.Finish{Entries: entries, SHA256: sum("")})
			if err != nil || f.Folder == nil || f.Folder.Files != len(entries) || f.Folder.Bytes != 0 || !b.there(up.Key) {
				t.Errorf("%+v, %v", f, err)
			}
		}
	})
}

// What cannot be a folder is refused before a byte is sent, and so is what comes with the end.
func TestWhatCannotBeAFolderIsRefused(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		u, _ := b.uploads()
		for name, tt := range map[string]struct {
			kind    string
			size    int64
			entries []folders.Entry
			want    string
		}{
			"a file with entries":    {"text/csv", 5, []folders.Entry{{Path: "a", Size: 5}}, "only for a folder"},
			"other bytes":            {files.FolderType, 6, []folders.Entry{{Path: "a", Size: 5}}, "have 5 bytes together, and size is 6"},
			"no entries":             {files.FolderType, 5, nil, "have 0 bytes together"},
			"out of order":           {files.FolderType, 0, []folders.Entry{{Path: "b"}, {Path: "a"}}, "not in order"},
			"a path above":           {files.FolderType, 0, []folders.Entry{{Path: "../a"}}, "no path below"},
			"a link out":             {files.FolderType, 0, []folders.Entry{{Path: "a", Link: "/etc"}}, "leads out of the folder"},
			"a script":               {files.FolderType, 0, []folders.Entry{{Path: "bin/run.SH"}}, `"bin/run.SH" in the folder: programs`},
			"a link with the name":   {files.FolderType, 0, []folders.Entry{{Path: "data.txt"}, {Path: "run.js", Link: "data.txt"}}, `"run.js" in the folder: programs`},
			"a size below nothing":   {files.FolderType, 0, []folders.Entry{{Path: "a", Size: -5}, {Path: "b", Size: 5}}, "not one thing"},
			"a file without a byte":  {"text/csv", 0, nil, "use /api/files/presign"},
			"an unusable name in it": {files.FolderType, 0, []folders.Entry{{Path: "a\nb"}}, "control character"},
		} {
			_, err := u.Begin(t.Context(), b.owner, files.Presign{Name: "a", ContentType: tt.kind, Size: tt.size, Entries: tt.entries})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := b.Presign(t.Context(), b.owner, files.Presign{Name: "a", ContentType: files.FolderType, Size: 5})
		storetest.Refused(t, "a folder by one request", err, fault.KindInvalid)
		up := b.beginFolder(u, "helloworld", reads...)
		reserved := b.stored()
		_, err = u.Complete(t.Context(), b.owner, up.ID, files.Finish{Entries: append(slices.Clone(reads), folders.Entry{Path: "sub/more"})})
		storetest.Refused(t, "the end of a folder with more files", err, fault.KindInvalid)
		_, err = u.Complete(t.Context(), b.owner, up.ID, files.Finish{Entries: reads[:2]})
		storetest.Refused(t, "the end of another folder", err, fault.KindInvalid)
		_, err = u.Complete(t.Context(), b.owner, up.ID, files.Finish{})
		storetest.Refused(t, "the end of a file", err, fault.KindInvalid)
		if b.stored() != reserved {
			t.Errorf("%d bytes count, and %d did before", b.stored(), reserved)
		}
		_, err = u.Complete(t.Context(), b.owner, up.ID, files.Finish{Entries: reads, SHA256: sum("other")})
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "sha256_mismatch" || b.stored() != 0 || b.there(up.Key) {
			t.Errorf("other bytes: %v, %d bytes count", err, b.stored())
		}
		up = b.beginFolder(u, "hello#!/bi", reads...)
		_, err = u.Complete(t.Context(), b.owner, up.ID, files.Finish{Entries: reads})
		if !fault.Is(err, fault.KindUnsupported) || !strings.Contains(err.Error(), "sub/c.csv") || b.stored() != 0 {
			t.Errorf("a script without its ending: %v, %d bytes count", err, b.stored())
		}
	})
}

// Whoever calls a folder off while it is completed leaves nothing that counts.
func TestAFolderThatIsCalledOffMeanwhileIsNone(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		u, p := b.uploads()
		up := b.beginFolder(u, "helloworld", reads...)
		p.joined = func() error { return u.Abort(t.Context(), b.owner, up.ID) }
		_, err := u.Complete(t.Context(), b.owner, up.ID, files.Finish{Entries: reads})
		storetest.Refused(t, "completing it", err, fault.KindNotFound)
		if names := b.names(b.owner); len(names) != 0 || b.there(up.Key) || b.stored() != 0 {
			t.Errorf("the list has %v, its bytes are there: %v, %d bytes count", names, b.there(up.Key), b.stored())
		}
		if left, err := b.objects.List(t.Context(), "", "", 10); err != nil || len(left) != 0 {
			t.Errorf("there are %+v, %v", left, err)
		}
	})
}
