package executor_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
)

// Folders are how attempts are told apart on disk: whatever nodes are called, no two keys
// have one.
func TestAKeyHasAFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	keys := map[string]executor.Key{}
	for _, run := range []ids.Run{"run_1", "run_11"} {
		for _, node := range []string{"a", "a.0", "a.0.1", "0", "1.1", "a-0", "a_0"} {
			for shard := range 12 {
				for attempt := range 12 {
					k := executor.Key{Run: run, Node: node, Shard: shard, Attempt: attempt}
					if other, taken := keys[k.Folder()]; taken {
						t.Fatalf("%+v and %+v are both in %s", k, other, k.Folder())
					}
					keys[k.Folder()] = k
				}
			}
		}
	}
}

func TestTheFoldersOfAnAttempt(t *testing.T) {
	t.Parallel()
	got := executor.Spec{Dir: "/data/a", Environment: "/environments/e"}.Places()
	if want := (executor.Places{Work: "/data/a/work", Inputs: "/data/a/in", Temp: "/data/a/tmp", Environment: "/environments/e"}); got != want {
		t.Errorf("%+v", got)
	}
}

// An object is put into place as it is; a folder, a manifest and an address are copied.
func TestWhichInputsAreCopied(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   executor.Input
		want bool
	}{
		"text":          {executor.Input{Path: "a", Text: []byte("s3://x")}, false},
		"an object":     {executor.Input{Path: "a", Object: "teams/t/objects/1"}, false},
		"an address":    {executor.Input{Path: "a", Object: "s3://lab/reads.fq"}, true},
		"a folder here": {executor.Input{Path: "a", Folder: "/code"}, true},
		"a manifest":    {executor.Input{Path: "a", Object: "teams/t/objects/1", Directory: true}, true},
	} {
		if got := tt.in.Copied(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What the platform did comes before what the command made of it.
func TestWhyAnAttemptEnded(t *testing.T) {
	t.Parallel()
	all := executor.Exit{StartFailed: "x", OOM: true, OutOfDisk: true, TimedOut: true, Stopped: true, Abandoned: true, Preempted: true, Signal: 15, Code: 143, Missing: []string{"a"}}
	for _, step := range []struct {
		want  executor.Reason
		clear func(*executor.Exit)
	}{
		{executor.StartFailed, func(e *executor.Exit) { e.StartFailed = "" }},
		{executor.OutOfMemory, func(e *executor.Exit) { e.OOM = false }},
		{executor.OutOfDisk, func(e *executor.Exit) { e.OutOfDisk = false }},
		{executor.TimedOut, func(e *executor.Exit) { e.TimedOut = false }},
		{executor.Cancelled, func(e *executor.Exit) { e.Stopped = false }},
		{executor.Abandoned, func(e *executor.Exit) { e.Abandoned = false }},
		{executor.Preempted, func(e *executor.Exit) { e.Preempted = false }},
		{executor.Signaled, func(e *executor.Exit) { e.Signal = 0 }},
		{executor.ExitedNonZero, func(e *executor.Exit) { e.Code = 0 }},
		{executor.OutputMissing, func(e *executor.Exit) { e.Missing = nil }},
		{executor.ExitedZero, func(*executor.Exit) {}},
	} {
		if got := executor.ReasonOf(&all); got != step.want {
			t.Errorf("%s, want %s", got, step.want)
		}
		step.clear(&all)
	}
}

func TestACommandThatTriesASandboxOfItsOwnIsToldSo(t *testing.T) {
	t.Parallel()
	for log, nested := range map[string]bool{
		"": false, "error: no such file": false, "the bwrapped one": false,
		"a\nbwrap: No permissions to create new namespace\n":                                      true,
		"ERROR  : Failed to create user namespace: user namespace disabled":                       true,
		"unshare: unshare failed: Operation not permitted":                                        true,
		"[0101/000000:FATAL] No usable sandbox! Update your kernel":                               true,
		"FATAL: while loading: could not create user namespace":                                   true,
		"could not open a user namespace: Operation not permitted, and then something followed\n": true,
	} {
		said := executor.ExitMessage("Step align", 3, log)
		if !strings.HasPrefix(said, "Step align exited with status 3") || strings.Contains(said, "Set `image`") != nested {
			t.Errorf("%q: %s", log, said)
		}
	}
}
