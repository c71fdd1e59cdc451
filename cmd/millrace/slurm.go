package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/engine/executor/slurm"
)

// slurmSettings say how tasks run on a Slurm cluster.
type slurmSettings struct {
	SlurmFolder        string `help:"Folder that this server and every machine of the cluster see under this name." group:"slurm"`
	SlurmPartition     string `help:"Partition of all jobs. Default: the site's." group:"slurm"`
	SlurmAccount       string `help:"Account of all jobs." group:"slurm"`
	SlurmQOS           string `name:"slurm-qos" help:"Quality of service of all jobs." group:"slurm"`
	SlurmConstraint    string `help:"Features that machines must have." group:"slurm"`
	SlurmOptions       string `help:"More options of sbatch, separated by spaces, such as --reservation=course." group:"slurm"`
	SlurmCommandPrefix string `help:"What stands before sbatch, squeue, sacct, scancel and sinfo, such as ssh and a login node." group:"slurm"`
	SlurmContainer     string `help:"What stands before every command on a machine, such as apptainer exec and its options; {root} is the image, and {work}, {inputs} and {temp} are the folders that it must show." group:"slurm"`
}

// slurmProblems lists what is wrong with the settings alone.
func (s *settings) slurmProblems() error {
	if s.Executor != "slurm" {
		return nil
	}
	if s.SlurmFolder == "" {
		return errors.New("--executor slurm needs --slurm-folder, a folder that this server and all machines of the cluster see")
	}
	return s.slurmConfig(nil, credits.Size{}, nil).Check()
}

// slurmConfig is what the settings say. Attempts and images lie in the shared
// folder.
func (s *settings) slurmConfig(key []byte, capacity credits.Size, log *slog.Logger) slurm.Config {
	return slurm.Config{
		Folder: filepath.Join(s.SlurmFolder, "attempts"), Key: key, Log: log, Now: time.Now,
		Prefix: strings.Fields(s.SlurmCommandPrefix), Container: strings.Fields(s.SlurmContainer),
		Partition: s.SlurmPartition, Account: s.SlurmAccount, QOS: s.SlurmQOS, Constraint: s.SlurmConstraint, Options: strings.Fields(s.SlurmOptions),
		VCPU: float64(capacity.VCPU), MemoryBytes: int64(capacity.RAMGB) << 30,
	}
}

// checkExecutor has the cluster run a task that does nothing.
func (s *settings) checkExecutor(ctx context.Context) error {
	if s.Executor != "slurm" {
		return nil
	}
	if err := s.slurmProblems(); err != nil {
		return err
	}
	c := s.slurmConfig(make([]byte, 32), credits.Size{}, slog.New(slog.DiscardHandler))
	c.Folder = filepath.Join(s.SlurmFolder, "doctor-"+strings.ToLower(rand.Text()[:8])) // a server must not take it for its own
	defer os.RemoveAll(c.Folder)
	d, err := slurm.New(ctx, c)
	if err != nil {
		return err
	}
	defer d.Close()
	return executors.Probe(ctx, executors.Driver{Driver: d, Watcher: d, Preparer: d}, c.Folder)
}
