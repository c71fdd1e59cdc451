package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/papers"
	"github.com/millrace/millrace/internal/papers/paperstest"
	"github.com/millrace/millrace/internal/waittest"
)

func byDOI(name string) string { return fmt.Sprintf(`{"doi":%q}`, name) }

// used is how many analyses a team has used today.
func (h *harness) used(who someone) float64 {
	h.t.Helper()
	q := h.call("GET", "/api/billing/credits", "", bearer(who.token)).want(200).at("aiAnalysis").(map[string]any)
	if q["used"].(float64)+q["remaining"].(float64) != q["limit"].(float64) {
		h.t.Errorf("the quota does not add up: %v", q)
	}
	return q["used"].(float64)
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !waittest.Until(holds) {
		t.Fatalf("never: %s", what)
	}
}

func TestAPaperIsReadOnceAndFoundByItsTeam(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		first := h.call("POST", "/api/ai/analyze", byDOI("https://doi.org/10.1000/MILL"), bearer(ada.token)).want(200)
		id := first.text("data", "analysisId")
		paper := first.at("data", "result", "paper").(map[string]any)
		if first.text("data", "status") != "completed" || first.text("data", "doi") != mill || paper["title"] != "On Mills" || paper["pageCount"] != 1.0 || first.at("data", "stage") != nil {
			t.Errorf("the analysis is %s", first.body)
		}
		if got := h.call("POST", "/api/ai/analyze", byDOI(mill), bearer(ada.token)).want(200).text("data", "analysisId"); got != id {
			t.Errorf("asked again, it is %s, not %s", got, id)
		}
		theirs := h.call("POST", "/api/ai/analyze", byDOI(mill), bearer(bob.token)).want(200).text("data", "analysisId")
		if theirs == id {
			t.Error("two teams share an analysis")
		}
		if h.used(ada) != 1 || h.used(bob) != 0 || h.papers.Asked(paperstest.Repository) != 1 {
			t.Errorf("ada used %v, bob %v, the copy was fetched %d times", h.used(ada), h.used(bob), h.papers.Asked(paperstest.Repository))
		}
		for query, status := range map[string]int{
			"?id=" + id: 200, "?doi=doi:10.1000/Mill": 200, "?id=" + theirs: 404, "?doi=10.1000/other": 404, "?doi=nonsense": 400, "": 400,
			"?id=" + id + "&doi=" + mill: 400, "?id=%00": 404,
		} {
			h.call("GET", "/api/ai/status"+query, "", bearer(ada.token)).want(status)
		}
		list := h.call("GET", "/api/ai/analyses", "", bearer(ada.token)).want(200).at("data").([]any)
		if len(list) != 1 || list[0].(map[string]any)["title"] != "On Mills" {
			t.Errorf("the list is %v", list)
		}
		day := h.call("GET", "/api/dashboard/usage?days=7", "", bearer(ada.token)).want(200).at("data", "ai").(map[string]any)
		series := day["series"].([]any)
		if day["analyses"] != 1.0 || len(series) != 7 || series[6].(map[string]any)["analyses"] != 1.0 {
			t.Errorf("the dashboard says %v", day)
		}
	})
}

func TestAnalysesArePagedNewestFirst(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for i := range 3 {
		h.call("POST", "/api/ai/analyze", byDOI(fmt.Sprint("10.1000/unknown", i)), bearer(ada.token)).want(404)
	}
	page := h.call("GET", "/api/ai/analyses?limit=2", "", bearer(ada.token)).want(200)
	rows := page.at("data").([]any)
	if rows[0].(map[string]any)["doi"] != "10.1000/unknown2" || rows[0].(map[string]any)["status"] != "failed" || len(rows) != 2 {
		t.Errorf("the first page is %s", page.body)
	}
	rest := h.call("GET", "/api/ai/analyses?limit=2&cursor="+page.text("page", "nextCursor"), "", bearer(ada.token)).want(200)
	if rows := rest.at("data").([]any); len(rows) != 1 || rest.at("page", "hasMore") != false {
		t.Errorf("the second page is %s", rest.body)
	}
	h.call("GET", "/api/ai/analyses?limit=0", "", bearer(ada.token)).want(400)
	h.call("GET", "/api/ai/analyses?limit=1001", "", bearer(ada.token)).want(400)
}

func TestTwentyAtOnceAreOneReading(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		var mu sync.Mutex
		seen := map[string]int{}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				id := h.call("POST", "/api/ai/analyze", byDOI(mill), bearer(ada.token)).want(200).text("data", "analysisId")
				mu.Lock()
				defer mu.Unlock()
				seen[id]++
			})
		}
		wg.Wait()
		if len(seen) != 1 || h.used(ada) != 1 || h.papers.Asked(paperstest.Crossref) != 1 || h.papers.Asked(paperstest.Repository) != 1 {
			t.Errorf("analyses %v, used %v, looked up %d times, fetched %d times", seen, h.used(ada), h.papers.Asked(paperstest.Crossref), h.papers.Asked(paperstest.Repository))
		}
	})
}

