package git_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/engine/executor/tool"
	"github.com/millrace/millrace/internal/engine/executor/tool/tooltest"
	"github.com/millrace/millrace/internal/git"
	"github.com/millrace/millrace/internal/git/gittest"
	"github.com/millrace/millrace/internal/git/unpack"
	"github.com/millrace/millrace/internal/waittest"
)

func TestMain(m *testing.M) {
	if unpack.IsCall(os.Args) {
		syscall.Exit(unpack.Run(os.Args))
	}
	tooltest.Main(m)
}

var (
	sandboxLimits = tool.Limits{CPU: time.Minute, Time: 2 * time.Minute, Memory: 1 << 30, Disk: 1 << 30, Threads: true}
	small         = git.Limits{Pack: 20 << 20, Tree: 4 << 20, File: 1 << 20, Files: 100, Time: time.Minute}
)

func newTrees(t *testing.T, allowPrivate bool, l git.Limits, most int64) *git.Trees {
	t.Helper()
	return treesOf(t, git.New(allowPrivate, l), most)
}

func treesOf(t *testing.T, c *git.Client, most int64) *git.Trees {
	t.Helper()
	trees, err := git.NewTrees(c, tooltest.New(t, sandboxLimits), git.TreesConfig{
		Folder: filepath.Join(t.TempDir(), "sources"), MaxTotal: most, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return trees
}

func wanted(t *testing.T, s source.Source) git.Wanted {
	t.Helper()
	r, err := git.Open(s, nil, connections.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	return git.Wanted{Team: "team_1", Repository: r, Path: s.Path, Submodules: s.Submodules}
}

// fetched is the newest tree of a source.
func fetched(t *testing.T, trees *git.Trees, s source.Source) (git.Tree, error) {
	t.Helper()
	w := wanted(t, s)
	commit, err := trees.Resolve(t.Context(), w, s.Ref)
	if err != nil {
		return git.Tree{}, err
	}
	tree, err := trees.Tree(t.Context(), w, commit)
	if err == nil {
		t.Cleanup(tree.Release)
	}
	return tree, err
}

func mustFetch(t *testing.T, trees *git.Trees, s source.Source) git.Tree {
	t.Helper()
	tree, err := fetched(t, trees, s)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func read(t *testing.T, tree git.Tree, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree.Folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestATreeIsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("analysis/run.py", "print(1)")
	r.Write("analysis/-rf", "harmless")
	r.Write("README.md", "read me")
	if err := os.Chmod(filepath.Join(r.Dir, "analysis/run.py"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../README.md", filepath.Join(r.Dir, "analysis/link")); err != nil {
		t.Fatal(err)
	}
	first := r.Commit()
	r.Git("tag", "-a", "v1", "-m", "one")
	r.Write("analysis/run.py", "print(2)")
	r.Commit()
	r.Git("branch", "dev/x", first)
	trees, address := newTrees(t, true, small, 0), r.Serve()
	for ref, want := range map[string]string{"": "print(2)", "main": "print(2)", "v1": "print(1)", "dev/x": "print(1)", first: "print(1)", "refs/heads/main": "print(2)"} {
		tree := mustFetch(t, trees, source.Source{Git: address, Ref: ref})
		if got := read(t, tree, "analysis/run.py"); got != want {
			t.Errorf("at %q it is %q, want %q", ref, got, want)
		}
	}
	tree := mustFetch(t, trees, source.Source{Git: address})
	if got := read(t, tree, "analysis/-rf") + read(t, tree, "analysis/link"); got != "harmlessread me" {
		t.Errorf("got %q", got)
	}
	if info, err := os.Stat(filepath.Join(tree.Folder, "analysis/run.py")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("a program has mode %v: %v", info.Mode(), err)
	}
	if _, err := os.Stat(filepath.Join(tree.Folder, ".git")); !os.IsNotExist(err) {
		t.Errorf("there is a folder of git: %v", err)
	}
	if _, err := fetched(t, trees, source.Source{Git: address, Ref: "v2"}); !fault.Is(err, fault.KindInvalid) {
		t.Errorf("a tag that is not there: %v", err)
	}
	if _, err := fetched(t, trees, source.Source{Git: address, Ref: strings.Repeat("ab", 20)}); !fault.Is(err, fault.KindInvalid) {
		t.Errorf("a commit that is not there: %v", err)
	}
}

func TestAFolderOfARepositoryHasAHashOfItsOwn(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a/x", "1")
	r.Write("b/x", "1")
	r.Commit()
	trees, address := newTrees(t, true, small, 0), r.Serve()
	a := mustFetch(t, trees, source.Source{Git: address, Path: "a"})
	if read(t, a, "x") != "1" {
		t.Error("the folder is not at the top")
	}
	r.Write("b/x", "2")
	r.Commit()
	if again := mustFetch(t, trees, source.Source{Git: address, Path: "a"}); again.Hash != a.Hash {
		t.Error("a change elsewhere changes the hash")
	}
	r.Write("a/x", "2")
	r.Commit()
	if again := mustFetch(t, trees, source.Source{Git: address, Path: "a"}); again.Hash == a.Hash {
		t.Error("a change does not change the hash")
	}
	if _, err := fetched(t, trees, source.Source{Git: address, Path: "c"}); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "no folder c") {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestATreeThatIsHereNeedsNoHost(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("x", "1")
	commit := r.Commit()
	var asked atomic.Int64
	address := r.ServeBehind(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { asked.Add(1); h.ServeHTTP(w, req) })
	})
	trees := newTrees(t, true, small, 0)
	mustFetch(t, trees, source.Source{Git: address, Ref: commit})
	before := asked.Load()
	mustFetch(t, trees, source.Source{Git: address, Ref: commit})
	if n := asked.Load(); n != before {
		t.Errorf("it was asked %d times more", n-before)
	}
	// What one team has fetched is not for others.
	w := wanted(t, source.Source{Git: address})
	w.Team = "team_2"
	tree, err := trees.Tree(t.Context(), w, commit)
	if err != nil || asked.Load() == before {
		t.Errorf("another team got it without asking: %v", err)
	}
	tree.Release()
}

// A team whose hosts are slow waits for its turn, and keeps nobody else waiting.
func TestATeamsSlowHostsKeepOnlyThatTeamWaiting(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("x", "1")
	commit := r.Commit()
	stuck, asked := make(chan struct{}), make(chan struct{}, 100)
	slow := r.ServeBehind(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { asked <- struct{}{}; <-stuck; h.ServeHTTP(w, req) })
	})
	trees, done := newTrees(t, true, small, 0), make(chan error, 100)
	want := func(ctx context.Context, path string) {
		w := wanted(t, source.Source{Git: slow, Path: path})
		go func() {
			_, err := trees.Tree(ctx, w, commit)
			done <- err
		}()
	}
	for i := range 2 {
		want(t.Context(), fmt.Sprint("none", i))
		<-asked
	}
	leaving, leave := context.WithCancel(t.Context())
	for i := range 20 {
		want(leaving, fmt.Sprint("more", i))
	}
	other := wanted(t, source.Source{Git: r.Serve()})
	other.Team = "team_2"
	tree, err := trees.Tree(t.Context(), other, commit)
	if err != nil {
		t.Fatalf("another team: %v", err)
	}
	tree.Release()
	leave()
	for range 20 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: %v", err)
		}
	}
	close(stuck)
	for range 2 {
		if err := <-done; !fault.Is(err, fault.KindInvalid) {
			t.Errorf("who waited: %v", err)
		}
	}
	own := wanted(t, source.Source{Git: slow})
	if tree, err = trees.Tree(t.Context(), own, commit); err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	tree.Release()
	if !waittest.Until(func() bool { return !trees.Fetching() }) {
		t.Error("a turn was not given back")
	}
}

