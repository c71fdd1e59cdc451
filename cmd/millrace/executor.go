package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/cmd/millrace/sources"
	"github.com/millrace/millrace/internal/engine/diskguard"
	"github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/slurm"
	"github.com/millrace/millrace/internal/freedisk"
)

// How long a task may go on without its server: contract and shim agree on it.
// On a cluster the word that it is wanted goes through files, so it comes less
// often.
const (
	awayEmbedded = 10 * time.Minute
	awayShared   = time.Minute
	awayCluster  = 10 * time.Minute
)

// workplace is where tasks run, and who else sees them.
type workplace struct {
	folder string // of the attempts
	marks  string // of this machine alone
	host   string // this server, whatever it was called before
	scope  string // who has the same one finds its attempts
	away   time.Duration
	disk   diskguard.Disk
}

// serversDisk is one that tasks take up nothing of, so that ending them would
// not help.
type serversDisk struct{ *freedisk.Watch }

func (serversDisk) NearlyNone() bool { return false }

// openExecutor begins with the executor that was asked for.
func (h *application) openExecutor(ctx context.Context, s *settings) (w workplace, err error) {
	if w.marks, err = filepath.Abs(filepath.Join(s.Data, "attempts")); err != nil {
		return w, err
	}
	if err := os.MkdirAll(w.marks, 0o700); err != nil {
		return w, err
	}
	capacity, err := s.capacity()
	if err != nil {
		return w, err
	}
	w.away = awayShared
	if w.host, err = s.host(); err != nil {
		return w, err
	}
	if s.embedded() { // there is no other, whatever this machine is called
		w.host, w.away = "embedded", awayEmbedded
	}
	w.folder, w.scope, w.disk = w.marks, w.host, h.disk
	images, code := filepath.Join(s.Data, "images"), filepath.Join(s.Data, "sources")
	if s.Executor == "slurm" {
		c := s.slurmConfig(h.db.Key("secrets of attempts"), capacity, h.log)
		w.folder, w.scope, w.away, w.disk = c.Folder, "slurm:"+c.Folder, awayCluster, serversDisk{h.disk}
		images, code = filepath.Join(s.SlurmFolder, "images"), filepath.Join(s.SlurmFolder, "sources")
		h.driver = executors.Open(ctx, func(ctx context.Context) (executors.Driver, error) {
			d, err := slurm.New(ctx, c)
			return executors.Driver{Driver: d, Renewer: d, Watcher: d, Meter: d, Preparer: d, Closer: d}, err
		})
	} else {
		h.driver = executors.Open(ctx, func(ctx context.Context) (executors.Driver, error) {
			d, err := local.New(ctx, local.Config{
				Folder: w.folder, Log: h.log, Now: time.Now, Sandbox: local.Sandbox(s.Sandbox),
				VCPU: float64(capacity.VCPU), MemoryBytes: int64(capacity.RAMGB) << 30,
			})
			return executors.Driver{Driver: d, Renewer: d, Watcher: d, Meter: d, Preparer: d, Closer: d}, err
		})
	}
	h.images, err = s.openImages(images, s.rootsInUse(w.folder), h.log)
	if err == nil {
		h.environments, err = s.EnvironmentSettings.Open(environments.Config{Folder: filepath.Join(filepath.Dir(images), "environments"), Builds: filepath.Join(s.Data, "environment-builds"), InUse: s.rootsInUse(w.folder), Records: h.db, Log: h.log, Now: time.Now, AllowPrivate: s.FetchAllowPrivate}, s.Sandbox, parseSize)
	}
	if err != nil {
		return w, err
	}
	c, err := parseSize(s.SourceCache)
	if err == nil {
		h.sources, err = sources.Open(sources.Config{
			Settings: s.Settings, Data: s.Data, Folder: code, MaxTotal: c, Sandbox: s.Sandbox, AllowPrivate: s.FetchAllowPrivate, Log: h.log,
		})
	}
	return w, err
}
