package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// client runs Slurm's own programs. What it gives them as arguments is made of
// plain words, since a prefix such as ssh has a shell read them once more.
type client struct {
	prefix []string
	env    []string
}

// patience bounds one call: a controller that is busy answers late.
const patience = 60 * time.Second

// needed are the variables that Slurm's programs, or what stands before them,
// may need. Others, such as our own settings, are none of their business.
var needed = []string{"PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "KRB5CCNAME", "SLURM_CONF", "SLURM_CONF_SERVER"}

func newClient(prefix []string) client {
	c := client{prefix: prefix, env: []string{"LC_ALL=C", "SLURM_TIME_FORMAT=%s", "TZ=UTC"}}
	for _, name := range needed {
		if value, ok := os.LookupEnv(name); ok {
			c.env = append(c.env, name+"="+value)
		}
	}
	return c
}

// refusal is a program of Slurm's that ended with a complaint.
type refusal struct{ program, said string }

func (r *refusal) Error() string { return r.program + ": " + r.said }

// run returns what a program has printed.
func (c client) run(ctx context.Context, stdin string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	argv := append(append(append([]string{}, c.prefix...), program), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, said bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.env, strings.NewReader(stdin), &out, &said
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s does not answer: %w", program, ctx.Err())
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", &refusal{program, complaint(said.String())}
	}
	return out.String(), err
}

// complaint is what a program has said, as text that can be kept: a login node may
// print anything.
func complaint(said string) string {
	said = strings.TrimSpace(strings.ReplaceAll(said, "\x00", ""))
	return strings.ToValidUTF8(said[:min(len(said), 1000)], "")
}

// slurmJob is a job as Slurm knows it.
type slurmJob struct {
	id, name, state, node, reason string
	start, end                    time.Time // as the controller's clock saw it; zero if unknown
}

// squeueFormat is separated by commas: a job of ours is on one machine, whose
// name has none, and the reason comes last.
const squeueFormat = "%A,%j,%T,%N,%S,%e,%r"

// jobs are all of the user's that Slurm has in memory, by name. There may be
// several of one name.
func (c client) jobs(ctx context.Context, prefix string) (map[string][]slurmJob, error) {
	text, err := c.run(ctx, "", "squeue", "--me", "--noheader", "--states=all", "--format="+squeueFormat)
	if err != nil {
		return nil, err
	}
	all := map[string][]slurmJob{}
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ",", 7)
		if len(f) == 7 && strings.HasPrefix(f[1], prefix) {
			all[f[1]] = append(all[f[1]], slurmJob{f[0], f[1], f[2], f[3], f[6], seconds(f[4]), seconds(f[5])})
		}
	}
	return all, nil
}

const sacctFormat = "JobID,JobName,State,NodeList,Start,End"

// ended are jobs that have left the controller's memory, as far as the site
// keeps accounts of them.
func (c client) ended(ctx context.Context, names []string, since time.Time) (map[string]slurmJob, error) {
	args := []string{
		"--noheader", "--parsable2", "--allocations", "--name=" + strings.Join(names, ","), "--format=" + sacctFormat,
		"--starttime=" + since.UTC().Format("2006-01-02T15:04:05"),
	}
	text, err := c.run(ctx, "", "sacct", args...)
	if err != nil {
		// No database: perhaps a text file, which sacct can read as well. Its times are of
		// the controller's zone and may come hours off; how long a job took is right.
		text, err = c.run(ctx, "", "sacct", "--completion", "--noheader", "--parsable2", "--name="+strings.Join(names, ","), "--format="+sacctFormat)
	}
	if err != nil {
		return nil, err
	}
	all := map[string]slurmJob{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) == 6 {
			state, _, _ := strings.Cut(f[2], " ") // "CANCELLED by 1000"
			all[f[1]] = slurmJob{id: f[0], name: f[1], state: state, node: f[3], start: seconds(f[4]), end: seconds(f[5])}
		}
	}
	return all, nil
}

func (c client) submit(ctx context.Context, script string, options []string) (id string, err error) {
	text, err := c.run(ctx, script, "sbatch", append([]string{"--parsable"}, options...)...)
	id, _, _ = strings.Cut(strings.TrimSpace(text), ";") // the cluster's name may follow
	return id, err
}

// cancel acts on jobs by their name. Of one that is not there Slurm has nothing
// to complain.
func (c client) cancel(ctx context.Context, name string, options ...string) error {
	_, err := c.run(ctx, "", "scancel", append([]string{"--quiet", "--name=" + name}, options...)...)
	return err
}

// machines is what the cluster has in all.
func (c client) machines(ctx context.Context, partition string) (vcpu float64, memory int64, gpus int, err error) {
	args := []string{"--noheader", "--exact", "--Node", "--format=%N,%c,%m,%G"}
	if partition != "" {
		args = append(args, "--partition="+partition)
	}
	text, err := c.run(ctx, "", "sinfo", args...)
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ",", 4)
		if len(f) < 4 || seen[f[0]] { // once for each partition that it is in
			continue
		}
		seen[f[0]] = true
		cpus, _ := strconv.ParseFloat(f[1], 64)
		mb, _ := strconv.ParseInt(f[2], 10, 64)
		vcpu, memory, gpus = vcpu+cpus, memory+mb<<20, gpus+countGPUs(f[3])
	}
	return vcpu, memory, gpus, err
}

// countGPUs reads a node's generic resources, such as gpu:a100:4(S:0-1),shard:8.
func countGPUs(text string) (n int) {
	depth, word := 0, ""
	count := func() {
		f := strings.Split(word, ":")
		if number, err := strconv.Atoi(f[len(f)-1]); err == nil && f[0] == "gpu" {
			n += number
		}
		word = ""
	}
	for _, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			count()
		case depth == 0:
			word += string(r)
		}
	}
	count()
	return n
}

// seconds reads a time as SLURM_TIME_FORMAT has it; over ssh it may come
// otherwise, and is not known then.
func seconds(text string) time.Time {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return time.Unix(n, 0)
	}
	return time.Time{}
}
