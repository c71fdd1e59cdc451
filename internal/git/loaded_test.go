package git_test

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/engine/executor/tool/tooltest"
	"github.com/millrace/millrace/internal/git"
	"github.com/millrace/millrace/internal/git/gittest"
	"github.com/millrace/millrace/internal/offline"
)

// treesWith are trees that were given what a bundle has, or fill one.
func treesWith(t *testing.T, hosts []string, loaded offline.Folder, keep *offline.Writer) *git.Trees {
	t.Helper()
	limits := small
	limits.Hosts = hosts
	trees, err := git.NewTrees(git.New(keep != nil, limits), tooltest.New(t, sandboxLimits), git.TreesConfig{
		Folder: filepath.Join(t.TempDir(), "sources"), Log: slog.New(slog.DiscardHandler), Now: time.Now, Loaded: loaded, Keep: keep,
	})
	if err != nil {
		t.Fatal(err)
	}
	return trees
}

// loaded is the folder of a machine that a bundle was loaded on.
func loaded(t *testing.T, w *offline.Writer) offline.Folder {
	t.Helper()
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := offline.Open(string(w.Folder()))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	data := t.TempDir()
	err = b.Load(t.Context(), offline.Loading{
		Data: data, Into: "offline", Check: func(offline.Item, offline.Folder) error { return nil }, Loaded: func(offline.Item, int, int) {}, Copying: func(int) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return offline.Folder(filepath.Join(data, "offline"))
}

func newBundle(t *testing.T) *offline.Writer {
	t.Helper()
	w, err := offline.Create(filepath.Join(t.TempDir(), "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Code that was loaded, with its submodules, needs no host: at its branch, at the
// default one, at its commit, and for every team.
func TestLoadedCodeNeedsNoHost(t *testing.T) {
	t.Parallel()
	part, r := gittest.New(t), gittest.New(t)
	part.Write("part.txt", "part")
	part.Commit()
	partAddress := part.Serve()
	r.Write("x", "one")
	r.Commit()
	r.Git("submodule", "add", "-q", partAddress, "part")
	commit := r.Commit()
	asked := 0
	address := r.ServeBehind(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { asked++; next.ServeHTTP(w, q) })
	})
	out := newBundle(t)
	hosts := &git.Hosts{Trees: treesWith(t, nil, "", out), Open: func(context.Context, ids.Team, ids.Connection) (c connections.Connection, s connections.Credentials, err error) {
		return
	}}
	from := source.Source{Git: address, Ref: "main", Submodules: true}
	for _, ref := range []string{"main", ""} {
		from.Ref = ref
		if got, err := hosts.Save(t.Context(), "team_1", from, ""); got != commit || err != nil {
			t.Fatal(got, err)
		}
	}
	from.Ref = "followed"
	if got, err := hosts.Save(t.Context(), "team_1", from, commit); got != commit || err != nil {
		t.Fatal(got, err)
	}
	folder := loaded(t, out)
	r.Write("x", "two")
	later, before := r.Commit(), asked
	trees := treesWith(t, nil, folder, nil)
	for _, ref := range []string{"main", "", "followed", commit} {
		from.Ref = ref
		tree := mustFetch(t, trees, from)
		if read(t, tree, "x")+read(t, tree, "part/part.txt") != "onepart" {
			t.Errorf("%q has %q", ref, read(t, tree, "x"))
		}
	}
	other := wanted(t, source.Source{Git: address})
	other.Team = "team_2"
	if tree, err := trees.Tree(t.Context(), other, commit); err != nil {
		t.Error(err)
	} else {
		tree.Release()
	}
	if asked != before {
		t.Error("the host was asked")
	}
	// What was not loaded is asked for, and what the operator does not allow is not given.
	from.Ref = later
	if _, err := fetched(t, trees, from); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "--fetch-allow-private") {
		t.Errorf("another commit: %v", err)
	}
	for _, ref := range []string{"main", commit} {
		from.Ref = ref
		if _, err := fetched(t, treesWith(t, []string{"git.example.org"}, folder, nil), from); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "--git-hosts") {
			t.Errorf("%q of a host that is not allowed: %v", ref, err)
		}
	}
}

// A pack that has another commit than it says has none.
func TestALoadedPackIsReadAsTheCommitThatItHas(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("x", "one")
	first := r.Commit()
	r.Write("x", "two")
	second := r.Commit()
	address, kept, out := r.Serve(), newBundle(t), newBundle(t)
	tree, err := treesWith(t, nil, "", kept).Tree(t.Context(), wanted(t, source.Source{Git: address}), first)
	if err != nil {
		t.Fatal(err)
	}
	tree.Release()
	list, _, err := kept.Close()
	if err != nil {
		t.Fatal(err)
	}
	f, err := kept.Folder().Open(list.Items[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	blob, err := out.Put(f)
	if err != nil {
		t.Fatal(err)
	}
	const overSSH = "ssh://git.example.org/x"
	for _, name := range []string{address + " " + second, overSSH + " " + first} {
		out.Add(offline.Item{Kind: offline.Pack, Name: name, Value: blob.SHA256, Blobs: []offline.Blob{blob}})
	}
	trees := treesWith(t, nil, loaded(t, out), nil)
	if tree, err := trees.Tree(t.Context(), wanted(t, source.Source{Git: address}), second); !fault.Is(err, fault.KindInvalid) {
		t.Errorf("it gives %v, %v", tree, err)
	}
	// Over SSH, too, it needs no key.
	if tree := mustFetch(t, trees, source.Source{Git: overSSH, Ref: first}); read(t, tree, "x") != "one" {
		t.Errorf("it has %q", read(t, tree, "x"))
	}
}
