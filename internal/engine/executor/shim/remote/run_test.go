package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// keeper is a server that keeps what is reported. It takes a piece of the log that
// begins where it has come to, and no other.
type keeper struct {
	log   strings.Builder
	marks []Mark
	exits []shim.Exit
	said  int
}

func (k *keeper) take(t *testing.T, body string) attempts.Answer {
	t.Helper()
	var r attempts.Report
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Error(err)
	}
	k.said++
	if r.Log != nil && r.Log.Offset == int64(k.log.Len()) {
		if len(r.Log.Text) > attempts.MaxLog {
			t.Errorf("%d bytes at once", len(r.Log.Text))
		}
		k.log.Write(r.Log.Text)
		var marks []Mark
		if err := json.Unmarshal(r.Log.Marks, &marks); err != nil {
			t.Error(err)
		}
		k.marks = append(k.marks, marks...)
	}
	if r.Exit != nil {
		var e shim.Exit
		if err := json.Unmarshal(r.Exit, &e); err != nil {
			t.Error(err)
		}
		k.exits = append(k.exits, e)
	}
	return attempts.Answer{LogSize: int64(k.log.Len())}
}

// ended is an attempt whose command has written a log.
func ended(t *testing.T, s *server, log, marks string) *runner {
	t.Helper()
	dir := t.TempDir()
	folder := shim.Folder(dir)
	if err := errors.Join(os.WriteFile(folder.Log(), []byte(log), 0o600), os.WriteFile(folder.Log()+".marks", []byte(marks), 0o600)); err != nil {
		t.Fatal(err)
	}
	return &runner{client: s.client, task: Task{Launch: shim.Launch{Folder: dir, Outputs: []shim.OutputPattern{{Port: "a"}, {Port: "b"}}}}, now: make(chan struct{}, 1)}
}

// The end is said last, with all of the log before, in pieces that a server takes,
// whatever answers are lost on the way.
func TestAnAttemptEndsWithItsWholeLog(t *testing.T) {
	t.Parallel()
	log := strings.Repeat("0123456789abcde\n", attempts.MaxLog/16*2) + "the end"
	second := int64(attempts.MaxLog)
	marks := fmt.Sprintf("0 5 1\n%d 6 2\n%d 7 1\n", second, second+100)
	var k keeper
	s := answering(t, func(w http.ResponseWriter, _ *http.Request, body string) {
		answer := k.take(t, body)
		if k.said == 2 {
			panic(http.ErrAbortHandler)
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	if err := ended(t, s, log, marks).deliver(shim.Exit{Code: 3, LogBytes: int64(len(log))}); err != nil {
		t.Fatal(err)
	}
	if got := k.log.String(); got != log {
		t.Errorf("%d bytes of %d", len(got), len(log))
	}
	if len(k.exits) != 1 || k.exits[0].Code != 3 {
		t.Errorf("%+v", k.exits)
	}
	// A piece has the mark that its first byte is under, and no mark of what follows.
	want := []Mark{{0, 5, false}, {second, 6, true}, {second + 100, 7, false}, {second + 100, 7, false}}
	if !slices.Equal(k.marks, want) {
		t.Errorf("%+v", k.marks)
	}
}

// What is said of the log is not there to be read: the end is said all the same.
func TestAnAttemptEndsWithoutALogThatIsGone(t *testing.T) {
	t.Parallel()
	var k keeper
	s := answering(t, func(w http.ResponseWriter, _ *http.Request, body string) {
		_ = json.NewEncoder(w).Encode(k.take(t, body))
	})
	r := ended(t, s, "", "")
	if err := errors.Join(os.Remove(shim.Folder(r.task.Launch.Folder).Log()), r.deliver(shim.Exit{LogBytes: 10})); err != nil || len(k.exits) != 1 {
		t.Errorf("%v, %+v", err, k.exits)
	}
}

func TestHowAServerTakesTheEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		ok     bool
	}{"taken": {200, true}, "heard before": {410, true}, "another's": {401, false}, "too large": {413, false}} {
		s := answering(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
			if tt.status != http.StatusOK {
				no(w, tt.status, "no")
				return
			}
			_, _ = io.WriteString(w, "{}")
		})
		if err := ended(t, s, "", "").deliver(shim.Exit{}); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
		if asked, _ := s.questions(); len(asked) != 1 {
			t.Errorf("%s: %q", name, asked)
		}
	}
}

// More outputs than a server takes are none: the attempt has failed, and says so.
func TestAListOfOutputsThatIsTooLong(t *testing.T) {
	t.Parallel()
	var k keeper
	s := answering(t, func(w http.ResponseWriter, _ *http.Request, body string) {
		_ = json.NewEncoder(w).Encode(k.take(t, body))
	})
	e := shim.Exit{Outputs: []shim.Output{{Port: "a", Path: strings.Repeat("x", attempts.MaxExit)}}}
	if err := ended(t, s, "", "").deliver(e); err != nil {
		t.Fatal(err)
	}
	if len(k.exits) != 1 || k.exits[0].Outputs != nil || k.exits[0].Refused != "the list of outputs is too long" || !slices.Equal(k.exits[0].Missing, []string{"a", "b"}) {
		t.Errorf("%.300v", k.exits)
	}
}

