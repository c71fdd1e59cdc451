package executors

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/offers"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// Workers of other servers are found by what they report, in the order of preference, and
// asked for again after a while.
func TestTheOffersOfOtherServers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		report := func(w runs.Worker, at time.Time) {
			t.Helper()
			if err := db.ReportWorker(t.Context(), w, at); err != nil {
				t.Fatal(err)
			}
		}
		now := time.Now()
		report(runs.Worker{Owner: "b", Host: "h", Executor: "slow", Kind: "slurm", Place: 2, PricePercent: 50, Size: credits.Size{VCPU: 64, RAMGB: 256}}, now)
		report(runs.Worker{Owner: "a", Host: "h", Executor: "here", Kind: "local", Place: 1, PricePercent: 100, Size: credits.Size{VCPU: 4, RAMGB: 16}}, now)
		report(runs.Worker{Owner: "c", Host: "h", Executor: "gone", Kind: "local", Size: credits.Size{VCPU: 4, RAMGB: 16}}, now.Add(-time.Hour))
		w := &Workers{DB: db}
		names := func() (words string) {
			t.Helper()
			list, err := w.Offers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range list {
				words += o.Executor + " "
			}
			return words
		}
		if got := names(); got != "here slow " {
			t.Errorf("offered: %s", got)
		}
		report(runs.Worker{Owner: "d", Host: "h", Executor: "first", Kind: "local", Place: 0, Size: credits.Size{VCPU: 1, RAMGB: 1}}, now)
		if got := names(); got != "here slow " {
			t.Errorf("asked again at once: %s", got)
		}
		w.asked = w.asked.Add(-reportedFor)
		if got := names(); got != "first here slow " {
			t.Errorf("asked again: %s", got)
		}
		for want, size := range map[string]credits.Size{"here": {VCPU: 4, RAMGB: 8}, "slow": {VCPU: 32, RAMGB: 8}} {
			chosen, err := w.Choose(t.Context(), runs.Wanted{Size: size})
			if err != nil || chosen.Executor != want {
				t.Errorf("%+v: %+v, %v", size, chosen, err)
			}
		}
		if percent, reason, ok := w.Serves(t.Context(), "slow", nil, credits.Size{VCPU: 1, RAMGB: 1}); !ok || percent != 50 {
			t.Errorf("%d, %q, %t", percent, reason, ok)
		}
		if _, reason, ok := w.Serves(t.Context(), "nowhere", nil, credits.Size{VCPU: 1, RAMGB: 1}); ok || !strings.Contains(reason, "nowhere") {
			t.Errorf("%q, %t", reason, ok)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.asked = time.Time{}
		if _, err := w.Choose(ctx, runs.Wanted{}); err == nil || fault.Is(err, fault.KindConflict) {
			t.Errorf("of a database that does not answer: %v", err)
		}
	})
}

// A run that only a worker can serve that is gone waits for it, for a week. An embedded
// database has no other workers than those of its server.
func TestRunIsChosenForAWorkerThatIsGone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Now()
		gpu := credits.Size{VCPU: 4, RAMGB: 16, GPU: 1}
		report := func(owner, executor string, size credits.Size, ago time.Duration) {
			t.Helper()
			w := runs.Worker{Owner: owner, Host: "host of " + executor, Executor: executor, Kind: "local", PricePercent: 100, Size: size}
			if err := db.ReportWorker(t.Context(), w, now.Add(-ago)); err != nil {
				t.Fatal(err)
			}
		}
		report("1", "cpus", credits.Size{VCPU: 4, RAMGB: 16}, 0)
		report("2", "gpus", gpu, 3*time.Hour)
		report("3", "gpus", credits.Size{}, 2*time.Hour) // it started while its executor was away
		report("4", "old", credits.Size{VCPU: 4, RAMGB: 16, GPU: 2}, offers.RememberedFor+time.Hour)
		if _, err := db.DeleteExpired(t.Context(), now); err != nil { // keeps those that are remembered
			t.Fatal(err)
		}
		for name, tt := range map[string]struct {
			alone    bool
			wanted   runs.Wanted
			executor string
			kind     fault.Kind
		}{
			"a GPU":                     {false, runs.Wanted{Size: gpu}, "gpus", ""},
			"by name":                   {false, runs.Wanted{Executor: "gpus"}, "gpus", ""},
			"no GPU":                    {false, runs.Wanted{Size: credits.Size{VCPU: 1, RAMGB: 4}}, "cpus", ""},
			"more than it had":          {false, runs.Wanted{Size: credits.Size{VCPU: 8, RAMGB: 32, GPU: 2}}, "", fault.KindConflict},
			"one that is gone for good": {false, runs.Wanted{Executor: "old"}, "", fault.KindInvalid},
			"where no other can come":   {true, runs.Wanted{Size: gpu}, "", fault.KindConflict},
		} {
			got, err := (&Workers{DB: db, Alone: tt.alone}).Choose(t.Context(), tt.wanted)
			if got.Executor != tt.executor || (err != nil) != (tt.kind != "") || err != nil && !fault.Is(err, tt.kind) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	})
}

// Shims speak to an address of their own, and everything else is the API's.
func TestWhichAddressesAreOfShims(t *testing.T) {
	t.Parallel()
	shims := &Shims{Key: make([]byte, 32), Log: slog.New(slog.DiscardHandler)}
	h := shims.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for path, ofShims := range map[string]bool{"/attempts/a/begin": true, "/attempts/": true, "/attempts": false, "/attemptsx": false, "/api/attempts/a": false, "/": false, "//attempts/a": false} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://h"+path, nil))
		if (w.Code != http.StatusTeapot) != ofShims || ofShims && w.Code < 400 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// Jobs of two executors, or of two installations, are told apart in a namespace.
func TestTheNameOfAnInstallation(t *testing.T) {
	t.Parallel()
	one, other := &Shims{Installation: "one"}, &Shims{Installation: "other"}
	seen := map[string]bool{}
	for _, name := range []string{one.installation("a"), one.installation("b"), other.installation("a"), one.installation("")} {
		if seen[name] || !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(name) {
			t.Errorf("%q of %v", name, seen)
		}
		seen[name] = true
	}
	if !seen[(&Shims{Installation: "one"}).installation("a")] {
		t.Error("it is another one after a restart")
	}
	if earlier := (&Shims{Key: []byte("one"), Installation: "one"}).earlier("a"); earlier != "9fb4aad289c1154d" {
		t.Errorf("earlier releases called it %s", earlier)
	}
}
