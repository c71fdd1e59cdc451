package git_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/git/gittest"
)

// counter counts what is sent.
type counter struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c counter) Write(p []byte) (int, error) {
	c.sent.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// A repository with a long history costs what its newest files cost.
func TestTheHistoryStaysWhereItIs(t *testing.T) {
	t.Parallel()
	cost := func(commits int) int64 {
		t.Helper()
		r := gittest.New(t)
		var b strings.Builder
		for i := range commits {
			text := fmt.Sprintf("version %d of %d", i, commits)
			fmt.Fprintf(&b, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata 1\nx\nM 100644 inline run.py\ndata %d\n%s\n", 1_000_000_000+i, len(text), text)
		}
		r.GitWith(b.String(), "fast-import", "--quiet")
		var sent atomic.Int64
		address := r.ServeBehind(func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { h.ServeHTTP(counter{w, &sent}, req) })
		})
		tree := mustFetch(t, newTrees(t, true, small, 0), source.Source{Git: address})
		if got, want := read(t, tree, "run.py"), fmt.Sprintf("version %d of %d", commits-1, commits); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
		return sent.Load()
	}
	commits := 10_000
	if testing.Short() {
		commits = 500
	}
	short, long := cost(1), cost(commits)
	t.Logf("1 commit: %d bytes, %d commits: %d bytes", short, commits, long)
	if long > 2*short {
		t.Errorf("%d commits take %d bytes, one takes %d", commits, long, short)
	}
}
