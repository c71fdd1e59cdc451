package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/papers/paperstest"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

const mill = `{"doi":"10.1000/mill"}`

// slowPaper is the services with one paper, whose copy waits for a gate.
func slowPaper(t *testing.T) (w *paperstest.Services, gate chan struct{}) {
	t.Helper()
	w, gate = paperstest.New(t), make(chan struct{})
	pdf := paperstest.PDF(paperstest.Sample)
	w.Add("10.1000/mill", paperstest.Work{Title: "On Mills"})
	w.Break(paperstest.Repository, func(out http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
			_, _ = out.Write(pdf)
		case <-r.Context().Done():
		}
	})
	return w, gate
}

// withPapers are the settings that point a server at these services.
func withPapers(w *paperstest.Services, args ...string) []string {
	o := w.Options()
	return append(args, "--crossref-url", o.CrossrefURL, "--openalex-url", o.OpenAlexURL, "--unpaywall-url", o.UnpaywallURL, "--fetch-allow-private")
}

// asks lets somebody ask for the paper and waits until its copy is being
// fetched for the nth time.
func (s *server) asks(w *paperstest.Services, token string, n int) {
	s.t.Helper()
	go func() { // the answer never comes: the server dies or stops first
		req, err := http.NewRequest("POST", s.base+"/api/ai/analyze", strings.NewReader(mill))
		if err != nil {
			s.t.Error(err)
			return
		}
		req.Header.Set("Authorization", bearer(token))
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
		}
	}()
	s.fetched(w, n)
}

func (s *server) fetched(w *paperstest.Services, n int) {
	s.t.Helper()
	if !waittest.Until(func() bool { return w.Asked(paperstest.Repository) >= n }) {
		s.t.Fatalf("the copy was fetched %d times, want %d\n%s", w.Asked(paperstest.Repository), n, s.log)
	}
}

// readBy waits until the paper is read.
func (s *server) readBy(token string) (a map[string]any) {
	s.t.Helper()
	await(s.t, "the end of the reading", func() bool {
		a = s.want(200, "GET", "/api/ai/status?doi=10.1000/mill", "", "Authorization", bearer(token))
		return a["status"] == "completed" || a["status"] == "failed"
	})
	return a
}

func TestAnAnalysisSurvivesAPowerCutAndAStop(t *testing.T) {
	t.Parallel()
	w, gate := slowPaper(t)
	args := withPapers(w, "--data", t.TempDir())
	s := start(t, args...)
	args = append(args, "--public-urls", s.base)
	token, cookie, _ := s.signUp("ada")
	s.asks(w, token, 1)
	before := s.want(200, "GET", "/api/ai/status?doi=10.1000/mill", "", "Authorization", bearer(token))
	if before["status"] != "processing" || before["stage"] != "fetching" {
		t.Errorf("before: %v", before)
	}
	s.kill()
	s = start(t, args...)
	s.fetched(w, 2) // taken up again by itself

	// A stop hands it over at once, without waiting for it.
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.drained
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, s.log)
	}
	close(gate)
	s = start(t, args...)
	token = s.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	after := s.readBy(token)
	if after["status"] != "completed" || after["analysisId"] != before["analysisId"] {
		t.Errorf("after: %v\n%s", after, s.log)
	}
	if q := s.want(200, "GET", "/api/billing/credits", "", "Authorization", bearer(token))["aiAnalysis"].(map[string]any); q["used"] != 1.0 {
		t.Errorf("it cost %v", q)
	}
}

func TestAServerThatKillsItsReaderAgainAndAgainGivesUp(t *testing.T) {
	t.Parallel()
	w, _ := slowPaper(t)
	args := withPapers(w, "--data", t.TempDir())
	s := start(t, args...)
	args = append(args, "--public-urls", s.base)
	token, cookie, _ := s.signUp("ada")
	s.asks(w, token, 1)
	for n := 2; n <= 3; n++ {
		s.kill()
		s = start(t, args...)
		s.fetched(w, n)
	}
	s.kill()
	s = start(t, args...)
	token = s.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	if a := s.readBy(token); a["status"] != "failed" || !strings.Contains(a["error"].(string), "interrupted") {
		t.Errorf("it is %v", a)
	}
	if q := s.want(200, "GET", "/api/billing/credits", "", "Authorization", bearer(token))["aiAnalysis"].(map[string]any); q["used"] != 0.0 {
		t.Errorf("it cost %v", q)
	}
}

func TestAnotherServerReadsOnWhenOneIsLost(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	w, gate := slowPaper(t)
	shared := withPapers(w, "--database-url", url, "--secret-key", storetest.SecretKey, "--sign-up", "open")
	one := start(t, append(shared, "--data", t.TempDir())...)
	token, _, _ := one.signUp("ada")
	one.asks(w, token, 1)
	two := start(t, append(shared, "--data", t.TempDir(), "--public-urls", one.base)...)
	one.kill()
	two.fetched(w, 2) // when the lease of the lost one is over
	close(gate)
	if a := two.readBy(token); a["status"] != "completed" {
		t.Errorf("it is %v\n%s", a, two.log)
	}
}
