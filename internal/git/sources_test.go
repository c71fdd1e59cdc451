package git_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/git"
	"github.com/millrace/millrace/internal/git/gittest"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/workflows"
)

// opened is the connection of every run and team.
type opened struct {
	c      connections.Connection
	secret connections.Credentials
	err    error
}

func (o opened) ConnectionOf(context.Context, ids.Run, ids.Connection) (connections.Connection, connections.Credentials, error) {
	return o.c, o.secret, o.err
}

func (o opened) open(context.Context, ids.Team, ids.Connection) (connections.Connection, connections.Credentials, error) {
	return o.c, o.secret, o.err
}

// A host that cannot be reached is asked three times, one that says no once, and
// what is wrong is the repository's doing.
func TestAHostThatFailsIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		fails  int32 // so many times, and then it works
		asked  int32
		words  string
	}{
		"at first":       {http.StatusBadGateway, 2, 3, ""},
		"always":         {http.StatusBadGateway, 100, 3, "the code could not be fetched from Git: "},
		"it says no":     {http.StatusNotFound, 100, 1, "the code could not be fetched from Git: "},
		"it wants a key": {http.StatusUnauthorized, 100, 1, "the code could not be fetched from Git: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gittest.New(t)
			commit := r.Commit()
			var asked atomic.Int32
			address := r.ServeBehind(func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if asked.Add(1) <= tt.fails {
						http.Error(w, "a secret of the host", tt.status)
						return
					}
					h.ServeHTTP(w, req)
				})
			})
			s := &git.Sources{Trees: newTrees(t, true, small, 0), Connections: opened{}, Pause: time.Millisecond}
			got, err := s.Resolve(t.Context(), runs.Run{}, source.Source{Git: address})
			if asked.Load() != tt.asked {
				t.Errorf("it was asked %d times", asked.Load())
			}
			if tt.words == "" {
				if err != nil || got != commit {
					t.Errorf("%s, %v", got, err)
				}
				return
			}
			e, ok := errors.AsType[*fault.Error](err)
			if !ok || e.Kind != fault.KindInvalid || e.Code != "source_unavailable" || !strings.HasPrefix(e.Message, tt.words) || strings.Contains(e.Message, "a secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhoIsStoppedAsksNobodyAgain(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	ctx, stop := context.WithCancel(t.Context())
	address := r.ServeBehind(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			stop()
			w.WriteHeader(http.StatusBadGateway)
		})
	})
	s := &git.Sources{Trees: newTrees(t, true, small, 0), Connections: opened{}, Pause: time.Hour}
	if _, err := s.Resolve(ctx, runs.Run{}, source.Source{Git: address}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// What a connection lets through, and in which words it does not.
func TestACodesConnectionMustFit(t *testing.T) {
	t.Parallel()
	token := connections.Credentials{Token: "t"}
	key := connections.Credentials{SSHKey: "k"}
	conn := func(kind connections.Type, host, hostKey string) connections.Connection {
		return connections.Connection{Name: "lab", Type: kind, Settings: connections.Settings{Host: host, HostKey: hostKey}}
	}
	const web, over = "https://git.example.org/x", "ssh://git.example.org/x"
	for name, tt := range map[string]struct {
		address string
		opened  opened
		words   string
	}{
		"it fits":              {web, opened{c: conn(connections.Git, "git.example.org", ""), secret: token}, ""},
		"with the usual port":  {web, opened{c: conn(connections.Git, "GIT.example.org:443", ""), secret: token}, ""},
		"over SSH":             {over, opened{c: conn(connections.Git, "git.example.org:22", "h"), secret: key}, ""},
		"another host":         {web, opened{c: conn(connections.Git, "git.example.com", ""), secret: token}, "the connection lab is for git.example.com, not for git.example.org"},
		"a host that ends so":  {web, opened{c: conn(connections.Git, "t.example.org", ""), secret: token}, "the connection lab is for"},
		"another port":         {web, opened{c: conn(connections.Git, "git.example.org:8443", ""), secret: token}, "the connection lab is for"},
		"a bucket":             {web, opened{c: conn(connections.S3, "git.example.org", ""), secret: token}, "is not one to a Git host"},
		"a token over SSH":     {over, opened{c: conn(connections.Git, "git.example.org", "h"), secret: token}, "has no SSH key"},
		"a key over HTTPS":     {web, opened{c: conn(connections.Git, "git.example.org", "h"), secret: key}, "has an SSH key"},
		"an unknown host":      {over, opened{c: conn(connections.Git, "git.example.org", ""), secret: key}, "test the connection lab first"},
		"it is not the team's": {web, opened{err: fault.Invalid("the team has no connection c any more")}, "the team has no connection c any more"},
		"no address":           {"https://", opened{c: conn(connections.Git, "", "")}, "the address of the repository"},
	} {
		s := source.Source{Git: tt.address, Connection: "c"}
		_, err := git.Open(s, &tt.opened.c, tt.opened.secret)
		if tt.opened.err == nil && (tt.words == "") != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if tt.words == "" {
			continue
		}
		sources := &git.Sources{Trees: newTrees(t, true, small, 0), Connections: tt.opened}
		_, _, _, err = sources.Tree(t.Context(), runs.Run{}, s, strings.Repeat("ab", 20))
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || e.Code != "source_unavailable" || !strings.Contains(e.Message, tt.words) {
			t.Errorf("%s: a run gets %v", name, err)
		}
		hosts := &git.Hosts{Trees: sources.Trees, Open: tt.opened.open}
		if _, err := hosts.Latest(t.Context(), "team_1", s); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: a workflow gets %v", name, err)
		}
		if _, err := hosts.Behind(t.Context(), "team_1", s, "a", "b"); !fault.Is(err, fault.KindInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := fetched(t, newTrees(t, true, small, 0), source.Source{Git: over}); !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), "needs a connection") {
		t.Errorf("over SSH without a key: %v", err)
	}
}

