package slurm

import (
	"errors"
	"testing"
)

func TestGPUsAreCountedWhateverElseAMachineHas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"(null)": 0, "": 0, "gpu:2": 2, "gpu:a100:4": 4, "gpu:a100:4(S:0-1)": 4, "gpu:a100:2(S:0),gpu:v100:1(S:1,3),shard:8": 3, "shard:gpu:4": 0, "gpu": 0,
	} {
		if got := countGPUs(text); got != want {
			t.Errorf("%q has %d GPUs, want %d", text, got, want)
		}
	}
}

func TestAComplaintThatPassesIsNotFinal(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{
		"sbatch: error: Batch job submission failed: Requested node configuration is not available":     true,
		"sbatch: error: invalid partition specified: nowhere":                                           true,
		"sbatch: error: Batch job submission failed: Unable to contact slurm controller":                false,
		"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation":           false,
		"sbatch: error: Batch job submission failed: Invalid authentication credential":                 false,
		"sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Job violates accounting/QOS policy": false,
	} {
		if got := final(&refusal{"sbatch", said}); got != want {
			t.Errorf("%q: %t", said, got)
		}
	}
	if final(errors.New("sbatch does not answer")) {
		t.Error("silence is final")
	}
}

func TestTheJobThatRunsCountsAmongSeveralOfOneName(t *testing.T) {
	t.Parallel()
	failed, waits, runs := slurmJob{id: "1", state: "FAILED"}, slurmJob{id: "2", state: "PENDING"}, slurmJob{id: "3", state: "RUNNING"}
	for _, tt := range []struct {
		jobs []slurmJob
		want string
	}{{nil, ""}, {[]slurmJob{failed}, "1"}, {[]slurmJob{failed, waits}, "2"}, {[]slurmJob{waits, failed, runs}, "3"}, {[]slurmJob{{id: "4", state: "COMPLETING"}, waits}, "4"}} {
		if j, _ := best(tt.jobs); j.id != tt.want {
			t.Errorf("%v: %s", tt.jobs, j.id)
		}
	}
}

// Attempts of one key differ by their fence, and so do their jobs.
func TestAnAttemptHasAJobNameOfItsOwn(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	k := &cluster{installation: "abcdefgh"}
	for _, of := range [][2]string{{"run_1.a.0.1", "1-x"}, {"run_1.a.0.1", "2-x"}, {"run_1.a.0.2", "1-x"}, {"run_1.a.1.1", "1-x"}} {
		names[k.jobName(of[0], of[1])] = true
	}
	if first := "millrace-abcdefgh-9122a281873e06d5"; len(names) != 4 || !names[first] { // as the previous release calls it
		t.Errorf("%v", names)
	}
}