// While the slow hosts of ten teams, which one account can make in a day, hold as many
// fetches as they can, another team's code arrives.
func TestSlowGitHostsHoldUpNoOtherTeam(t *testing.T) {
	t.Parallel()
	const teams, most = 10, 2
	r := gittest.New(t)
	r.Write("x", "1")
	commit := r.Commit()
	asked := make(chan struct{}, 100)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	slow := r.ServeBehind(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-ctx.Done() })
	})
	trees, fetches := newTrees(t, true, small, 0), sync.WaitGroup{}
	for team := range teams {
		for i := range most + 1 { // one more than a team may
			w := wanted(t, source.Source{Git: slow, Path: fmt.Sprint("none", i)})
			w.Team = ids.Team(fmt.Sprint("team_slow", team))
			fetches.Go(func() {
				if _, err := trees.Tree(ctx, w, commit); err == nil {
					t.Error("a host that sends nothing was read")
				}
			})
		}
	}
	for range teams * most {
		<-asked
	}
	mustFetch(t, trees, source.Source{Git: r.Serve()})
	if len(asked) > 0 {
		t.Error("a slow team has more turns than a team may")
	}
	stop()
	fetches.Wait()
}

// Nothing is fetched while the disk has no room for it, and a fetch under way ends.
func TestCodeGivesWayToAFullDisk(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("x", "1")
	r.Write("large", string(random(20<<20)))
	commit := r.Commit()
	full := fault.Unavailable("the disk is nearly full").WithCode("disk_low")
	for name, looks := range map[string]int64{"before": 0, "while it is fetched": 1} {
		var looked atomic.Int64
		folder := filepath.Join(t.TempDir(), "sources")
		trees, err := git.NewTrees(git.New(true, git.Limits{Pack: 100 << 20, Tree: 100 << 20, File: 100 << 20, Files: 100, Time: time.Minute}), tooltest.New(t, sandboxLimits), git.TreesConfig{
			Folder: folder, Log: slog.New(slog.DiscardHandler), Now: time.Now, Space: func(context.Context) error {
				if looked.Add(1) > looks {
					return full
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = trees.Tree(t.Context(), wanted(t, source.Source{Git: r.Serve()}), commit); !errors.Is(err, full) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := filepath.Glob(filepath.Join(folder, ".new-*")); err != nil || len(left) > 0 || looked.Load() != looks+1 {
			t.Errorf("%s: %q are left after %d looks, %v", name, left, looked.Load(), err)
		}
	}
}

// random is bytes that nobody can compress.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

// rawTree is a tree object with entries that no git would write.
func rawTree(t *testing.T, r *gittest.Repository, entries ...string) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(entries); i += 3 {
		raw, err := hex.DecodeString(entries[i+2])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\x00%s", entries[i], entries[i+1], raw)
	}
	return r.GitWith(b.String(), "hash-object", "-t", "tree", "--literally", "-w", "--stdin")
}

func TestHostileTreesAreRefused(t *testing.T) {
	t.Parallel()
	const file, link, folder, module = "100644", "120000", "40000", "160000"
	for name, tt := range map[string]struct {
		tree func(r *gittest.Repository, blob func(string) string) string
		want string
	}{
		"a link to the host": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, link, "passwd", blob("/etc/passwd"))
		}, "link passwd leads out"},
		"a link above the top": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, folder, "a", rawTree(t, r, link, "up", blob("../../secret")))
		}, "leads out"},
		"a link that leads up by way of others": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, link, "here", blob("."), link, "out", blob("here/here/here/../../../etc/passwd"))
		}, "link out leads out"},
		"a link in what is a link": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, link, "here", blob("."), link, "here/out", blob("../passwd"))
		}, "link here/out leads out"},
		"git's own folder": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, folder, ".git", rawTree(t, r, file, "config", blob("[core]\nfsmonitor=evil")))
		}, "cannot be used"},
		"git's own folder, spelled otherwise": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, folder, "a", rawTree(t, r, folder, ".GiT", rawTree(t, r, file, "config", blob("x"))))
		}, "cannot be used"},
		"a name that leads up": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, folder, "..", rawTree(t, r, file, "x", blob("x")))
		}, "cannot be used"},
		"a name with a slash": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, file, "../../x", blob("x"))
		}, "cannot be used"},
		"a link and a folder of one name": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, link, "a", blob("b"), folder, "a", rawTree(t, r, file, "x", blob("x")))
		}, "cannot be used"},
		"a large file": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, file, "big", blob(strings.Repeat("0", 1<<20+1)))
		}, "larger than 1 MB"},
		"large files together": {func(r *gittest.Repository, blob func(string) string) string {
			b := blob(strings.Repeat("0", 1<<20))
			return rawTree(t, r, file, "1", b, file, "2", b, file, "3", b, file, "4", b, file, "5", b)
		}, "larger than 4 MB together"},
		"a billion files": {func(r *gittest.Repository, blob func(string) string) string {
			tree := rawTree(t, r, file, "x", blob("x"))
			for range 9 {
				var entries []string
				for i := range 10 {
					entries = append(entries, folder, fmt.Sprint(i), tree)
				}
				tree = rawTree(t, r, entries...)
			}
			return tree
		}, "more than 100 files"},
		"very deep folders": {func(r *gittest.Repository, blob func(string) string) string {
			tree := rawTree(t, r, file, "x", blob("x"))
			for range 90 {
				tree = rawTree(t, r, folder, "d", tree)
			}
			return tree
		}, "deeper than"},
		"a submodule on a private address": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, file, ".gitmodules", blob("[submodule \"m\"]\n\tpath = m\n\turl = http://127.0.0.1:1/m\n"), module, "m", strings.Repeat("ab", 20))
		}, "submodule m: 127.0.0.1:1 is not on the public internet"},
		"a submodule in a file": {func(r *gittest.Repository, blob func(string) string) string {
			return rawTree(t, r, file, ".gitmodules", blob("[submodule \"m\"]\n\tpath = m\n\turl = file:///etc\n"), module, "m", strings.Repeat("ab", 20))
		}, "submodule m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gittest.New(t)
			r.CommitTree(tt.tree(r, func(text string) string { return r.GitWith(text, "hash-object", "-w", "--stdin") }))
			address := r.Serve()
			client := git.New(true, small)
			client.ReachOnly(strings.Split(address, "/")[2])
			_, err := fetched(t, treesOf(t, client, 0), source.Source{Git: address, Submodules: true})
			if err == nil || fault.KindOf(err) == fault.KindInternal || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want something with %q", err, tt.want)
			}
		})
	}
}

