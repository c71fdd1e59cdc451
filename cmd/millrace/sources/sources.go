// Package sources puts together what brings code from Git.
package sources

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/tool"
	"github.com/millrace/millrace/internal/git"
	"github.com/millrace/millrace/internal/offline"
)

// Settings say where code comes from.
type Settings struct {
	GitHosts    []string `help:"Git hosts that code may come from; default: all public ones." group:"tasks"`
	SourceCache string   `default:"10GB" help:"Disk space for code from Git; what was not used for longest makes room." group:"tasks"`
}

// Config is what else there is to know.
type Config struct {
	Settings
	Data         string // of the server
	Folder       string // where code is kept, beside the attempts
	MaxTotal     int64  // bytes of it
	Sandbox      string
	AllowPrivate bool
	Space        func(context.Context) error // of the file system of Folder; nil: there is always some
	Log          *slog.Logger

	Loaded offline.Folder  // has code that no host is asked for
	Keep   *offline.Writer // for a bundle of all that is fetched; nil: there is none
}

// limits are what reading a repository may use.
var limits = tool.Limits{
	CPU: 5 * time.Minute, Time: 10 * time.Minute, Memory: 1 << 30, Disk: git.DefaultLimits.Tree + 256<<20, Threads: true,
}

// Store keeps code, and reads what Git hosts send.
type Store struct {
	*git.Trees
	packs *tool.Runner
}

// Open begins with what an earlier server has left. The caller closes it.
func Open(c Config) (*Store, error) {
	tools, err := filepath.Abs(filepath.Join(c.Data, "tools-git"))
	if err != nil {
		return nil, err
	}
	s := &Store{packs: tool.New(local.Config{
		Folder: tools, Log: c.Log, Now: time.Now, Sandbox: local.Sandbox(c.Sandbox), VCPU: git.MaxReads, MemoryBytes: git.MaxReads * limits.Memory,
	}, limits)}
	most := git.DefaultLimits
	most.Hosts = c.GitHosts
	s.Trees, err = git.NewTrees(git.New(c.AllowPrivate, most), s.packs, git.TreesConfig{Folder: c.Folder, MaxTotal: c.MaxTotal, Space: c.Space, Log: c.Log, Now: time.Now, Loaded: c.Loaded, Keep: c.Keep})
	return s, err
}

// Clean makes room, and clears away what a server that was killed has left.
func (s *Store) Clean(ctx context.Context) error {
	return errors.Join(s.Trees.Clean(), s.packs.Recover(ctx))
}

// Close ends what reads strangers' files.
func (s *Store) Close() error { return s.packs.Close() }
