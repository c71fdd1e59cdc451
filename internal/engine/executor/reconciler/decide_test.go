package reconciler

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// situation is what is known of an attempt when it is judged; times are ages.
type situation struct {
	began, heard, stopping time.Duration // 0: it was not
	missing                time.Duration // since when its job is not there
	unknown                bool          // the cluster has no job of it
	unasked                bool          // the cluster did not answer
	starting               bool
	tries                  int
	seen                   JobStatus
	failing                time.Duration
	submitted              time.Duration
	exit                   *executor.Exit
	said                   time.Duration // since when the shim has said how it ended
	limit                  time.Duration // of the task
	accounts               bool          // the cluster keeps them
	unseen                 bool          // no server saw it before it ended
	signalled              time.Duration // since when it was told to stop
	before                 time.Duration // its grace then
	sameMachine            bool          // tasks run on the server's own
}

const (
	lag       = 30 * time.Second
	imageWait = 5 * time.Minute
	giveUp    = time.Hour
	grace     = 10 * time.Second
)

// judged is what follows from a situation.
func judged(t *testing.T, s situation) verdict {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	ago := func(d time.Duration) time.Time {
		if d == 0 {
			return time.Time{}
		}
		return now.Add(-d)
	}
	d := &Driver{config: Config{Now: func() time.Time { return now }, Lag: lag, ImageWait: imageWait, GiveUpAfter: giveUp, Idempotent: !s.accounts, SameMachine: s.sameMachine, Words: Words{Cluster: "Slurm", NoProgram: func(j Job) string { return "set `interpreter`: there is no " + j.Interpreter }, SiteLimit: "set `timeoutSeconds`"}}}
	if s.accounts {
		d.accounts = accounting{}
	}
	a := &attempt{
		Attempt: Attempt{
			Job: Job{Fence: "f", Timeout: s.limit, Interpreter: "awk"}, SubmittedAt: ago(max(s.submitted, 1)), BlockedAt: ago(max(s.submitted, 1)), BeganAt: ago(s.began), RunningAt: ago(s.began), HeardAt: ago(s.heard),
			EndedAt: ago(s.said), Stopping: s.stopping > 0, Grace: grace,
		},
		asOf: now, signalled: ago(s.signalled), signalledGrace: max(s.before, grace), seen: s.seen, known: !s.unknown, tries: s.tries, starting: s.starting, missing: ago(s.missing), failing: ago(s.failing), stopped: ago(s.stopping),
	}
	if s.signalled == 0 {
		a.signalled = now
	}
	if !s.unseen {
		a.pendingAt = ago(s.submitted + 1)
	}
	if s.exit != nil {
		text, err := json.Marshal(s.exit)
		if err != nil {
			t.Fatal(err)
		}
		a.exit = text
	}
	return d.verdict(a, !s.unasked)
}