// frames are the messages of a stream, held against the contract.
func (h *harness) frames(r reply) (list []map[string]any) {
	h.t.Helper()
	if !strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		h.t.Fatalf("no stream: %d %s", r.status, r.body)
	}
	for line := range strings.Lines(r.body) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			h.t.Fatalf("%v in %s", err, data)
		}
		if err := fits("#/components/schemas/AnalysisMessage", data); err != nil {
			h.t.Errorf("a frame is against the contract: %v\n%s", err, data)
		}
		list = append(list, v)
	}
	return list
}

var stream = header("Accept", "text/event-stream")

func TestAStreamTellsHowItGoesAndEndsOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	h.papers.Add("10.1000/closed", paperstest.Work{Title: "Closed", Closed: true})
	frames := h.frames(h.call("POST", "/api/ai/analyze", byDOI(mill), bearer(ada.token), stream).want(200))
	last, percent := frames[len(frames)-1], -1.0
	for _, f := range frames[:len(frames)-1] {
		if f["type"] != "progress" || f["percent"].(float64) < percent || f["message"] == "" || f["stage"] == "" || f["analysisId"] != last["analysisId"] {
			t.Errorf("a frame is %v", f)
		}
		percent = f["percent"].(float64)
	}
	if len(frames) < 2 || last["type"] != "result" || last["status"] != "completed" || last["result"] == nil {
		t.Errorf("it ends in %v", last)
	}
	again := h.frames(h.call("POST", "/api/ai/analyze", byDOI(mill), bearer(ada.token), stream).want(200))
	if len(again) != 1 || again[0]["type"] != "result" {
		t.Errorf("from the cache: %v", again)
	}
	closed := h.frames(h.call("POST", "/api/ai/analyze", byDOI("10.1000/closed"), bearer(ada.token), stream).want(200))
	if end := closed[len(closed)-1]; end["type"] != "error" || end["code"] != "closed_access" || !strings.Contains(end["error"].(string), "upload") {
		t.Errorf("a closed paper ends in %v", end)
	}
	h.call("POST", "/api/ai/analyze", byDOI("nonsense"), bearer(ada.token), stream).want(400)
	h.call("POST", "/api/ai/analyze", byDOI(mill), bearer("nonsense"), stream).want(401)
}

// heldBack keeps what the repository sends until the gate is opened.
func heldBack(h *harness) (gate chan struct{}) {
	gate = make(chan struct{})
	pdf := paperstest.PDF(paperstest.Sample)
	h.papers.Break(paperstest.Repository, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
			_, _ = w.Write(pdf)
		case <-r.Context().Done():
		}
	})
	return gate
}

func impatient(o *httpapi.Options, _ *builtin.Options) { o.AnalysisWait = time.Millisecond }

func TestAVisitorWhoWaitsIsAttachedAndChargedOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, impatient)
	gate := heldBack(h)
	first := h.call("POST", "/api/ai/analyze", byDOI(mill)).want(202)
	cookie, err := http.ParseSetCookie(first.header.Get("Set-Cookie"))
	if err != nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode {
		t.Fatalf("the cookie is %v, %v", cookie, err)
	}
	me := func(r *http.Request) { r.AddCookie(cookie) }
	again := h.call("POST", "/api/ai/analyze", byDOI(mill), me).want(202)
	if again.text("data", "analysisId") != first.text("data", "analysisId") || again.header.Get("Set-Cookie") != "" || again.at("data", "result") != nil {
		t.Errorf("again: %s", again.body)
	}
	close(gate)
	h.frames(h.call("POST", "/api/ai/analyze", byDOI(mill), me, stream).want(200)) // to its end
	done := h.call("POST", "/api/ai/analyze", byDOI(mill), me).want(200)
	if done.text("data", "analysisId") != first.text("data", "analysisId") || !strings.Contains(done.header.Get("RateLimit"), `"analyses";r=19`) {
		t.Errorf("in the end: %v %s", done.header, done.body)
	}
	if n := h.papers.Asked(paperstest.Repository); n != 1 {
		t.Errorf("it was fetched %d times", n)
	}
}

func TestTheWorkGoesOnWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	for name, accept := range map[string]string{"plain": "application/json", "stream": "text/event-stream"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			ada := h.signUp("Ada")
			gate := heldBack(h)
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan struct{})
			go func() {
				defer close(left)
				r := httptest.NewRequestWithContext(ctx, "POST", base+"/api/ai/analyze", strings.NewReader(byDOI(mill)))
				bearer(ada.token)(r)
				r.Header.Set("Accept", accept)
				h.mux.ServeHTTP(httptest.NewRecorder(), r)
			}()
			eventually(t, "the copy is being fetched", func() bool { return h.papers.Asked(paperstest.Repository) == 1 })
			leave()
			<-left
			close(gate)
			eventually(t, "it is read", func() bool {
				return h.call("GET", "/api/ai/status?doi="+mill, "", bearer(ada.token)).want(200).text("data", "status") == "completed"
			})
		})
	}
}

