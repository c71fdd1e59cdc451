package executors

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/engine/executor/slurm"
)

// Slurm says how tasks run on a Slurm cluster: as settings of a server, or in a
// file of executors.
type Slurm struct {
	SlurmFolder        string        `json:"folder" help:"Folder that this server and every machine of the cluster see under this name." group:"slurm"`
	SlurmPartition     string        `json:"partition" help:"Partition of all jobs. Default: the site's." group:"slurm"`
	SlurmAccount       string        `json:"account" help:"Account of all jobs." group:"slurm"`
	SlurmQOS           string        `json:"qos" name:"slurm-qos" help:"Quality of service of all jobs." group:"slurm"`
	SlurmConstraint    string        `json:"constraint" help:"Features that machines must have." group:"slurm"`
	SlurmOptions       string        `json:"options" help:"More options of sbatch, separated by spaces, such as --reservation=course." group:"slurm"`
	SlurmCommandPrefix string        `json:"commandPrefix" help:"What stands before sbatch, squeue, sacct, scancel and sinfo, such as ssh and a login node." group:"slurm"`
	SlurmGiveUpAfter   time.Duration `json:"-" default:"24h" help:"How long a task may wait for what the cluster does not have, such as a partition that is down, before its step fails; 0s: for ever. Waiting for a turn is not meant." group:"slurm"`
	SlurmContainer     string        `json:"container" help:"What stands before every command on a machine, such as apptainer exec and its options; {root} is the image, and {work}, {inputs} and {temp} are the folders that it must show." group:"slurm"`
}

// Check says what is wrong with the settings alone.
func (s Slurm) Check() error {
	if s.SlurmFolder == "" {
		return errors.New("--executor slurm needs --slurm-folder, a folder that this server and all machines of the cluster see")
	}
	return s.Config(nil, credits.Size{}, nil).Check()
}

// Config is what the settings say. Attempts and images lie in the shared folder.
func (s Slurm) Config(key []byte, capacity credits.Size, log *slog.Logger) slurm.Config {
	return slurm.Config{
		Folder: filepath.Join(s.SlurmFolder, "attempts"), Key: key, Log: log, Now: time.Now,
		Prefix: strings.Fields(s.SlurmCommandPrefix), Container: strings.Fields(s.SlurmContainer),
		Partition: s.SlurmPartition, Account: s.SlurmAccount, QOS: s.SlurmQOS, Constraint: s.SlurmConstraint, Options: strings.Fields(s.SlurmOptions),
		VCPU: float64(capacity.VCPU), MemoryBytes: int64(capacity.RAMGB) << 30, GiveUpAfter: s.SlurmGiveUpAfter,
	}
}
