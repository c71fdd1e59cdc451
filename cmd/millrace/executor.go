package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/cmd/millrace/sources"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/environments"
	files "github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/sharedfolder"
	"github.com/millrace/millrace/internal/engine/executor/slurm"
	"github.com/millrace/millrace/internal/engine/runimages"
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
	disk   engine.FreeDisk
	driver *executors.Late
	bytes  executor.Files
	images func(ids.Team) runimages.Store

	executors.Software
}

// workplaceOf says where the attempts of an executor lie. The folder of local
// ones, and of the only one, is what it was before executors had names.
func (h *application) workplaceOf(s *settings, x executors.Named) (w workplace, err error) {
	marks := filepath.Join(s.Data, "attempts")
	if w.host, err = s.host(); err != nil {
		return w, err
	}
	w.away = awayShared
	if s.Embedded() { // there is no other, whatever this machine is called
		w.host, w.away = "embedded", awayEmbedded
	}
	if x.Kind != "local" && !x.Only {
		marks, w.host = filepath.Join(s.Data, "executors", x.Name), w.host+hostOf+x.Name
	}
	if w.marks, err = filepath.Abs(marks); err != nil {
		return w, err
	}
	w.folder, w.scope, w.disk = w.marks, w.host, h.disk
	if x.Kind == "kubernetes" {
		w.scope, w.away = "kubernetes:"+x.Kubernetes.KubernetesNamespace+"/"+x.Name, awayCluster
	}
	if x.Kind == "slurm" {
		w.folder = filepath.Join(x.Slurm.SlurmFolder, "attempts")
		w.scope, w.away = "slurm:"+w.folder, awayCluster
	}
	return w, os.MkdirAll(w.marks, 0o700)
}

// hostOf stands between a machine with its folder and the name of one of its
// executors.
const hostOf = "#"

// openExecutor begins with an executor.
func (h *application) openExecutor(ctx context.Context, s *settings, x executors.Named) (workplace, error) {
	w, err := h.workplaceOf(s, x)
	if err != nil {
		return w, err
	}
	folder, inUse := w.folder, local.Roots
	tools, shared := s.Data, s.Data // of this process alone; of all that execute
	open := func(ctx context.Context) (executors.Driver, error) {
		return openLocal(ctx, local.Config{
			Folder: folder, Log: h.log, Now: h.db.Now, Sandbox: local.Sandbox(s.Sandbox),
			VCPU: float64(x.Capacity.VCPU), MemoryBytes: int64(x.Capacity.RAMGB) << 30,
		})
	}
	if x.Kind == "slurm" {
		tools, shared, inUse = filepath.Join(s.Data, "executor-tools", x.Name), x.Slurm.SlurmFolder, sharedfolder.Roots
		open = func(ctx context.Context) (executors.Driver, error) {
			c := x.Slurm.Config(h.db.Key("secrets of attempts"), x.Capacity, h.log)
			c.Now = h.db.Now // servers that share the folder compare times in it
			d, err := slurm.New(ctx, c)
			return executors.Driver{Driver: d, Watcher: d, Meter: d, Preparer: d, Closer: d}, err
		}
	}
	if x.Kind == "kubernetes" {
		tools = filepath.Join(s.Data, "executor-tools", x.Name)
		w.driver, w.bytes = h.shims.Open(ctx, x, w.scope, w.marks)
	} else {
		w.driver = executors.Open(ctx, open)
		w.bytes = files.New(w.folder, w.driver)
	}
	if x.Kind == "local" {
		if w.disk, err = h.guardDisk(s, w); err != nil {
			return w, err
		}
	}
	roots := func() ([]string, error) { return inUse(folder) }
	if w.Images, err = h.openImages(s, filepath.Join(shared, "images"), roots); err != nil {
		return w, err
	}
	w.Environments, err = s.EnvironmentSettings.Open(environments.Config{
		Folder: filepath.Join(shared, "environments"), Builds: filepath.Join(tools, "environment-builds"), InUse: roots,
		Records: h.db, Log: h.log, Now: h.db.Now, Disk: h.disk, AllowPrivate: s.FetchAllowPrivate, InPlace: x.Kind == "slurm", Unfit: x.NoEnvironments(), Loaded: s.loaded(),
	}, s.Sandbox, parseSize)
	if err != nil {
		return w, err
	}
	w.Sources = h.software.Sources
	if shared != s.Data {
		w.Sources, err = h.openSources(s, tools, shared)
	}
	w.images = func(team ids.Team) runimages.Store {
		if x.Kind == "kubernetes" {
			return executors.References{ImageResolver: w.Images.For(team)}
		}
		return w.Images.For(team)
	}
	h.software.Each = append(h.software.Each, w.Software)
	return w, err
}

// openSources opens where code from Git is kept. A folder of tools serves one.
func (h *application) openSources(s *settings, tools, shared string) (*sources.Store, error) {
	most, err := parseSize(s.SourceCache)
	if err != nil {
		return nil, err
	}
	c := sources.Config{
		Settings: s.Settings, Data: tools, Folder: filepath.Join(shared, "sources"), MaxTotal: most, Sandbox: s.Sandbox, AllowPrivate: s.FetchAllowPrivate, Loaded: s.loaded(), Log: h.log,
	}
	if sameFileSystem(s.Data, shared) {
		c.Space = h.disk.Check
	}
	return sources.Open(c)
}