// Nothing is concluded without a reason, and nothing is started twice that may have
// begun.
func TestWhatFollowsFromWhatIsKnown(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	waits := func(r executor.Reason) JobStatus {
		return JobStatus{Waits: true, Blocked: r == executor.Unschedulable, Reason: r, Detail: "why"}
	}
	over := func(r executor.Reason) JobStatus {
		return JobStatus{Ended: true, Silent: r == executor.OutOfMemory, Reason: r, Detail: "why"}
	}
	for name, tt := range map[string]struct {
		in         situation
		phase      executor.Phase // empty: it goes on
		reason     executor.Reason
		words      string
		end, start bool
	}{
		"it runs":                                {in: situation{began: hour, heard: 1, tries: 1}},
		"it waits for others":                    {in: situation{seen: waits(executor.Queued), submitted: giveUp - 1, tries: 1}},
		"it has waited too long":                 {in: situation{seen: waits(executor.Unschedulable), submitted: giveUp, tries: 1}, phase: executor.Ended, reason: executor.StartFailed, words: "could not start it for 1h0m0s: why", end: true},
		"its image is being fetched":             {in: situation{seen: waits(executor.Starting), submitted: 2 * giveUp, tries: 1}},
		"its image cannot be had yet":            {in: situation{seen: waits(executor.ImageUnavailable), failing: imageWait - 1, tries: 1}},
		"its image cannot be had":                {in: situation{seen: waits(executor.ImageUnavailable), failing: imageWait, tries: 1}, phase: executor.Ended, reason: executor.ImageUnavailable, words: "why", end: true},
		"nobody has started it":                  {in: situation{unknown: true}, start: true},
		"it is being started":                    {in: situation{unknown: true, starting: true}},
		"the cluster does not answer":            {in: situation{unknown: true, unasked: true, missing: hour, tries: 1}},
		"not listed for a moment":                {in: situation{unknown: true, missing: lag - 1, tries: 1}},
		"the cluster forgot it before it began":  {in: situation{unknown: true, missing: lag, tries: maxStarts - 1}, start: true},
		"and forgot it again and again":          {in: situation{unknown: true, missing: lag, tries: maxStarts}, phase: executor.Gone, reason: executor.EngineForgot, words: "before it began", end: true},
		"it began, and is not there":             {in: situation{unknown: true, began: hour, missing: lag, tries: 1}, phase: executor.Gone, reason: executor.Lost, words: "its shim is silent", end: true},
		"it began, and another server started":   {in: situation{unknown: true, began: hour, missing: lag}, phase: executor.Gone, reason: executor.Lost, end: true},
		"it is not there, and speaks":            {in: situation{unknown: true, began: hour, heard: lag - 1, missing: hour, tries: 1}},
		"its pod has ended, and a word may come": {in: situation{seen: over(executor.Lost), began: hour, missing: lag - 1, tries: 1}},
		"its pod has ended without a word":       {in: situation{seen: over(executor.Lost), began: hour, missing: lag, tries: 1}, phase: executor.Gone, reason: executor.Lost, end: true},
		"its pod ended before it began":          {in: situation{seen: over(executor.Lost), missing: lag, tries: 1}, phase: executor.Ended, reason: executor.StartFailed, words: "before the task began: why", end: true},
		"no server answered its shim":            {in: situation{seen: over(executor.NeverStarted), missing: lag, tries: 1}, phase: executor.Gone, reason: executor.Lost, end: true},
		"nobody may start it any more":           {in: situation{seen: JobStatus{Ended: true, Silent: true, Never: true, Detail: "why"}, tries: 1}, phase: executor.Gone, reason: executor.NeverStarted, words: "why", end: true},
		"there was no space to start it":         {in: situation{seen: JobStatus{Ended: true, Silent: true, Reason: executor.NoSpace, Detail: "why"}, tries: 1}, phase: executor.Ended, reason: executor.NoSpace, words: "why", end: true},
		"preempted on the server's own machine":  {in: situation{began: hour, said: 1, sameMachine: true, exit: &executor.Exit{Fence: "f", Code: 143, Signal: 15, Preempted: true}, tries: 1}, phase: executor.Ended, reason: executor.Preempted},
		"its memory was not enough":              {in: situation{seen: over(executor.OutOfMemory), began: hour, missing: 1, tries: 1}, phase: executor.Ended, reason: executor.OutOfMemory, end: true},
		"its machine is gone":                    {in: situation{seen: over(executor.NodeLost), began: hour, missing: lag, tries: 1}, phase: executor.Gone, reason: executor.NodeLost, end: true},
		"evicted":                                {in: situation{seen: over(executor.Preempted), began: hour, missing: lag, tries: 1}, phase: executor.Ended, reason: executor.Preempted, end: true},
		"stopped before it began":                {in: situation{seen: waits(executor.Queued), stopping: 1, tries: 1}, phase: executor.Ended, reason: executor.Cancelled, end: true},
		"stopped before anybody knows":           {in: situation{unknown: true, unasked: true, stopping: 1}, phase: executor.Ended, reason: executor.Cancelled, end: true},
		"stopped, and takes its time":            {in: situation{began: hour, heard: 1, stopping: grace + stopHard, tries: 1}},
		"stopped, and does not end":              {in: situation{began: hour, heard: 1, stopping: grace + stopHard + 1, tries: 1}, end: true},
		"stopped, and leaving by itself":         {in: situation{began: hour, heard: 1, stopping: hour, seen: JobStatus{Leaving: true}, tries: 1}},
		"stopped, and gone without a word":       {in: situation{unknown: true, began: hour, stopping: hour, missing: lag, tries: 1}, phase: executor.Ended, reason: executor.Cancelled, end: true},
		"its shim has said the end":              {in: situation{began: hour, said: 1, exit: &executor.Exit{Fence: "f"}, unknown: true, tries: 1}, phase: executor.Ended, reason: executor.ExitedZero},
		"and failed":                             {in: situation{began: hour, said: 1, exit: &executor.Exit{Fence: "f", Code: 3}, unasked: true, tries: 1}, phase: executor.Ended, reason: executor.ExitedNonZero},
		"another's end":                          {in: situation{began: hour, said: 1, exit: &executor.Exit{Fence: "g"}, tries: 1}, phase: executor.Gone, reason: executor.Lost},
		"no such program":                        {in: situation{began: hour, said: 1, exit: &executor.Exit{Fence: "f", Code: 127, StartFailed: "exec", NoProgram: true}, tries: 1}, phase: executor.Ended, reason: executor.StartFailed, words: "set `interpreter`: there is no awk"},
		// A command can send its shim the signal of the cluster: that counts where the cluster says so.
		"preempted, says the shim alone": {in: situation{began: hour, said: lag - 1, exit: &executor.Exit{Fence: "f", Code: 143, Signal: 15, Preempted: true}, tries: 1}},
		"preempted by its own command":   {in: situation{began: hour, said: lag, exit: &executor.Exit{Fence: "f", Code: 143, Signal: 15, Preempted: true}, tries: 1}, phase: executor.Ended, reason: executor.Signaled},
		"preempted, and nobody is asked": {in: situation{began: hour, said: hour, unasked: true, exit: &executor.Exit{Fence: "f", Code: 143, Signal: 15, Preempted: true}, tries: 1}},
		"preempted by the cluster":       {in: situation{began: hour, said: 1, seen: JobStatus{Evicted: true}, exit: &executor.Exit{Fence: "f", Code: 143, Signal: 15, Preempted: true}, tries: 1}, phase: executor.Ended, reason: executor.Preempted},
	} {
		v := judged(t, tt.in)
		o, end, start := v.outcome, v.end, v.start
		if end != tt.end || start != tt.start || (o == nil) != (tt.phase == "") {
			t.Errorf("%s: %+v, end: %v, start: %v", name, o, end, start)
			continue
		}
		if o == nil {
			continue
		}
		if o.Phase != tt.phase || o.Reason != tt.reason || !strings.Contains(o.Detail, tt.words) {
			t.Errorf("%s: %+v", name, o)
		}
		if (o.Exit != nil) != (o.Phase == executor.Ended) || o.Exit != nil && o.Exit.Fence != "f" {
			t.Errorf("%s: %+v", name, o.Exit)
		}
	}
}