func TestALargeFileIsRefusedByAHostThatFiltersNothing(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Git("config", "uploadpack.allowFilter", "false")
	r.Write("big", strings.Repeat("0", 1<<20+1))
	r.Commit()
	_, err := fetched(t, newTrees(t, true, small, 0), source.Source{Git: r.Serve()})
	if !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "larger than 1 MB") {
		t.Errorf("got %v", err)
	}
}

func TestSubmodulesComeWhenAskedFor(t *testing.T) {
	t.Parallel()
	inner, outer := gittest.New(t), gittest.New(t)
	inner.Write("tool.py", "tool")
	commit := inner.Commit()
	outer.Write("main.py", "main")
	outer.Write(".gitmodules", "[submodule \"t\"]\n\tpath = lib/tools\n\turl = "+inner.Serve()+"\n")
	outer.Git("add", "-A")
	outer.Git("update-index", "--add", "--cacheinfo", "160000,"+commit+",lib/tools")
	outer.Git("commit", "-q", "-m", "with tools")
	trees, address := newTrees(t, true, small, 0), outer.Serve()
	with := mustFetch(t, trees, source.Source{Git: address, Submodules: true})
	if got := read(t, with, "lib/tools/tool.py"); got != "tool" {
		t.Errorf("got %q", got)
	}
	below := mustFetch(t, trees, source.Source{Git: address, Submodules: true, Path: "lib"})
	if got := read(t, below, "tools/tool.py"); got != "tool" {
		t.Errorf("got %q", got)
	}
	without := mustFetch(t, trees, source.Source{Git: address})
	if left, err := os.ReadDir(filepath.Join(without.Folder, "lib/tools")); err != nil || len(left) != 0 {
		t.Errorf("unasked there is %v: %v", left, err)
	}
}

