package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func askFor(team ids.Team, name doi.DOI) ai.Asked {
	return ai.Asked{Owner: ai.Owner{Team: team}, Subject: "doi " + string(name), Reader: "r", DOI: name}
}

func teamOf(t *testing.T, db *DB) ids.Team {
	t.Helper()
	team, _ := newTeam(t, db)
	return team
}

func visitor(name, address string) ai.Owner { return ai.Owner{Visitor: name, Address: address} }

var manyAtOnce = ai.Crowd{PerOwner: 100, PerAddress: 100}

// read takes the next reading and ends it.
func read(t *testing.T, db *DB, f *ai.Failure, stale time.Time) {
	t.Helper()
	r, err := db.ClaimReading(t.Context(), "w", manyAtOnce, noon, noon.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	var result *ai.Result
	if f == nil {
		result = &ai.Result{Summary: "read", Paper: ai.Paper{DOI: r.DOI, Title: "On Mills", Source: "crossref"}}
	}
	if err := db.EndReading(t.Context(), r, result, f, stale); err != nil {
		t.Fatal(err)
	}
}

func TestOnePaperIsReadOnceHoweverManyAsk(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		red, blue := teamOf(t, db), teamOf(t, db)
		var wg sync.WaitGroup
		got := make([]ai.Analysis, 20)
		for i := range got {
			wg.Go(func() {
				team := red
				if i%2 == 1 {
					team = blue
				}
				a, err := db.Ask(t.Context(), askFor(team, "10.1000/1"), ai.DefaultLimits(), noon)
				if err != nil {
					t.Error(err)
				}
				got[i] = a
			})
		}
		wg.Wait()
		for i, a := range got {
			if a.ID != got[i%2].ID {
				t.Errorf("asker %d has %s, the first of the team %s", i, a.ID, got[i%2].ID)
			}
		}
		if got[0].ID == got[1].ID {
			t.Error("two teams share an analysis")
		}
		read(t, db, nil, noon.Add(time.Hour))
		if _, err := db.ClaimReading(t.Context(), "w", manyAtOnce, noon, noon.Add(time.Minute)); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("there is more to read: %v", err)
		}
		a, err := db.AnalysisOf(t.Context(), string(blue), "10.1000/1")
		if err != nil || a.Status != ai.Completed || a.Result.Summary != "read" || a.Title != "On Mills" {
			t.Errorf("the other team's is %+v, %v", a, err)
		}
		if _, err := db.Analysis(t.Context(), string(red), a.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team's analysis: %v", err)
		}
	})
}