func TestQuotasOfVisitorsTeamsAndAddresses(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options, _ *builtin.Options) {
		o.AI.Limits = ai.Limits{PerOwner: 2, PerAddress: 3, Visitors: 5, FailedPerOwner: 9, FailedPerAddress: 9}
	})
	ask := func(n int, changes ...change) reply {
		name := doi.DOI(fmt.Sprintf("10.2000/%d", n))
		h.papers.Add(name, paperstest.Work{Title: "x", PDF: paperstest.PDF(paperstest.Sample)})
		return h.call("POST", "/api/ai/analyze", byDOI(string(name)), changes...)
	}
	cookieOf := func(r reply) change {
		c, err := http.ParseSetCookie(r.header.Get("Set-Cookie"))
		if err != nil {
			t.Fatal(err)
		}
		return func(r *http.Request) { r.AddCookie(c) }
	}
	here, there := from("203.0.113.7:1"), from("203.0.113.8:1")
	me := cookieOf(ask(1, here).want(200))
	ask(2, here, me).want(200)
	over := ask(3, here, me).wantCode(429, "analysis_quota_exhausted")
	var wait int
	if _, err := fmt.Sscan(over.header.Get("Retry-After"), &wait); err != nil || wait < 1 || wait > 24*60*60 {
		t.Errorf("Retry-After is %q", over.header.Get("Retry-After"))
	}
	ask(3, here, me, stream).wantCode(429, "analysis_quota_exhausted")
	ask(1, here, me).want(200) // from the cache
	forged := func(r *http.Request) {
		r.AddCookie(&http.Cookie{Name: "millrace_visitor", Value: "somebody.forged"})
	}
	ask(3, here, forged).want(200)                         // a new visitor, the third of this address
	ask(4, here).wantCode(429, "analysis_quota_exhausted") // the address is full
	ask(4, there).want(200)                                // the fourth of all
	ask(5, there).want(200)                                // the fifth
	ask(6, from("[2001:db8::1]:1")).wantCode(429, "analysis_quota_exhausted")
	ada := h.signUp("Ada") // who has an account is not among them
	ask(6, bearer(ada.token), here).want(200)
	ask(7, bearer(ada.token)).want(200)
	ask(8, bearer(ada.token)).wantCode(429, "analysis_quota_exhausted")
	h.pass(24 * time.Hour)
	ada.token = h.call("POST", "/auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`).want(200).text("data", "token")
	ask(8, bearer(ada.token)).want(200)
	ask(9, here, me).want(200)
}

// hurried gives the services little time.
func hurried(o *httpapi.Options, _ *builtin.Options) {
	l := o.AI.Library.(*papers.Library)
	l.LookupTime, l.FetchTime = 4*time.Second, 4*time.Second
}

func TestWhatFailsSaysWhyAndCostsNothing(t *testing.T) {
	t.Parallel()
	down := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", 500) }
	never := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	broken := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"doi":`) }
	half := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(paperstest.PDF(paperstest.Sample)[:80]) }
	type handlers = map[string]http.HandlerFunc
	hurry := []func(*httpapi.Options, *builtin.Options){hurried}
	for name, tt := range map[string]struct {
		doi    string
		broken handlers
		status int
		code   string
		used   float64
		change []func(*httpapi.Options, *builtin.Options)
	}{
		"Crossref is down: a lesser answer": {mill, handlers{"crossref": down}, 200, "", 1, nil},
		"OpenAlex is slow: a lesser answer": {mill, handlers{"openalex": never}, 200, "", 1, hurry},
		"Unpaywall is malformed":            {mill, handlers{"unpaywall": broken}, 409, "closed_access", 0, nil},
		"the PDF is cut off":                {mill, handlers{"pdf": half}, 409, "closed_access", 0, nil},
		"the PDF never comes":               {mill, handlers{"pdf": never}, 409, "closed_access", 0, hurry},
		"nobody answers":                    {mill, handlers{"crossref": down, "openalex": down, "unpaywall": down}, 503, "lookup_unavailable", 0, nil},
		"closed":                            {"10.1000/closed", nil, 409, "closed_access", 0, nil},
		"unknown":                           {"10.1000/unknown", nil, 404, "not_found", 0, nil},
		"no DOI":                            {"10.1000", nil, 400, "invalid", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, tt.change...)
			h.papers.Add("10.1000/closed", paperstest.Work{Title: "Closed", Closed: true})
			for service, answer := range tt.broken {
				h.papers.Break(service, answer)
			}
			ada := h.signUp("Ada")
			got := h.call("POST", "/api/ai/analyze", byDOI(tt.doi), bearer(ada.token)).want(tt.status)
			if tt.code != "" {
				got.wantCode(tt.status, tt.code)
			} else if notes := got.at("data", "result", "notes").([]any); !strings.Contains(fmt.Sprint(notes), "did not answer") {
				t.Errorf("the notes do not say what is missing: %v", notes)
			}
			if used := h.used(ada); used != tt.used {
				t.Errorf("it cost %v", used)
			}
			for service := range tt.broken { // and what is mended is read at once
				h.papers.Break(service, nil)
			}
			if tt.doi == mill {
				h.call("POST", "/api/ai/analyze", byDOI(mill), bearer(ada.token)).want(200)
			}
		})
	}
}
