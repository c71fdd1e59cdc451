package attempts_test

import (
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

var (
	key     = []byte("the key of all servers")
	session = strings.Repeat("s", 40)
)

// shims is the room on a real database and disk, with one attempt that waits.
type shims struct {
	*attempts.Service
	objects objects.Kept

	mu      sync.Mutex
	changes int
}

func (s *shims) changed(string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
}

const task = `{"command":"true"}`

func eachShims(t *testing.T, test func(t *testing.T, s *shims)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, err := disk.Open(t.Context(), filepath.Join(t.TempDir(), "objects"), disk.NewSigner([]byte("0123456789abcdef")), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		s := &shims{objects: objects.Kept{Store: d, Presigner: d}}
		s.Service = attempts.NewService(db, s.objects, key, s.changed, time.Now)
		a := attempts.Attempt{ID: "a", Run: "run_1", Scope: "here", Fence: "f", About: json.RawMessage(`{}`), SubmittedAt: time.Now()}
		if err := db.AddAttempt(t.Context(), a, attempts.Order{Objects: []string{"given/0"}, Task: json.RawMessage(task)}); err != nil {
			t.Fatal(err)
		}
		if err := s.objects.Upload(t.Context(), "given/0", strings.NewReader("reads"), 5); err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}

func begin(change func(*attempts.Begin)) attempts.Begin {
	b := attempts.Begin{Version: attempts.Version, Fence: "f", Ticket: attempts.Ticket(key, "a", "f"), Session: session}
	if change != nil {
		change(&b)
	}
	return b
}

func (s *shims) begun(t *testing.T) {
	t.Helper()
	if got, err := s.Begin(t.Context(), "a", begin(nil)); err != nil || string(got) != task {
		t.Fatalf("%s, %v", got, err)
	}
}

func TestATicketIsForOneAttemptOnce(t *testing.T) {
	eachShims(t, func(t *testing.T, s *shims) {
		ctx := t.Context()
		for name, tt := range map[string]struct {
			id     string
			change func(*attempts.Begin)
			kind   fault.Kind
		}{
			"another attempt's":       {"b", nil, fault.KindUnauthenticated},
			"of another fence":        {"a", func(b *attempts.Begin) { b.Fence = "g" }, fault.KindUnauthenticated},
			"of another installation": {"a", func(b *attempts.Begin) { b.Ticket = attempts.Ticket([]byte("other"), "a", "f") }, fault.KindUnauthenticated},
			"none":                    {"a", func(b *attempts.Begin) { b.Ticket = "" }, fault.KindUnauthenticated},
			"with its fence moved":    {"a", func(b *attempts.Begin) { b.Ticket = attempts.Ticket(key, "a\x00f", "") }, fault.KindUnauthenticated},
			"a session to guess":      {"a", func(b *attempts.Begin) { b.Session = strings.Repeat("s", 39) }, fault.KindInvalid},
			"a huge session":          {"a", func(b *attempts.Begin) { b.Session = strings.Repeat("s", 201) }, fault.KindInvalid},
			"another release":         {"a", func(b *attempts.Begin) { b.Version++ }, fault.KindStale},
			"an attempt that is gone": {"c", func(b *attempts.Begin) { b.Ticket = attempts.Ticket(key, "c", "f") }, fault.KindNotFound},
		} {
			_, err := s.Begin(ctx, tt.id, begin(tt.change))
			storetest.Refused(t, name, err, tt.kind)
		}
		if s.changes > 0 {
			t.Errorf("%d changes are told of", s.changes)
		}
		s.begun(t)
		s.begun(t) // the answer was lost
		_, err := s.Begin(ctx, "a", begin(func(b *attempts.Begin) { b.Session = strings.Repeat("t", 40) }))
		storetest.Refused(t, "a second shim", err, fault.KindConflict)
		storetest.Refused(t, "its own session", s.Check(ctx, "a", session), "")
		storetest.Refused(t, "another session", s.Check(ctx, "a", strings.Repeat("t", 40)), fault.KindUnauthenticated)
	})
}

func TestReportsAreBounded(t *testing.T) {
	eachShims(t, func(t *testing.T, s *shims) {
		ctx := t.Context()
		s.begun(t)
		before := s.changes
		text := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
		for name, tt := range map[string]struct {
			report attempts.Report
			kind   fault.Kind
		}{
			"as much state as may be": {attempts.Report{State: text(attempts.MaxState)}, ""},
			"too much state":          {attempts.Report{State: text(attempts.MaxState + 1)}, fault.KindTooLarge},
			"as much log as may be":   {attempts.Report{Log: &attempts.Log{Text: make([]byte, attempts.MaxLog)}}, ""},
			"too much log":            {attempts.Report{Log: &attempts.Log{Text: make([]byte, attempts.MaxLog+1)}}, fault.KindTooLarge},
			"too many marks":          {attempts.Report{Log: &attempts.Log{Marks: text(attempts.MaxLog + 1)}}, fault.KindTooLarge},
			"a log before its start":  {attempts.Report{Log: &attempts.Log{Offset: -1}}, fault.KindInvalid},
		} {
			_, err := s.Report(ctx, "a", session, tt.report)
			storetest.Refused(t, name, err, tt.kind)
		}
		_, err := s.Report(ctx, "a", session, attempts.Report{Exit: make(json.RawMessage, attempts.MaxExit+1)})
		storetest.Refused(t, "too large an end", err, fault.KindTooLarge)
		if s.changes != before+1 {
			t.Errorf("%d changes are told of; a state alone is none", s.changes-before)
		}
		if _, err := s.Report(ctx, "a", session, attempts.Report{Running: true, Exit: json.RawMessage(`{"code":0}`)}); err != nil {
			t.Fatal(err)
		}
		_, err = s.Report(ctx, "a", session, attempts.Report{Running: true})
		storetest.Refused(t, "after the end", err, fault.KindStale)
		storetest.Refused(t, "an output after the end", s.TakeOutput(ctx, "a", session, "0", strings.NewReader("x"), 1), fault.KindStale)
		_, _, err = s.OpenInput(ctx, "a", session, 0)
		storetest.Refused(t, "an input after the end", err, fault.KindStale)
	})
}

func TestAShimReadsAndWritesWhatIsItsOwn(t *testing.T) {
	eachShims(t, func(t *testing.T, s *shims) {
		ctx := t.Context()
		_, _, err := s.OpenInput(ctx, "a", session, 0)
		storetest.Refused(t, "an input before it began", err, fault.KindUnauthenticated)
		s.begun(t)
		r, size, err := s.OpenInput(ctx, "a", session, 0)
		if err != nil || size != 5 {
			t.Fatal(size, err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != "reads" || r.Close() != nil {
			t.Errorf("%q, %v", got, err)
		}
		for _, n := range []int{-1, 1, 1 << 40} {
			_, _, err := s.OpenInput(ctx, "a", session, n)
			storetest.Refused(t, "another input", err, fault.KindNotFound)
		}
		for _, name := range []string{"", "..", "../0", "0/1", "1234567", "-1", "0.manifest.x", "x.manifest", "0\n", "٣"} {
			storetest.Refused(t, "the output "+name, s.TakeOutput(ctx, "a", session, name, strings.NewReader("x"), 1), fault.KindNotFound)
		}
		storetest.Refused(t, "without a length", s.TakeOutput(ctx, "a", session, "0", strings.NewReader("x"), -1), fault.KindInvalid)
		storetest.Refused(t, "by another session", s.TakeOutput(ctx, "a", strings.Repeat("t", 40), "0", strings.NewReader("x"), 1), fault.KindUnauthenticated)
		for range 2 { // the answer was lost
			storetest.Refused(t, "an output", s.TakeOutput(ctx, "a", session, "0", strings.NewReader("made"), 4), "")
		}
		storetest.Refused(t, "its manifest", s.TakeOutput(ctx, "a", session, "0.manifest", strings.NewReader("{}"), 2), "")
		if err := s.TakeOutput(ctx, "a", session, "0", strings.NewReader("another"), 7); err == nil {
			t.Error("what was sent is replaced")
		}
		if err := s.TakeOutput(ctx, "a", session, "1", io.MultiReader(strings.NewReader("ha"), failing{}), 4); err == nil {
			t.Error("half of an output is taken")
		}
		if _, err := s.objects.Size(ctx, attempts.ObjectKey("a", "f", "1")); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("half of an output is kept: %v", err)
		}
		storetest.Refused(t, "the whole of it", s.TakeOutput(ctx, "a", session, "1", strings.NewReader("half"), 4), "")
	})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the line broke") }

// Two shims that were given one ticket begin at once: one of them has the attempt.
func TestOneOfTwoShimsHasTheAttempt(t *testing.T) {
	eachShims(t, func(t *testing.T, s *shims) {
		errs := make([]error, 6)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = s.Begin(t.Context(), "a", begin(func(b *attempts.Begin) { b.Session = strings.Repeat(string(rune('a'+i)), 40) }))
			})
		}
		wg.Wait()
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				storetest.Refused(t, "the session that began", s.Check(t.Context(), "a", strings.Repeat(string(rune('a'+i)), 40)), "")
			} else if !fault.Is(err, fault.KindConflict) {
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("%d began", won)
		}
	})
}