// What is paid for is when servers heard of it, never what a shim says.
func TestTheTimesOfAnAttemptAreTheServers(t *testing.T) {
	t.Parallel()
	claims := executor.Exit{Fence: "f", Start: time.Unix(0, 0), End: time.Unix(1<<33, 0)}
	for began, want := range map[time.Duration]time.Duration{time.Hour: time.Hour - time.Second, 0: 0} {
		o := judged(t, situation{began: began, said: time.Second, exit: &claims, tries: 1}).outcome
		if took := o.Exit.End.Sub(o.Exit.Start); took != want {
			t.Errorf("begun %s ago: %s", began, took)
		}
	}
}

// What runs on the server's own machine says when it ran, by the clock of that machine.
func TestTheTimesOfAnAttemptAreItsOwnOnTheSameMachine(t *testing.T) {
	t.Parallel()
	const ahead = time.Hour
	d := &Driver{config: Config{Now: func() time.Time { return time.Now().Add(-ahead) }, SameMachine: true}}
	start := time.Now().Add(-time.Minute)
	still := []executor.Span{{From: start, To: start.Add(time.Second)}}
	text, err := json.Marshal(executor.Exit{Fence: "f", Start: start, End: start.Add(30 * time.Second), Suspended: still})
	if err != nil {
		t.Fatal(err)
	}
	a := &attempt{Attempt: Attempt{Job: Job{Fence: "f"}, RunningAt: time.Unix(1, 0), EndedAt: time.Unix(2, 0)}, exit: text}
	v := d.verdict(a, true)
	if v.outcome == nil || v.outcome.Exit == nil {
		t.Fatalf("%+v", v)
	}
	e := v.outcome.Exit
	if !e.Start.Equal(start.Add(-ahead)) || e.End.Sub(e.Start) != 30*time.Second || !e.OwnEnd.IsZero() || len(e.Suspended) != 1 || !e.Suspended[0].From.Equal(still[0].From.Add(-ahead)) || !e.Suspended[0].To.Equal(still[0].To.Add(-ahead)) {
		t.Errorf("%+v", e)
	}
}

