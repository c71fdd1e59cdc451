package unpack

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/google/go-cmp/cmp"
)

func object(t *testing.T, kind plumbing.ObjectType, text string) plumbing.EncodedObject {
	t.Helper()
	o := &plumbing.MemoryObject{}
	o.SetType(kind)
	if _, err := o.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheEntriesOfAFolder(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("\x0a", 20)
	for name, tt := range map[string]struct {
		text string
		want []entry // without hashes; nil: the folder is refused
	}{
		"nothing":           {"", []entry{}},
		"one of each":       {"40000 d\x00" + hash + "100644 f\x00" + hash + "100755 x\x00" + hash + "120000 l\x00" + hash + "160000 s\x00" + hash, []entry{{name: "d", mode: filemode.Dir}, {name: "f", mode: filemode.Regular}, {name: "x", mode: filemode.Executable}, {name: "l", mode: filemode.Symlink}, {name: "s", mode: filemode.Submodule}}},
		"old modes":         {"040755 d\x00" + hash + "100664 f\x00" + hash + "100700 x\x00" + hash, []entry{{name: "d", mode: filemode.Dir}, {name: "f", mode: filemode.Regular}, {name: "x", mode: filemode.Executable}}},
		"a name with space": {"100644 a b\x00" + hash, []entry{{name: "a b", mode: filemode.Regular}}},
		"a hash with zeros": {"100644 a\x00" + strings.Repeat("\x00", 20), []entry{{name: "a", mode: filemode.Regular}}},
		"a short hash":      {"100644 a\x00" + hash[1:], nil},
		"no hash":           {"100644 a\x00", nil},
		"no zero":           {"100644 a", nil},
		"no name":           {"100644 \x00" + hash, nil},
		"no mode":           {" a\x00" + hash, nil},
		"no octal":          {"100844 a\x00" + hash, nil},
		"a huge mode":       {"77777777777777 a\x00" + hash, nil},
		"text":              {"hello", nil},
		"rest of a second":  {"100644 a\x00" + hash + "1", nil},
	} {
		list, err := entries(object(t, plumbing.TreeObject, tt.text))
		if (err == nil) != (tt.want != nil) {
			t.Errorf("%s: %v, %v", name, list, err)
			continue
		}
		for i := range list {
			if got := string(list[i].hash[:]); got != hash && name != "a hash with zeros" {
				t.Errorf("%s: the hash is %q", name, got)
			}
			list[i].hash = plumbing.ZeroHash
		}
		if diff := cmp.Diff(append([]entry{}, tt.want...), append([]entry{}, list...), cmp.AllowUnexported(entry{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := entries(object(t, plumbing.BlobObject, "")); err == nil {
		t.Error("a file is taken for a folder")
	}
}

func TestTheFirstLineOfACommitNamesItsFolder(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("0a", 20)
	for text, good := range map[string]bool{
		"tree " + hash + "\nparent " + hash + "\n": true, "tree " + hash: true,
		"": false, "\n": false, "tree\n": false, "tree ": false, "tree  " + hash: false, " tree " + hash: false, "parent " + hash + "\ntree " + hash: false,
		"tree " + hash[1:]: false, "tree " + hash + "0a": false, "tree " + hash[2:] + "xy": false, "tree " + hash + " ": false, "tree\t" + hash: false,
	} {
		h, err := named(object(t, plumbing.CommitObject, text), "tree")
		if (err == nil) != good || good && h.String() != hash {
			t.Errorf("%q: %s, %v", text, h, err)
		}
	}
}
