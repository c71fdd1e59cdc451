package remote

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/internal/attempts"
)

// server is one that answers as it is told, and remembers what it was asked.
type server struct {
	*client
	mu    sync.Mutex
	asked []string // method, path and length of the body as the header says
	got   map[string]string
}

// answering starts a server of attempt a.0.1.
func answering(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body string)) *server {
	t.Helper()
	s := &server{got: map[string]string{}}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/base/attempts/a.0.1")
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked = append(s.asked, fmt.Sprint(r.Method, " ", path, " ", r.ContentLength))
		s.got[path] = string(body)
		s.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+s.session {
			t.Errorf("%s is asked by %q", path, r.Header.Get("Authorization"))
		}
		answer(w, r, string(body))
	}))
	t.Cleanup(h.Close)
	c, err := newClient(h.URL+"/base/", "a.0.1", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	s.client = c
	return s
}

// questions are what the server was asked so far, and what it was sent by path.
func (s *server) questions() (asked []string, got map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.asked)), maps.Clone(s.got)
}

// no is a refusal of a server of ours.
func no(w http.ResponseWriter, status int, why string) {
	w.Header().Set(attempts.Answered, "1")
	http.Error(w, why, status)
}

func TestWhereTheServerIs(t *testing.T) {
	t.Parallel()
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"logSize": 7}`) }))
	defer tls.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))
	for name, tt := range map[string]struct{ url, ca, words string }{
		"nothing":           {"", "", "no address of a server"},
		"no scheme":         {"server:8080", "", "no address of a server"},
		"another scheme":    {"ftp://server", "", "no address of a server"},
		"no host":           {"http://", "", "no address of a server"},
		"no address at all": {"http://[", "", "no address of a server"},
		"no certificate":    {tls.URL, "hello", "no certificate in it"},
	} {
		if _, err := newClient(tt.url, "a", tt.ca); err == nil || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := newClient(tls.URL, "a", ca)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := c.report(t.Context(), attempts.Report{}); err != nil || a.LogSize != 7 {
		t.Errorf("%+v, %v", a, err)
	}
	c.http.CloseIdleConnections()
	stranger, err := newClient(tls.URL, "a", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.report(t.Context(), attempts.Report{}); err == nil || isRefused(err) {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
	if stranger.session == c.session || len(c.session) < 40 {
		t.Errorf("a session that can be guessed: %q", c.session)
	}
}

// A refusal counts where a server of ours says it, and nowhere on the way.
func TestWhatARefusalIs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		ours   bool
		want   bool
	}{
		"gone":                   {http.StatusGone, true, true},
		"no session":             {http.StatusUnauthorized, true, true},
		"a proxy has no page":    {http.StatusNotFound, false, false},
		"a proxy is asked first": {http.StatusUnauthorized, false, false},
		"an error of ours":       {http.StatusInternalServerError, true, false},
		"shutting down":          {http.StatusServiceUnavailable, true, false},
		"not quite done":         {http.StatusAccepted, true, false},
	} {
		s := answering(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
			if tt.ours {
				w.Header().Set(attempts.Answered, "1")
			}
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, "why "+strings.Repeat("x", 10_000))
		})
		_, err := s.report(t.Context(), attempts.Report{})
		if err == nil || isRefused(err) != tt.want || !strings.Contains(err.Error(), fmt.Sprintf("the server answers %d: why", tt.status)) {
			t.Errorf("%s: %.100v", name, err)
		}
		if err != nil && len(err.Error()) > 1100 {
			t.Errorf("%s: %d bytes of an error", name, len(err.Error()))
		}
	}
}

func TestAShimIntroducesItself(t *testing.T) {
	t.Parallel()
	s := answering(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
		_, _ = io.WriteString(w, `{"in": "/in", "inherit": true}`)
	})
	task, err := s.begin(t.Context(), "f1", "t1")
	if err != nil || task.In != "/in" || !task.Inherit {
		t.Errorf("%+v, %v", task, err)
	}
	var said attempts.Begin
	_, got := s.questions()
	if err := json.Unmarshal([]byte(got["/begin"]), &said); err != nil || said != (attempts.Begin{Version: attempts.Version, Fence: "f1", Ticket: "t1", Session: s.session}) {
		t.Errorf("%+v, %v", said, err)
	}
	garbled := answering(t, func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = io.WriteString(w, `<html>`) })
	if _, err := garbled.begin(t.Context(), "f1", "t1"); err == nil || isRefused(err) {
		t.Errorf("what is no answer: %v", err)
	}
}

// What fails is tried again, until it is refused or nobody wants it any more.
func TestTryingAgain(t *testing.T) {
	t.Parallel()
	passing, final := errors.New("no route"), refused{410, "over"}
	for name, tt := range map[string]struct {
		answers []error
		want    error
	}{
		"at once":       {[]error{nil}, nil},
		"in the end":    {[]error{passing, passing, passing, passing, passing, passing, passing, passing, nil}, nil},
		"refused":       {[]error{final}, final},
		"then refused":  {[]error{passing, final}, final},
		"refused, deep": {[]error{fmt.Errorf("input: %w", final)}, final},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			err := again(t.Context(), func() error {
				tries++
				return tt.answers[tries-1]
			})
			if !errors.Is(err, tt.want) || tries != len(tt.answers) {
				t.Errorf("%s: %v after %d", name, err, tries)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), deliverFor)
		defer cancel()
		tries := 0
		err := again(ctx, func() error { tries++; return passing })
		if !errors.Is(err, passing) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if most := int(deliverFor/retryMost) + 10; tries > most || tries < most/2 {
			t.Errorf("tried %d times in an hour", tries)
		}
	})
}