// TestTimeToNoticeALossIsNotWork checks the times of attempts that end without a word
// from their shims.
func TestTimeToNoticeALossIsNotWork(t *testing.T) {
	t.Parallel()
	const heard = 40 * time.Second
	gone := judged(t, situation{unknown: true, began: time.Hour, heard: heard, missing: lag, tries: 1}).outcome
	if silent := gone.At.Sub(gone.SeenAt); silent != heard {
		t.Errorf("it was last seen %s before that was noticed", silent)
	}
	evicted := judged(t, situation{seen: JobStatus{Ended: true, Reason: executor.Preempted}, began: time.Hour, heard: heard, missing: lag, tries: 1}).outcome
	if took := evicted.Exit.End.Sub(evicted.Exit.Start); took != time.Hour-heard {
		t.Errorf("it took %s", took)
	}
	now := time.Now()
	told := judged(t, situation{began: time.Hour, said: time.Second, exit: &executor.Exit{Fence: "f", Start: now, End: now.Add(10 * time.Second)}, tries: 1}).outcome
	if own := told.Exit.OwnEnd.Sub(told.Exit.Start); own != 10*time.Second {
		t.Errorf("by its own account it took %s", own)
	}
}

// accounting is a cluster that keeps accounts, which do not matter here.
type accounting struct{ Accounts }

