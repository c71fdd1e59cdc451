package slurm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/quotas"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

const (
	leastMemory = 64 << 20        // without any, Slurm takes a machine's whole memory
	slackMemory = 64 << 20        // for the shim, so that it can tell of a command that needs too much
	slackTime   = 2 * time.Minute // beyond what the shim itself holds
)

// refusalOf says whether what sbatch complains of is final, or may pass.
func refusalOf(err error) error {
	switch {
	case final(err):
		return fault.Invalid("%s", err)
	case isRefusal(err):
		return fault.Conflict("%s", err)
	}
	return err
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// impossible are complaints of sbatch's that do not pass by themselves.
var impossible = []string{
	"requested node configuration is not available", "memory specification can not be satisfied", "more processors requested than permitted",
	"requested time limit is invalid", "node count specification invalid", "invalid partition", "invalid account", "invalid qos", "invalid feature",
	"invalid generic resource", "invalid constraint", "unrecognized option", "invalid option", "group not permitted", "access/permission denied",
	"invalid trackable resource", "invalid --",
}

func final(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return false
	}
	said := strings.ToLower(r.said)
	return slices.ContainsFunc(impossible, func(words string) bool { return strings.Contains(said, words) })
}

// options are what sbatch is told of an attempt. Nothing of them was written by
// people, but what a definition may call its nodes, and plain names.
func (c *cluster) options(j reconciler.Job, dir job.Folder) []string {
	list := []string{
		"--job-name=" + j.Name, "--comment=" + comment(j), "--no-requeue", c.export(), "--nodes=1", "--ntasks=1",
		"--cpus-per-task=" + strconv.Itoa(max(1, int(math.Ceil(j.VCPU)))),
		"--mem=" + strconv.FormatInt((max(j.MemoryBytes, leastMemory)+slackMemory)>>20, 10) + "M",
		"--chdir=" + string(dir), "--output=" + string(dir) + "/slurm.out", "--open-mode=append",
	}
	if j.Timeout > 0 {
		list = append(list, "--time="+strconv.Itoa(int(math.Ceil((j.Timeout+slackTime).Minutes()))))
	}
	if j.GPU > 0 {
		list = append(list, "--gres=gpu:"+strconv.Itoa(j.GPU))
	}
	return append(list, accounting(j.Owner)...)
}

// accounting are the options of a job's team. They come from the database, and from a
// folder that others may write to: what is no plain name is left out.
func accounting(o executor.Owner) (list []string) {
	for _, each := range []struct{ option, name string }{{"--account=", o.Account}, {"--qos=", o.QOS}, {"--wckey=", o.WCKey}} {
		if quotas.SlurmName(each.name) {
			list = append(list, each.option+each.name)
		}
	}
	return list
}

// comment says whose job it is, for the site: plain characters, and not many.
func comment(j reconciler.Job) string {
	text := j.ID
	if o := j.Owner; o.Team != "" {
		text += ",team=" + plain(o.TeamName) + ":" + plain(o.Team) + ",person=" + plain(o.PersonName) + ":" + plain(o.Person)
	}
	return text
}

const longestWord = 40

// plain is a text without what is not an ASCII letter, a digit or one of a few marks.
func plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		if b.Len() == longestWord {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '@':
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// export has Slurm give a job no environment of anybody's: what its command gets
// is in the order. With NONE, and in older versions with everything but a file,
// a login shell reads the user's files before every task, which takes several
// times as long as starting it. A file of ours may be none that a login node sees.
func (c *cluster) export() string {
	if len(c.config.Prefix) > 0 {
		return "--export=NIL"
	}
	return "--export-file=" + c.config.Folder + environmentFile
}

// environmentFile is all that a shim needs to find of an environment.
const environmentFile = "/.environment"

func writeEnvironment(folder string) error {
	path := folder + environmentFile
	part := path + "." + rand.Text()
	if err := os.WriteFile(part, []byte("PATH=/usr/local/bin:/usr/bin:/bin\x00"), 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// receiptFile has the number of a job, for people.
const receiptFile = "/slurm-job"

func writeReceipt(dir job.Folder, number string) {
	_ = rawfile.Write(string(dir)+receiptFile, unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK, []byte(number+"\n"))
}

// script is what Slurm runs: the site's options, and the shim in its own place.
func (c *cluster) script(dir job.Folder) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for _, option := range c.config.site() {
		fmt.Fprintf(&b, "#SBATCH %s\n", option)
	}
	b.WriteString("exec")
	for _, word := range job.Command(c.shim, dir) {
		fmt.Fprintf(&b, " '%s'", word)
	}
	b.WriteString("\n")
	return b.String()
}
