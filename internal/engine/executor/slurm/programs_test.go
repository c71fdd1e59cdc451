package slurm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// saying is a client of programs that are all one script.
func saying(t *testing.T, script string) client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prefix")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return newClient([]string{"/bin/sh", file})
}

func TestJobsAreReadFromSqueue(t *testing.T) {
	t.Parallel()
	c := saying(t, `cat <<'END'
12,millrace-i-aa,RUNNING,node7,1700000000,1700003600,None
13,millrace-i-aa,PENDING,,N/A,N/A,(Nodes required for job are DOWN, DRAINED)
14,somebody's, own,RUNNING,node7,1,2,None
15,millrace-j-aa,RUNNING,node7,1,2,None

millrace-i-bb
END
`)
	all, err := c.jobs(t.Context(), "millrace-i-")
	if err != nil || len(all) != 1 || len(all["millrace-i-aa"]) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	one, two := all["millrace-i-aa"][0], all["millrace-i-aa"][1]
	if one != (slurmJob{"12", "millrace-i-aa", "RUNNING", "node7", "None", time.Unix(1_700_000_000, 0), time.Unix(1_700_003_600, 0)}) {
		t.Errorf("%+v", one)
	}
	if two.reason != "(Nodes required for job are DOWN, DRAINED)" || !two.start.IsZero() || two.node != "" || !two.waits() {
		t.Errorf("%+v", two)
	}
}

// Without a database sacct may still read a file.
func TestJobsThatHaveEndedAreReadFromSacct(t *testing.T) {
	t.Parallel()
	const rows = `printf '12|a|CANCELLED by 1000|None assigned|Unknown|1700000000\n13|b|NODE_FAIL|node7|1700000000|1700000060\nshort|c\n'`
	for name, script := range map[string]string{
		"a database": rows,
		"a file":     `case "$*" in *--completion*) ;; *) echo no database >&2; exit 1;; esac; ` + rows,
	} {
		all, err := saying(t, script).ended(t.Context(), []string{"a", "b", "c"}, time.Unix(0, 0))
		if err != nil || len(all) != 2 || all["a"].state != "CANCELLED" || !all["a"].start.IsZero() || all["b"].node != "node7" || all["b"].end.Sub(all["b"].start) != time.Minute {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
	if _, err := saying(t, "echo nothing at all >&2; exit 1").ended(t.Context(), []string{"a"}, time.Unix(0, 0)); !isRefusal(err) || !strings.Contains(err.Error(), "sacct: nothing at all") {
		t.Errorf("%v", err)
	}
}

func TestAJobIsSubmitted(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{"12": "12", "12;cluster": "12", "": ""} {
		c := saying(t, `[ "$1 $2 $3" = "sbatch --parsable --nodes=1" ] && [ "$(cat)" = "exec shim" ] && echo '`+said+"'\n")
		if id, err := c.submit(t.Context(), "exec shim\n", []string{"--nodes=1"}); err != nil || id != want {
			t.Errorf("%q: %q, %v", said, id, err)
		}
	}
}

// What programs complain of is shown to people and kept, so that it is text, and not all
// of what a login node may print.
func TestAComplaintIsText(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"cut within a letter": `i=0; while [ $i -lt 100 ]; do printf 'Universität Süd ' >&2; i=$((i+1)); done; printf x; exit 1`,
		"of another time":     `printf 'Universit\344t' >&2; exit 1`,
		"with a NUL":          `printf 'a\000b' >&2; exit 1`,
	} {
		for offset := range 3 {
			_, err := saying(t, "printf '%."+string(rune('0'+offset))+"s' xxx >&2; "+script).run(t.Context(), "", "squeue")
			if !isRefusal(err) || !utf8.ValidString(err.Error()) || strings.ContainsRune(err.Error(), 0) || len(err.Error()) > 1100 {
				t.Errorf("%s: %.60q", name, err)
			}
		}
	}
}

func TestAProgramThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := saying(t, "echo 12").run(ctx, "", "squeue"); err == nil || isRefusal(err) || !strings.Contains(err.Error(), "squeue does not answer") {
		t.Errorf("%v", err)
	}
	if _, err := (client{prefix: []string{"/no/such/ssh"}}).run(t.Context(), "", "squeue"); err == nil || isRefusal(err) {
		t.Errorf("a prefix that is not there is Slurm's word: %v", err)
	}
}

// Settings of the server are none of Slurm's business.
func TestWhichVariablesSlurmSees(t *testing.T) {
	t.Setenv("MILLRACE_DATABASE", "postgres://secret")
	t.Setenv("SLURM_CONF", "/etc/slurm.conf")
	t.Setenv("SBATCH_PARTITION", "theirs")
	text, err := saying(t, "env").run(t.Context(), "", "squeue")
	if err != nil || strings.Contains(text, "secret") || strings.Contains(text, "SBATCH_") || !strings.Contains(text, "SLURM_CONF=/etc/slurm.conf") || !strings.Contains(text, "LC_ALL=C") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWhatAClusterHas(t *testing.T) {
	t.Parallel()
	c := saying(t, `printf 'n1,8,1024,gpu:a100:2(S:0-1)\nn1,8,1024,gpu:a100:2(S:0-1)\nn2,4,512,(null)\nodd\nn3,?,?,\n'`)
	vcpu, memory, gpus, err := c.machines(t.Context(), "")
	if err != nil || vcpu != 12 || memory != 1536<<20 || gpus != 2 {
		t.Errorf("%v, %d, %d, %v", vcpu, memory, gpus, err)
	}
	if _, _, _, err := saying(t, `case "$*" in *--partition=gpu*) exit 1;; esac`).machines(t.Context(), "gpu"); !isRefusal(err) {
		t.Error(err)
	}
}