func TestQuotasCountWhatIsReadAndNoMore(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team := teamOf(t, db)
		limits := ai.Limits{PerOwner: 3, PerAddress: 4, Visitors: 6, FailedPerOwner: 9, FailedPerAddress: 9}
		var wg sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		for i := range 8 {
			wg.Go(func() {
				_, err := db.Ask(t.Context(), askFor(team, doi.DOI(fmt.Sprintf("10.1000/%d", i))), limits, noon)
				if e, over := errors.AsType[*fault.Error](err); over && e.Code == "analysis_quota_exhausted" && e.RetryAfter == 12*time.Hour {
					mu.Lock()
					refused++
					mu.Unlock()
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if refused != 5 {
			t.Errorf("%d of 8 were refused, want 5", refused)
		}
		charged := func(o ai.Owner, want ai.Charged) {
			t.Helper()
			if got, err := db.Charged(t.Context(), o, ai.DayOf(noon)); err != nil || got != want {
				t.Errorf("charged %+v, %v, want %+v", got, err, want)
			}
		}
		charged(ai.Owner{Team: team}, ai.Charged{Owner: 3})
		read(t, db, &ai.Failure{Kind: fault.KindConflict, Code: "closed_access", Message: "m"}, noon)
		charged(ai.Owner{Team: team}, ai.Charged{Owner: 2}) // a failed one is given back
		if _, err := db.Ask(t.Context(), askFor(team, "10.1000/100"), limits, noon.Add(12*time.Hour)); err != nil {
			t.Errorf("the next day: %v", err)
		}
		for i, want := range []bool{true, true, true, true, false} {
			a := askFor("", doi.DOI(fmt.Sprintf("10.2000/%d", i)))
			a.Owner = visitor(fmt.Sprint(i), "192.0.2.1")
			if _, err := db.Ask(t.Context(), a, limits, noon); (err == nil) != want {
				t.Errorf("visitor %d of one address: %v", i, err)
			}
		}
		charged(visitor("0", "192.0.2.1"), ai.Charged{Owner: 1, Address: 4, Visitors: 4})
		for i, want := range []bool{true, true, false} {
			a := askFor("", doi.DOI(fmt.Sprintf("10.3000/%d", i)))
			a.Owner = visitor("v", fmt.Sprintf("192.0.2.%d", 10+i))
			if _, err := db.Ask(t.Context(), a, limits, noon); (err == nil) != want {
				t.Errorf("visitor %d of all: %v", i, err)
			}
		}
	})
}

func TestAFailedOrStaleReadingIsReadAgain(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team := teamOf(t, db)
		ask := func(now time.Time) ai.Analysis {
			t.Helper()
			a, err := db.Ask(t.Context(), askFor(team, "10.1000/1"), ai.DefaultLimits(), now)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		first := ask(noon)
		read(t, db, &ai.Failure{Kind: fault.KindNotFound, Code: "not_found", Message: "unknown"}, noon)
		second := ask(noon)
		if second.ID == first.ID || second.Status != ai.Queued {
			t.Errorf("after a failure: %+v", second)
		}
		read(t, db, nil, noon.Add(time.Hour))
		if again := ask(noon); again.ID != second.ID || again.Status != ai.Completed {
			t.Errorf("from the cache: %+v", again)
		}
		if late := ask(noon.Add(time.Hour)); late.Status != ai.Queued {
			t.Errorf("when stale: %+v", late)
		}
		list, err := db.Analyses(t.Context(), string(team), "", 10)
		if err != nil || len(list) != 3 || list[2].Failure == nil || list[2].Failure.Message != "unknown" {
			t.Errorf("the list is %+v, %v", list, err)
		}
	})
}

func TestAReadingOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		a := askFor(teamOf(t, db), "")
		a.Subject, a.Text = "pdf x", &ai.Text{Pages: []reader.Page{{Number: 1, Text: "nul \x00 and all"}}, Of: 1}
		if _, err := db.Ask(t.Context(), a, ai.DefaultLimits(), noon); err != nil {
			t.Fatal(err)
		}
		lost, err := db.ClaimReading(t.Context(), "lost", manyAtOnce, noon, noon.Add(time.Minute))
		if err != nil || lost.Text.Pages[0] != a.Text.Pages[0] {
			t.Fatalf("%+v, %v", lost, err)
		}
		if _, err := db.ClaimReading(t.Context(), "early", manyAtOnce, noon, noon.Add(time.Minute)); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("taken while somebody has it: %v", err)
		}
		if err := db.RenewReading(t.Context(), lost, noon.Add(2*time.Minute)); err != nil {
			t.Error(err)
		}
		if _, err := db.ClaimReading(t.Context(), "early", manyAtOnce, noon.Add(time.Minute), noon.Add(time.Minute)); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("taken although it was renewed: %v", err)
		}
		next, err := db.ClaimReading(t.Context(), "next", manyAtOnce, noon.Add(2*time.Minute), noon.Add(time.Hour))
		if err != nil || next.ID != lost.ID || next.Attempt != 2 {
			t.Fatalf("%+v, %v", next, err)
		}
		if err := db.EndReading(t.Context(), lost, &ai.Result{}, nil, noon); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("who lost it could still end it: %v", err)
		}
		if err := db.ReturnReading(t.Context(), next); err != nil {
			t.Error(err)
		}
		again, err := db.ClaimReading(t.Context(), "again", manyAtOnce, noon, noon.Add(time.Hour))
		if err != nil || again.Attempt != 2 {
			t.Errorf("%+v, %v", again, err)
		}
		if err := db.RecoverReadings(t.Context()); err != nil {
			t.Error(err)
		}
		if r, err := db.ClaimReading(t.Context(), "restarted", manyAtOnce, noon, noon.Add(time.Hour)); err != nil || r.Attempt != 3 {
			t.Errorf("after a restart: %+v, %v", r, err)
		}
	})
}

func TestTheLastChatRequestsAreTakenOnce(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		day := ai.DayOf(noon)
		limits := ai.ChatLimits{PerUser: 5, All: 8}
		take := func(user ids.User) (taken int, last error) {
			var wg sync.WaitGroup
			var mu sync.Mutex
			for range 20 {
				wg.Go(func() {
					_, err := db.TakeChat(t.Context(), user, limits, day)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						taken++
					} else {
						last = err
					}
				})
			}
			wg.Wait()
			return taken, last
		}
		if n, err := take("ada"); n != 5 || !errors.Is(err, ai.ErrFairUse) {
			t.Errorf("ada has %d, then %v", n, err)
		}
		if n, err := take("bob"); n != 3 || !errors.Is(err, ai.ErrAllUsed) {
			t.Errorf("bob has %d, then %v", n, err)
		}
		if err := db.ReturnChat(t.Context(), "bob", day); err != nil {
			t.Error(err)
		}
		if n, _ := take("bob"); n != 1 {
			t.Errorf("bob has %d after one was given back", n)
		}
		if _, err := db.TakeChat(t.Context(), "eve", ai.ChatLimits{PerUser: 0, All: 9}, day); !errors.Is(err, ai.ErrFairUse) {
			t.Errorf("none a day: %v", err)
		}
		if used, err := db.TakeChat(t.Context(), "ada", limits, day.AddDate(0, 0, 1)); err != nil || used != 1 {
			t.Errorf("the next day: %v", err)
		}
	})
}