func TestBehind(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("x", "1")
	first := r.Commit()
	for i := range 3 {
		r.Write("x", fmt.Sprint("more ", i))
		r.Commit()
	}
	latest := r.Git("rev-parse", "HEAD")
	trees, w := newTrees(t, true, small, 0), wanted(t, source.Source{Git: r.Serve()})
	if n, err := trees.Behind(t.Context(), w, first, latest); err != nil || n != 3 {
		t.Errorf("it is %d behind: %v", n, err)
	}
	if n, err := trees.Behind(t.Context(), w, strings.Repeat("ab", 20), latest); err != nil || n != -1 {
		t.Errorf("of a commit that nobody knows it is %d behind: %v", n, err)
	}
	r.Git("config", "uploadpack.allowFilter", "false")
	if n, err := trees.Behind(t.Context(), w, first, latest); err != nil || n != -1 {
		t.Errorf("where commits come with their files it is %d behind: %v", n, err)
	}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	trees := newTrees(t, false, small, 0)
	for _, address := range []string{"https://127.0.0.1:1/x", "https://[::1]/x", "https://169.254.169.254/x", "https://10.0.0.1/x"} {
		_, err := fetched(t, trees, source.Source{Git: address})
		if !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "not on the public internet") || !strings.Contains(err.Error(), "--fetch-allow-private") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := fetched(t, trees, source.Source{Git: "http://example.org/x"}); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "--fetch-allow-private") {
		t.Errorf("without TLS: %v", err)
	}
}

