package remote_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/remote"
	"github.com/millrace/millrace/internal/store/storetest"
)

// fixture is a driver with its site.
func fixture(t *testing.T) (*drivertest.Fixture, *site, *remote.Files) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "attempts")
	s := newSite(t, storetest.Open(t, storetest.SQLite(t)), folder)
	d := s.open(t)
	return &drivertest.Fixture{Subject: drivertest.Subject{Driver: d}, Folder: folder}, s, remote.NewFiles(d.Known, s.objects, t.TempDir())
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func put(t *testing.T, s *site, key, text string) {
	t.Helper()
	if err := s.objects.Upload(t.Context(), key, strings.NewReader(text), int64(len(text))); err != nil {
		t.Fatal(err)
	}
}

func TestInputsArriveAndOutputsComeBack(t *testing.T) {
	t.Parallel()
	b, s, files := fixture(t)
	put(t, s, "teams/1/reads", "ACGT")
	code := t.TempDir()
	if err := os.MkdirAll(filepath.Join(code, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(code, "bin/tool"), []byte("#!/bin/sh\necho tool\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("bin/tool", filepath.Join(code, "link")); err != nil {
		t.Fatal(err)
	}
	spec := b.Spec(t, `in=../in; cat $in/reads/0/a.fq > copy; $in/code/link >> copy; cat $in/reads.list >> copy; cat $in/far/0/b >> copy
mkdir -p folder/deep; echo x > folder/deep/x; echo y > folder/y; printf '1/4' > "$TMPDIR/millrace-progress"; : > empty; while [ ! -e go ]; do sleep 0.02; done`)
	spec.Inputs = []executor.Input{
		{Path: "reads/0/a.fq", Object: "teams/1/reads", SHA256: hashOf("ACGT")},
		{Path: "reads.list", Text: []byte("list\n")},
		{Path: "code", Folder: code},
		{Path: "far/0/b", Object: "s3://bucket/b"},
	}
	spec.Outputs = []executor.OutputPattern{{Port: "copy", Path: "copy"}, {Port: "folder", Path: "folder", Folder: true}, {Port: "empty", Path: "empty"}}
	fetch := func(_ context.Context, object, file string) error {
		return os.WriteFile(file, []byte("from "+object+"\n"), 0o644)
	}
	for range 2 { // a server that went down does it again
		if err := files.Stage(t.Context(), spec, fetch); err != nil {
			t.Fatal(err)
		}
	}
	h := b.Submit(t, spec)
	drivertest.Eventually(t, func() bool {
		done, total, ok := files.Progress(t.Context(), h)
		return ok && done == 1 && total == 4
	}, func() string { return "no progress; log: " + b.Log(t, h, 0) })
	if err := os.WriteFile(filepath.Join(spec.Work(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	seen := b.End(t, h)
	if seen.Reason != executor.ExitedZero || len(seen.Exit.Outputs) != 3 || seen.Host != "here" {
		t.Fatalf("%+v %+v; log: %s", seen, seen.Exit, b.Log(t, h, 0))
	}
	want := map[string]string{"copy": "ACGTtool\nlist\nfrom s3://bucket/b\n", "folder": "x\ny\n", "empty": ""}
	for _, o := range seen.Exit.Outputs {
		r, err := files.Collect(t.Context(), h, o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || string(text) != want[o.Path] {
			t.Errorf("%s is %q, %v", o.Path, text, err)
		}
		if m, ok := r.(interface{ Manifest() []byte }); o.Folder && (!ok || hashOf(string(m.Manifest())) != o.SHA256) {
			t.Errorf("the manifest of %s is another", o.Path)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := b.Release(t.Context(), executor.NoRun, h); err != nil {
		t.Fatal(err)
	}
	if left, err := s.objects.List(t.Context(), "attempts/", "", 10); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if _, err := s.objects.Size(t.Context(), "teams/1/reads"); err != nil {
		t.Errorf("the team's own file: %v", err)
	}
}

func TestAnInputThatIsAnotherIsNotUsed(t *testing.T) {
	t.Parallel()
	b, s, _ := fixture(t)
	put(t, s, "teams/1/reads", "ACGT")
	spec := b.Spec(t, "echo ran")
	spec.Inputs = []executor.Input{{Path: "a", Object: "teams/1/reads", SHA256: hashOf("TTTT")}}
	seen := b.Do(t, spec)
	if seen.Reason != executor.StartFailed || !strings.Contains(seen.Detail, "not what it was") {
		t.Errorf("%s: %s", seen.Reason, seen.Detail)
	}
}

// The server is away for longer than several reports, and comes back as another
// process would: with what is in the database alone.
func TestWhatCannotBeSaidWaits(t *testing.T) {
	t.Parallel()
	b, s, files := fixture(t)
	spec := b.Spec(t, `echo one; while [ ! -e away ]; do sleep 0.02; done; echo two; echo made > out; exit 0`)
	spec.Outputs = []executor.OutputPattern{{Port: "out", Path: "out"}}
	h := b.Submit(t, spec)
	b.AwaitLog(t, h, "one\n")
	address := s.server.Listener.Addr().String()
	s.server.CloseClientConnections()
	s.server.Listener.Close()
	if err := os.WriteFile(filepath.Join(spec.Work(), "away"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	drivertest.Eventually(t, func() bool { // the command has ended meanwhile
		text, err := os.ReadFile(filepath.Join(spec.Dir, "log"))
		return err == nil && string(text) == "one\ntwo\n"
	}, func() string { return "the command does not go on" })
	if seen, _ := b.Find(t, h); seen.Phase != executor.Running {
		t.Errorf("while nobody hears it, it is %s", seen.Phase)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	again := &http.Server{Handler: s.handler}
	go func() { _ = again.Serve(l) }()
	t.Cleanup(func() { _ = again.Close() })
	seen := b.End(t, h)
	if seen.Reason != executor.ExitedZero || b.Log(t, h, 0) != "one\ntwo\n" {
		t.Errorf("%s %s: %q", seen.Reason, seen.Detail, b.Log(t, h, 0))
	}
	if r, err := files.Collect(t.Context(), h, seen.Exit.Outputs[0]); err != nil {
		t.Error(err)
	} else {
		_ = r.Close()
	}
}

// stranger speaks to a server as a task might that has got hold of something.
type stranger struct {
	t    *testing.T
	site *site
}

func (s stranger) ask(method, path, session, body string) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.site.server.URL+"/attempts/"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+session)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

func TestASessionIsGoodForItsOwnAttemptAlone(t *testing.T) {
	t.Parallel()
	_, s, _ := fixture(t)
	const mine, theirs = "run_1.mine.0.1", "run_2.theirs.0.1"
	put(t, s, "mine", "mine")
	put(t, s, "theirs", "theirs")
	for id, object := range map[string]string{mine: "mine", theirs: "theirs"} {
		a := attempts.Attempt{ID: id, Run: ids.NewRun(), Scope: "another driver's", Fence: "f", About: []byte("{}"), SubmittedAt: time.Now()}
		if err := s.db.AddAttempt(t.Context(), a, attempts.Order{Objects: []string{object}, Task: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	session, other := strings.Repeat("s", 52), strings.Repeat("o", 52)
	begin := func(id, ticketOf, fence, session string) string {
		return `{"version":1,"fence":"` + fence + `","session":"` + session + `","ticket":"` + attempts.Ticket(testKey, ticketOf, fence) + `"}`
	}
	x := stranger{t, s}
	for name, tt := range map[string]struct {
		method, path, session, body string
		want                        int
	}{
		"another's ticket":        {"POST", theirs + "/begin", "", begin(theirs, mine, "f", session), 401},
		"no ticket":               {"POST", theirs + "/begin", "", `{"version":1,"fence":"f","session":"` + session + `"}`, 401},
		"a session to be guessed": {"POST", mine + "/begin", "", begin(mine, mine, "f", "short"), 400},
		"another fence":           {"POST", mine + "/begin", "", begin(mine, mine, "g", session), 410},
		"nothing":                 {"POST", "run_3.x.0.1/begin", "", begin("run_3.x.0.1", "run_3.x.0.1", "f", session), 404},
		"no message":              {"POST", mine + "/begin", "", `{`, 400},
		"another protocol":        {"POST", mine + "/begin", "", strings.Replace(begin(mine, mine, "f", session), `"version":1`, `"version":2`, 1), 410},
	} {
		if got := x.ask(tt.method, tt.path, tt.session, tt.body); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	for _, step := range []struct {
		name, method, path, session, body string
		want                              int
	}{
		{"its own beginning", "POST", mine + "/begin", "", begin(mine, mine, "f", session), 200},
		{"the same, again", "POST", mine + "/begin", "", begin(mine, mine, "f", session), 200},
		{"a ticket that was spent", "POST", mine + "/begin", "", begin(mine, mine, "f", other), 409},
		{"its input", "GET", mine + "/inputs/0", session, "", 200},
		{"one that it has not", "GET", mine + "/inputs/1", session, "", 404},
		{"one before the first", "GET", mine + "/inputs/-1", session, "", 404},
		{"another's input", "GET", theirs + "/inputs/0", session, "", 401},
		{"nobody's session", "GET", theirs + "/inputs/0", "", "", 401},
		{"a report for another", "POST", theirs + "/report", session, `{"exit":{}}`, 401},
		{"what is not even read", "POST", theirs + "/report", session, `{`, 401},
		{"an output of another", "PUT", theirs + "/outputs/0", session, "x", 401},
		{"an output", "PUT", mine + "/outputs/0", session, "x", 200},
		{"the same again", "PUT", mine + "/outputs/0", session, "x", 200},
		{"an output with another name", "PUT", mine + "/outputs/..%2f..%2fteams", session, "x", 404},
		{"the place of an input", "PUT", mine + "/outputs/in-0", session, "x", 404},
		{"too much of a state", "POST", mine + "/report", session, `{"state":"` + strings.Repeat("x", attempts.MaxState) + `"}`, 413},
		{"a log before its beginning", "POST", mine + "/report", session, `{"log":{"offset":-1,"text":"eA=="}}`, 400},
		{"a report", "POST", mine + "/report", session, `{"running":true}`, 200},
		{"the end", "POST", mine + "/report", session, `{"exit":{"fence":"f"}}`, 200},
		{"another end", "POST", mine + "/report", session, `{"exit":{"fence":"f","code":1}}`, 410},
		{"its input after the end", "GET", mine + "/inputs/0", session, "", 410},
		{"an output after the end", "PUT", mine + "/outputs/1", session, "x", 410},
		{"a beginning after the end", "POST", mine + "/begin", "", begin(mine, mine, "f", session), 410},
	} {
		if got := x.ask(step.method, step.path, step.session, step.body); got != step.want {
			t.Errorf("%s: %d, want %d", step.name, got, step.want)
		}
	}
}

func TestAJobThatNobodyWantsIsEnded(t *testing.T) {
	t.Parallel()
	b, s, _ := fixture(t)
	if _, err := s.Start(t.Context(), reconciler.Job{Name: "millrace-orphan", ID: "run_1.orphan.0.1", Fence: "f"}); err != nil {
		t.Fatal(err)
	}
	b.Do(t, b.Spec(t, "true"))
	drivertest.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.jobs["millrace-orphan"] == nil
	}, func() string { return "the orphan is still there" })
}

func TestAnAttemptIsStoppedBeforeItBegins(t *testing.T) {
	t.Parallel()
	b, s, _ := fixture(t)
	s.server.Close() // so that no shim is heard
	h := b.Submit(t, b.Spec(t, "echo ran"))
	if err := b.Stop(t.Context(), executor.NoRun, h, time.Minute); err != nil {
		t.Fatal(err)
	}
	if seen := b.End(t, h); seen.Reason != executor.Cancelled {
		t.Errorf("it is %s", seen.Reason)
	}
}