func TestWhatIsReportedOfACommand(t *testing.T) {
	t.Parallel()
	answer := attempts.Answer{Renewals: 3}
	s := answering(t, func(w http.ResponseWriter, _ *http.Request, _ string) { _ = json.NewEncoder(w).Encode(answer) })
	r := ended(t, s, "", "")
	r.state, r.running = State{Host: "node7", Staging: true}, true
	tmp := filepath.Join(r.task.Launch.Folder, shim.TempFolder)
	if err := errors.Join(os.Mkdir(tmp, 0o755), os.WriteFile(filepath.Join(tmp, ProgressFile), []byte("3/10\n"+strings.Repeat("x", 100)), 0o644)); err != nil {
		t.Fatal(err)
	}
	stopped := false
	r.unwanted = func() { stopped = true }
	if err := r.report(t.Context()); err != nil || stopped || r.told.Renewals != 3 {
		t.Errorf("%v, stopped: %v, %+v", err, stopped, r.told)
	}
	_, got := s.questions()
	var said attempts.Report
	var state State
	if err := errors.Join(json.Unmarshal([]byte(got["/report"]), &said), json.Unmarshal(said.State, &state)); err != nil {
		t.Fatal(err)
	}
	if !said.Running || said.Log != nil || state.Host != "node7" || !state.Staging || len(state.Progress) != 64 || !strings.HasPrefix(state.Progress, "3/10\n") {
		t.Errorf("%+v, %+v", said, state)
	}
	// A command may put anything there: what leads elsewhere is not read.
	if err := errors.Join(os.Remove(filepath.Join(tmp, ProgressFile)), os.Symlink("/etc/hostname", filepath.Join(tmp, ProgressFile))); err != nil {
		t.Fatal(err)
	}
	if text := r.progress(); text != "" {
		t.Errorf("%q", text)
	}
	answer = attempts.Answer{Stop: true} // before there is a command, inputs are not wanted any more
	if err := r.report(t.Context()); err != nil || !stopped {
		t.Errorf("%v, stopped: %v", err, stopped)
	}
}

func TestWhichVariablesACommandGets(t *testing.T) {
	t.Parallel()
	l := shim.Launch{Env: []string{"PATH=/own", "EMPTY=", "A=1=2"}}
	addVariables(&l, []string{"PATH=/image", "EMPTY=image", "A=3", "LANG=C"})
	addVariables(&l, []string{"LANG=de", "HOME=/tmp"})
	if want := []string{"PATH=/own", "EMPTY=", "A=1=2", "LANG=C", "HOME=/tmp"}; !slices.Equal(l.Env, want) {
		t.Errorf("%q", l.Env)
	}
	for variable, ours := range map[string]bool{
		"MILLRACE_ATTEMPT_TICKET=x": true, "KUBERNETES_SERVICE_HOST=10.0.0.1": true, "HOSTNAME=pod": true, "HOME=/root": true, "TMPDIR=/x": true, "USER=root": true,
		"PATH=/bin": false, "LANG=MILLRACE_": false, "HOMEBREW=1": false, "NO_EQUALS": false,
	} {
		if isOurs(variable) != ours {
			t.Error(variable)
		}
	}
}

// A machine that is emptied does not wait until large inputs are there.
func TestWhatEndsAnAttemptWhoseInputsAreFetched(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(*runner)
		want shim.Exit
	}{
		"the machine": {(*runner).preempt, shim.Exit{Preempted: true}},
		"the server":  {func(r *runner) { r.obey(attempts.Answer{Stop: true}) }, shim.Exit{Stopped: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 100)
			s := answering(t, func(_ http.ResponseWriter, r *http.Request, _ string) {
				asked <- struct{}{}
				<-r.Context().Done()
			})
			task := staging(t, Input{Path: "large", Object: 1})
			task.Launch.Argv = []string{"/bin/sh", "-c", "echo ran"}
			r := &runner{client: s.client, task: task, now: make(chan struct{}, 1)}
			ended := make(chan shim.Exit)
			go func() { ended <- r.run(t.Context()) }()
			<-asked
			r.mu.Lock()
			tt.end(r)
			r.mu.Unlock()
			e := <-ended
			if e.Preempted != tt.want.Preempted || e.Stopped != tt.want.Stopped || e.StartFailed != "" || e.LogBytes != 0 {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestAMachineThatIsEmptiedBeforeAnythingIsFetched(t *testing.T) {
	t.Parallel()
	s := answering(t, func(http.ResponseWriter, *http.Request, string) { t.Error("something is fetched") })
	r := &runner{client: s.client, task: staging(t, Input{Path: "large", Object: 1}), now: make(chan struct{}, 1)}
	r.preempt()
	if e := r.run(t.Context()); !e.Preempted || e.StartFailed != "" {
		t.Errorf("%+v", e)
	}
}

// TestAnswersUnderAnOlderRunFenceAreIgnored checks that only the server which has the run
// can stop or renew the attempt.
func TestAnswersUnderAnOlderRunFenceAreIgnored(t *testing.T) {
	t.Parallel()
	var answer attempts.Answer
	s := answering(t, func(w http.ResponseWriter, _ *http.Request, _ string) { _ = json.NewEncoder(w).Encode(answer) })
	r := ended(t, s, "", "")
	stopped := false
	r.unwanted = func() { stopped = true }
	for _, tt := range []struct {
		answer   attempts.Answer
		renewals int64
		stopped  bool
	}{
		{attempts.Answer{RunFence: 2, Renewals: 1}, 1, false},
		{attempts.Answer{RunFence: 1, Renewals: 2, Stop: true}, 1, false},
		{attempts.Answer{Renewals: 3}, 3, false}, // of an earlier release
		{attempts.Answer{RunFence: 1, Renewals: 4, Stop: true}, 3, false},
		{attempts.Answer{RunFence: 3, Renewals: 5, Stop: true}, 5, true},
	} {
		answer = tt.answer
		if err := r.report(t.Context()); err != nil || stopped != tt.stopped || r.told.Renewals != tt.renewals {
			t.Errorf("%+v: stopped: %v, %+v, %v", tt.answer, stopped, r.told, err)
		}
	}
}