// Where a report takes its time on its way, and the cluster keeps accounts, it may say
// what it has done to a job before the shim does, or long after.
func TestWhatFollowsWithAccounts(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	over := func(r executor.Reason) JobStatus {
		return JobStatus{Ended: true, Leaving: true, Again: r != executor.Lost, Reason: r, Detail: "Slurm says so", NotBegun: "does the machine see the folder?"}
	}
	for name, tt := range map[string]struct {
		in     situation
		phase  executor.Phase // empty: it goes on
		reason executor.Reason
		words  string
		start  bool
	}{
		"it is said to have succeeded": {in: situation{seen: over(executor.Lost), began: hour, missing: lag, tries: 1}, phase: executor.Gone, reason: executor.Lost, words: "Slurm says so"},
		"too much memory, says Slurm":  {in: situation{seen: over(executor.OutOfMemory), began: hour, missing: lag, tries: 1}, phase: executor.Ended, reason: executor.OutOfMemory},
		"and its shim may say so yet":  {in: situation{seen: over(executor.OutOfMemory), began: hour, missing: lag - 1, tries: 1}},
		"its own time limit":           {in: situation{seen: over(executor.TimedOut), began: hour, missing: lag, tries: 1, limit: hour}, phase: executor.Ended, reason: executor.TimedOut, words: "Slurm says so"},
		"the site's time limit":        {in: situation{seen: over(executor.TimedOut), began: hour, missing: lag, tries: 1}, phase: executor.Ended, reason: executor.TimedOut, words: "set `timeoutSeconds`"},
		"cancelled by us":              {in: situation{seen: over(executor.Preempted), began: hour, stopping: lag, missing: lag, tries: 1}, phase: executor.Ended, reason: executor.Cancelled},
		"cancelled by the site":        {in: situation{seen: over(executor.Preempted), began: hour, missing: lag, tries: 1}, phase: executor.Ended, reason: executor.Preempted},
		"its machine is gone":          {in: situation{seen: over(executor.NodeLost), began: hour, missing: lag, tries: 1}, phase: executor.Gone, reason: executor.NodeLost},
		"never begun, and not wanted":  {in: situation{seen: over(executor.NodeLost), stopping: 1, missing: 1, tries: 1}, phase: executor.Ended, reason: executor.Cancelled},
		"never begun, and failed":      {in: situation{seen: over(executor.Lost), missing: lag, tries: 1}, phase: executor.Ended, reason: executor.StartFailed, words: "before the task began: does the machine see the folder?"},
		"never begun: a lost machine":  {in: situation{seen: over(executor.NodeLost), missing: lag, tries: 1}, start: true},
		"never begun: cancelled there": {in: situation{seen: over(executor.Preempted), missing: lag, tries: 2}, start: true},
		"never begun, again and again": {in: situation{seen: over(executor.NodeLost), missing: lag, tries: maxStarts}, phase: executor.Gone, reason: executor.NodeLost, words: "has lost the job before it began"},
		"another server may start it":  {in: situation{unknown: true, missing: lag - 1}},
		"no server has started it":     {in: situation{unknown: true, missing: lag}, start: true},
		"it is not wanted":             {in: situation{unknown: true, stopping: 1, missing: lag, tries: 1}, phase: executor.Ended, reason: executor.Cancelled},
		"it had begun":                 {in: situation{unknown: true, began: hour, missing: lag, tries: 1}, phase: executor.Gone, reason: executor.Lost},
		"too often":                    {in: situation{unknown: true, missing: lag, tries: maxStarts}, phase: executor.Gone, reason: executor.EngineForgot},
	} {
		tt.in.accounts = true
		v := judged(t, tt.in)
		if v.start != tt.start || (v.outcome == nil) != (tt.phase == "") {
			t.Errorf("%s: %+v", name, v)
			continue
		}
		if o := v.outcome; o != nil && (o.Phase != tt.phase || o.Reason != tt.reason || !strings.Contains(o.Detail, tt.words) || o.Recorded || o.Phase == executor.Ended && executor.ReasonOf(o.Exit) != tt.reason) {
			t.Errorf("%s: %+v, %+v", name, o, o.Exit)
		}
	}
}

