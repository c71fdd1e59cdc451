package store_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// Old entries go while somebody checks the chain: that is no tampering.
func TestAChainIsWholeWhileItsOldEntriesGo(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		keeper := storetest.Open(t, url)
		for i := range 6 {
			if err := keeper.WritePending(pending(t, "team_1", "did.something", noon.Add(time.Duration(i)*time.Hour))); err != nil {
				t.Fatal(err)
			}
		}
		var trimmed atomic.Bool
		checker := storetest.OpenObserved(t, url, func(statement string) {
			if strings.Contains(statement, "FROM audit WHERE chain = $1 AND seq > $2") && trimmed.CompareAndSwap(false, true) {
				if n, err := keeper.TrimAudit(t.Context(), noon.Add(3*time.Hour)); err != nil || n != 3 {
					t.Errorf("%d entries went, %v", n, err)
				}
			}
		})
		if problem, entries := whole(t, checker, "team_1"); problem != "" || entries != 3 || !trimmed.Load() {
			t.Errorf("%q, %d entries", problem, entries)
		}
	})
}

func TestTheLogIsFiltered(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for i, e := range []audit.Entry{
			{Chain: "team_1", Action: "run.started", Actor: audit.Actor{Type: "user", ID: "ada", Name: "Ada"}},
			{Chain: "team_1", Action: "run.cancelled", Actor: audit.Actor{Type: "user", ID: "bob", Name: "Bob"}},
			{Chain: "team_2", Action: "run.started", Actor: audit.Actor{Type: "user", ID: "ada", Name: "Ada"}},
			{Chain: "team_1", Action: "runaway.started", Actor: audit.Actor{Type: "user", ID: "ada", Name: "Ada"}},
			{Chain: "team_1", Action: "run.startedX", Actor: audit.Actor{Type: "user", ID: "ada", Name: "Ada"}},
		} {
			e.At = noon.Add(time.Duration(i) * time.Minute)
			if err := db.WritePending(audit.With(t.Context(), &audit.Pending{Entry: e})); err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range []struct {
			name  string
			chain string
			f     audit.Filter
			limit int
			want  []int64
		}{
			{"all, the newest first", "team_1", audit.Filter{}, 10, []int64{4, 3, 2, 1}},
			{"a page", "team_1", audit.Filter{}, 2, []int64{4, 3}},
			{"the next page", "team_1", audit.Filter{Before: 3}, 2, []int64{2, 1}},
			{"of another team", "team_2", audit.Filter{}, 10, []int64{1}},
			{"of nobody", "team_3", audit.Filter{}, 10, nil},
			{"of one person", "team_1", audit.Filter{Actor: "bob"}, 10, []int64{2}},
			{"one action and none that begins like it", "team_1", audit.Filter{Action: "run.started"}, 10, []int64{1}},
			{"actions of one kind and none that begins like it", "team_1", audit.Filter{Action: "run."}, 10, []int64{4, 2, 1}},
			{"wildcards are letters", "team_1", audit.Filter{Action: "run%."}, 10, nil},
			{"from a time on, which is of it", "team_1", audit.Filter{Since: noon.Add(3 * time.Minute)}, 10, []int64{4, 3}},
			{"until a time, which is not of it", "team_1", audit.Filter{Until: noon.Add(3 * time.Minute)}, 10, []int64{2, 1}},
			{"all at once", "team_1", audit.Filter{Before: 4, Actor: "ada", Action: "run.", Since: noon, Until: noon.Add(time.Hour)}, 10, []int64{1}},
		} {
			list, err := db.AuditEntries(t.Context(), tt.chain, tt.f, tt.limit)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, e := range list {
				got = append(got, e.Seq)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
		}
	})
}