func TestAFileIsReadFromARepository(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("wf/millrace.yml", "version: 1")
	r.Write("wf/large", strings.Repeat("x", 100))
	r.Write("wf/folder/x", "x")
	for from, to := range map[string]string{"link": "large", "loop": "loop", "nowhere": "nothing"} {
		if err := os.Symlink(to, filepath.Join(r.Dir, "wf", from)); err != nil {
			t.Fatal(err)
		}
	}
	commit := r.Commit()
	hosts := &git.Hosts{Trees: newTrees(t, true, small, 0)}
	from := source.Source{Git: r.Serve(), Path: "wf"}
	latest, err := hosts.Latest(t.Context(), "team_1", from)
	if err != nil || latest != commit {
		t.Fatal(latest, err)
	}
	for name, tt := range map[string]struct {
		names []string
		found string
		words string
		none  bool
	}{
		"the second":         {[]string{"millrace.yaml", "millrace.yml"}, "millrace.yml", "", false},
		"none":               {[]string{"a", "b"}, "", "there is no a or b", true},
		"outside":            {[]string{"wf/millrace.yml"}, "", "there is no", true},
		"below a file":       {[]string{"large/config.yaml", "millrace.yml"}, "millrace.yml", "", false},
		"below a loop":       {[]string{"loop/config.yaml", "millrace.yml"}, "millrace.yml", "", false},
		"below nothing":      {[]string{"nowhere/config.yaml"}, "", "there is no", true},
		"below a file alone": {[]string{"large/config.yaml"}, "", "there is no large/config.yaml", true},
		"as large as may be": {[]string{"large"}, "large", "", false},
		"a folder":           {[]string{"folder"}, "folder", "folder is not a plain file", false},
		"a link":             {[]string{"link"}, "link", "link is not a plain file", false},
	} {
		got, text, err := hosts.File(t.Context(), "team_1", from, commit, workflows.FileWanted{Names: tt.names, MaxBytes: 100})
		if tt.words == "" {
			if err != nil || got != tt.found || len(text) == 0 {
				t.Errorf("%s: %s, %v", name, got, err)
			}
			continue
		}
		if !fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), tt.words) || errors.Is(err, workflows.ErrNoFile) != tt.none || got != tt.found {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, _, err := hosts.File(t.Context(), "team_1", from, commit, workflows.FileWanted{Names: []string{"large"}, MaxBytes: 99}); !fault.Is(err, fault.KindInvalid) {
		t.Errorf("a byte too large: %v", err)
	}
}