// A cluster that sends the same signal when it takes a machine back and at the site's time
// limit is asked which of them it was, for as long as its word may take.
func TestASignalOfTheClusterIsExplained(t *testing.T) {
	t.Parallel()
	taken := &executor.Exit{Fence: "f", Code: 143, Signal: 15, Preempted: true}
	for name, tt := range map[string]struct {
		seen   JobStatus
		said   time.Duration
		reason executor.Reason // empty: it waits
		detail string
	}{
		"not yet":             {JobStatus{}, lag - 1, "", ""},
		"the site's limit":    {JobStatus{Ended: true, Reason: executor.TimedOut}, 1, executor.TimedOut, "timeoutSeconds"},
		"it took it back":     {JobStatus{Ended: true, Reason: executor.Preempted}, 1, executor.Preempted, ""},
		"it does not say why": {JobStatus{}, lag, executor.Preempted, ""},
	} {
		o := judged(t, situation{began: time.Hour, said: tt.said, seen: tt.seen, exit: taken, tries: 1, accounts: true}).outcome
		if (o == nil) != (tt.reason == "") || o != nil && (o.Reason != tt.reason || !strings.Contains(o.Detail, tt.detail) || !o.Recorded) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// What is paid for is never what a job says of itself.
func TestWhenAnAttemptRan(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time {
		return time.Unix(1_700_000_000, 0).Add(time.Duration(minutes) * time.Minute)
	}
	over := func(start, end time.Time) JobStatus { return JobStatus{Ended: true, Start: start, End: end} }
	var zero time.Time
	for name, tt := range map[string]struct {
		running, pending time.Time
		seen             JobStatus
		start, end       time.Time
	}{
		"nobody knows":               {start: at(60), end: at(60)},
		"seen to start":              {running: at(10), pending: at(5), start: at(10), end: at(60)},
		"seen not to have begun":     {pending: at(5), start: at(5), end: at(60)},
		"only the cluster saw it":    {seen: over(at(20), at(30)), start: at(20), end: at(30)},
		"the cluster saw its end":    {running: at(10), seen: over(at(9), at(30)), start: at(10), end: at(30)},
		"an end before the start":    {running: at(10), seen: over(at(1), at(2)), start: at(10), end: at(60)},
		"an end in the future":       {running: at(10), seen: over(at(1), at(90)), start: at(10), end: at(60)},
		"a start in the future":      {seen: over(at(70), at(80)), start: at(60), end: at(60)},
		"times that are not known":   {seen: over(zero, zero), start: at(60), end: at(60)},
		"the cluster thinks it runs": {seen: JobStatus{Start: at(20), End: at(30)}, start: at(60), end: at(60)},
	} {
		a := &attempt{Attempt: Attempt{RunningAt: tt.running, EndedAt: at(60)}, pendingAt: tt.pending, seen: tt.seen, known: true}
		if start, end := (&Driver{accounts: accounting{}}).times(a); !start.Equal(tt.start) || !end.Equal(tt.end) {
			t.Errorf("%s: from %s to %s", name, start, end)
		}
	}
}

// Where no server saw when an attempt ran, the cluster's accounts have time to say it.
func TestTimesThatNobodySawAreWaitedFor(t *testing.T) {
	t.Parallel()
	exit := &executor.Exit{Fence: "f"}
	unseen := situation{unseen: true, exit: exit, tries: 1, accounts: true}
	for said, done := range map[time.Duration]bool{1: false, 2*lag - 1: false, 2 * lag: true} {
		unseen.said = said
		if o := judged(t, unseen).outcome; (o != nil) != done {
			t.Errorf("%s after it was reported: %+v", said, o)
		}
	}
	unseen.said, unseen.seen = 1, JobStatus{Ended: true, Reason: executor.Lost}
	if o := judged(t, unseen).outcome; o == nil || o.Reason != executor.ExitedZero {
		t.Errorf("as soon as it is said: %+v", o)
	}
}

// A job is told softly and again, and sooner when its grace has become shorter.
func TestWhenAJobIsTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   situation
		told bool
	}{
		"nobody stops it":          {situation{began: 1, signalled: time.Hour, tries: 1}, false},
		"it was told":              {situation{began: 1, stopping: 1, signalled: stopAgain - 1, tries: 1}, false},
		"it was told long ago":     {situation{began: 1, stopping: 1, signalled: stopAgain, tries: 1}, true},
		"it has less grace now":    {situation{began: 1, stopping: 1, signalled: 1, before: grace + 1, tries: 1}, true},
		"it has ended":             {situation{began: 1, stopping: 1, signalled: time.Hour, said: 1, exit: &executor.Exit{Fence: "f"}, tries: 1}, false},
		"the cluster is not there": {situation{began: 1, stopping: 1, signalled: time.Hour, unasked: true, tries: 1}, true},
	} {
		if v := judged(t, tt.in); v.signal != tt.told {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