func TestCredentialsGoToTheirHostAlone(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("x", "private")
	r.Commit()
	var followed, moved atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	t.Cleanup(other.Close)
	address := r.ServeBehind(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if user, password, _ := req.BasicAuth(); user != "x-access-token" || password != "secret-token" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if moved.Load() {
				http.Redirect(w, req, other.URL+req.URL.Path, http.StatusFound)
				return
			}
			h.ServeHTTP(w, req)
		})
	})
	trees, source := newTrees(t, true, small, 0), source.Source{Git: address}
	if _, err := fetched(t, trees, source); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "choose a connection") {
		t.Errorf("without credentials: %v", err)
	}
	u, err := source.Address()
	if err != nil {
		t.Fatal(err)
	}
	c := connections.Connection{Name: "host", Type: connections.Git, Settings: connections.Settings{Host: u.Host}}
	repository, err := git.Open(source, &c, connections.Credentials{Token: "secret-token"})
	if err != nil {
		t.Fatal(err)
	}
	w := git.Wanted{Team: "team_1", Repository: repository}
	commit, err := trees.Resolve(t.Context(), w, "")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := trees.Tree(t.Context(), w, commit)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Release()
	if read(t, tree, "x") != "private" {
		t.Error("it is another tree")
	}
	moved.Store(true)
	if _, err := trees.Resolve(t.Context(), w, ""); !fault.Is(err, fault.KindInvalid) || followed.Load() {
		t.Errorf("after a redirect to another host, which was followed: %t: %v", followed.Load(), err)
	}
	c.Host = "elsewhere.example.org"
	if _, err := git.Open(source, &c, connections.Credentials{Token: "secret-token"}); !fault.Is(err, fault.KindInvalid) {
		t.Errorf("a connection to another host: %v", err)
	}
}