func TestDaysOfPapersAndChatAddUp(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, day := teamOf(t, db), ai.DayOf(noon)
		for range 2 {
			if err := db.CountChat(t.Context(), team, ai.ChatUse{PromptTokens: 10, CompletionTokens: 3}, day); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.CountChat(t.Context(), "team_that_is_gone", ai.ChatUse{}, day); err != nil {
			t.Error(err)
		}
		for i, now := range []time.Time{noon, noon.AddDate(0, 0, -1)} {
			if _, err := db.Ask(t.Context(), askFor(team, doi.DOI(fmt.Sprint("10.1000/", i))), ai.DefaultLimits(), now); err != nil {
				t.Fatal(err)
			}
		}
		got, err := db.AIDays(t.Context(), team, day)
		want := ai.Day{Date: day, Requests: 2, PromptTokens: 20, CompletionTokens: 6, Analyses: 1}
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestUnreadablePDFsAreBoundedForEverybodyWhoSharesThem(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		limits := ai.Limits{PerOwner: 9, PerAddress: 9, Visitors: 9, FailedPerOwner: 3, FailedPerAddress: 5}
		red := ai.Payer{Owner: string(teamOf(t, db))}
		one, two, three := visitor("one", "a").Payer(), visitor("two", "a").Payer(), visitor("three", "b").Payer()
		take := func(p ai.Payer, most int) {
			t.Helper()
			var mu sync.Mutex
			var wg sync.WaitGroup
			taken := 0
			for range 10 {
				wg.Go(func() {
					err := db.TakePDF(t.Context(), p, limits, noon)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						taken++
					} else if e, over := errors.AsType[*fault.Error](err); !over || e.Code != "unreadable_pdfs_exhausted" || e.RetryAfter != 12*time.Hour {
						t.Errorf("%v: %v", p, err)
					}
				})
			}
			wg.Wait()
			if taken != most {
				t.Errorf("%v took %d, want %d", p, taken, most)
			}
		}
		take(red, 3)
		take(one, 3)
		take(two, 2) // the address is full
		take(three, 3)
		if err := db.ReturnPDF(t.Context(), one, ai.DayOf(noon)); err != nil {
			t.Fatal(err)
		}
		take(one, 1)
		take(ai.Payer{Owner: "a team that is gone"}, 10) // and nothing is kept of it
		// Whoever has had too many begins nothing else.
		asked := askFor(ids.Team(red.Owner), "10.1000/1")
		if _, err := db.Ask(t.Context(), asked, limits, noon); !fault.Is(err, fault.KindLimited) {
			t.Errorf("got %v", err)
		}
		if _, err := db.Ask(t.Context(), asked, limits, noon.Add(12*time.Hour)); err != nil {
			t.Error(err) // a new day
		}
		if _, err := db.DeleteExpired(t.Context(), noon.Add(8*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := db.q.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM failed_pdfs`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d are left, %v", left, err)
		}
	})
}

func TestNobodysPapersTakeAllDesks(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ask := func(o ai.Owner, name doi.DOI) {
			t.Helper()
			if _, err := db.Ask(t.Context(), ai.Asked{Owner: o, Subject: "doi " + string(name), Reader: "r", DOI: name}, ai.DefaultLimits(), noon); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 5 {
			ask(visitor("bomber", "a"), doi.DOI(fmt.Sprintf("10.1000/bomb%d", i)))
		}
		ask(visitor("near", "a"), "10.1000/near1")
		ask(visitor("near", "a"), "10.1000/near2")
		ask(visitor("far", "b"), "10.1000/far")
		red := teamOf(t, db)
		for _, name := range []doi.DOI{"10.1000/red1", "10.1000/red2", "10.1000/red3"} {
			ask(ai.Owner{Team: red}, name)
		}
		crowd := ai.Crowd{PerOwner: 2, PerAddress: 3}
		var taken []ai.Reading
		var order []doi.DOI
		claim := func(now time.Time) bool {
			r, err := db.ClaimReading(t.Context(), "w", crowd, now, now.Add(time.Minute))
			if fault.Is(err, fault.KindNotFound) {
				return false
			}
			if err != nil {
				t.Fatal(err)
			}
			taken, order = append(taken, r), append(order, r.DOI)
			return true
		}
		for claim(noon) {
		}
		want := []doi.DOI{"10.1000/red1", "10.1000/red2", "10.1000/bomb0", "10.1000/near1", "10.1000/far", "10.1000/bomb1"}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Fatal(diff)
		}
		if p := taken[3].Payer; p != visitor("near", "a").Payer() {
			t.Errorf("the payer is %v", p)
		}
		// One that ends makes place for one.
		if err := db.EndReading(t.Context(), taken[2], nil, &ai.Failure{Kind: fault.KindConflict}, noon); err != nil {
			t.Fatal(err)
		}
		if !claim(noon) || order[6] != "10.1000/bomb2" || claim(noon) {
			t.Errorf("then %v", order[6:])
		}
		// Those of a worker that is gone take no place.
		later := noon.Add(2 * time.Minute)
		for claim(later) {
		}
		if got := len(order) - 7; got != 6 {
			t.Errorf("%d were taken over: %v", got, order[7:])
		}
	})
}