func TestWhatIsNoRepositoryIsSaidSo(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"a web page":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"nothing":     func(http.ResponseWriter, *http.Request) {},
		"half a list": func(w http.ResponseWriter, _ *http.Request) { advertise(w, "001e# service=git-upload-pack\n0000ffff") },
		"a long line": func(w http.ResponseWriter, _ *http.Request) {
			advertise(w, strings.Repeat("fff0"+strings.Repeat("x", 0xffec), 3))
		},
		"in trouble":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"a redirect":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
		"not there":    http.NotFound,
		"a wrong pack": wrongPack,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(answer)
			t.Cleanup(server.Close)
			_, err := fetched(t, newTrees(t, true, small, 0), source.Source{Git: server.URL + "/x"})
			if err == nil || fault.KindOf(err) == fault.KindInternal {
				t.Errorf("got %v", err)
			}
		})
	}
}

func advertise(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	fmt.Fprint(w, text)
}

// A host that the operator does not allow is not asked, also when an allowed one sends us
// there.
func TestRedirectLeadsOnlyToAllowedGitHosts(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("x", "moved")
	r.Commit()
	var asked atomic.Bool
	moved := r.ServeBehind(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			asked.Store(true)
			h.ServeHTTP(w, req)
		})
	})
	to, err := url.Parse(moved)
	if err != nil {
		t.Fatal(err)
	}
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "http://"+to.Host+req.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(first.Close)
	from, l := source.Source{Git: first.URL + to.Path}, small
	l.Hosts = []string{strings.TrimPrefix(first.URL, "http://")}
	if _, err := fetched(t, newTrees(t, true, l, 0), from); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "code from "+to.Host+" is not allowed here") || asked.Load() {
		t.Errorf("a host that is not allowed was asked: %t, %v", asked.Load(), err)
	}
	l.Hosts = append(l.Hosts, to.Host)
	if tree := mustFetch(t, newTrees(t, true, l, 0), from); read(t, tree, "x") != "moved" {
		t.Error("it is another tree")
	}
}

// wrongPack is a host that promises what it does not send.
func wrongPack(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		line := strings.Repeat("ab", 20) + " HEAD\x00shallow ofs-delta\n"
		advertise(w, fmt.Sprintf("001e# service=git-upload-pack\n0000%04x%s0000", len(line)+4, line))
		return
	}
	fmt.Fprint(w, "0034shallow "+strings.Repeat("ab", 20)+"00000008NAK\nPACK\x00\x00\x00\x02\x00\x00\x00\x01\x95\xff\xff\xff\xff\xff\xff\xff\x7f")
}

func TestTheCacheForgetsWhatIsNotUsed(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	address := r.Serve()
	trees := newTrees(t, true, small, 1500)
	var held git.Tree
	var folders []string
	for i := range 4 {
		r.Write("x", strings.Repeat(fmt.Sprint(i), 1000))
		w := wanted(t, source.Source{Git: address})
		tree, err := trees.Tree(t.Context(), w, r.Commit())
		if err != nil {
			t.Fatal(err)
		}
		folders = append(folders, tree.Folder)
		if i == 0 {
			held = tree
		} else {
			tree.Release()
		}
	}
	// A process that another test is just starting has our locks until it has become
	// another program: what it keeps goes the next time.
	var left []string
	var locks []os.DirEntry
	if !waittest.Until(func() bool {
		if err := trees.Clean(); err != nil {
			t.Fatal(err)
		}
		left = slices.DeleteFunc(slices.Clone(folders), func(f string) bool { _, err := os.Stat(f); return err != nil })
		locks, _ = os.ReadDir(filepath.Join(filepath.Dir(filepath.Dir(held.Folder)), ".locks"))
		return len(left) <= 1 && len(locks) <= 1
	}) || !slices.Equal(left, []string{held.Folder}) || len(locks) != 1 {
		t.Errorf("these are left: %v, in use: %s; %d locks", left, held.Folder, len(locks))
	}
	held.Release()
}
