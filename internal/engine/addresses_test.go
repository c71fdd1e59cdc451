package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/store/storetest"
)

// farAway is a store elsewhere.
type farAway struct {
	mu      sync.Mutex
	text    string
	etag    string
	refuses error
	opened  int
}

func (f *farAway) Open(_ context.Context, _ ids.Team, o addresses.Object, from, length int64) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened++
	switch {
	case f.refuses != nil:
		return nil, f.refuses
	case o.ETag != "" && o.ETag != f.etag:
		return nil, fault.Conflict("the object has changed")
	case length < 0:
		return io.NopCloser(strings.NewReader(f.text[from:])), nil
	}
	return io.NopCloser(strings.NewReader(f.text[from : from+length])), nil
}

func (f *farAway) set(change func(*farAway)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *farAway) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened
}

func (f *farAway) object() addresses.Object {
	return addresses.Object{Address: addresses.Address{URL: "s3://lab/o.txt"}, Endpoint: "https://s3.example.org", Size: int64(len(f.text)), ETag: f.etag}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// takeGiven gives a run what lies elsewhere, as it is accepted.
func (s *harness) takeGiven(r *runs.Run) {
	s.t.Helper()
	r.Addresses = append(r.Addresses, s.given...)
	if err := s.db.LearntHashes(s.t.Context(), s.team, r.Addresses); err != nil {
		s.t.Fatal(err)
	}
	var urls []string
	for _, o := range r.Addresses {
		urls = append(urls, o.URL)
	}
	inputs, err := json.Marshal(map[string][]string{"ref": urls})
	if err != nil {
		s.t.Fatal(err)
	}
	r.Inputs = inputs
	r.Needs = append(r.Needs, admission.Need{Kind: admission.Inputs, Ref: string(r.Team)})
}

// reading is a workflow of which 20 tasks read the same input.
func reading(more string) string {
	return `{"inputs":{"ref":{"type":"file"}},"nodes":[{"id":"each","command":"# dummy: output:x=y","outputs":{"x":{"path":"x"}},
		"inputs":{"in":{"from":"inputs.ref"}},"scatter":{"over":"[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]"}` + more + `}]}`
}

func TestWhatLiesElsewhereIsFetchedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		far := &farAway{text: "genome", etag: "e1"}
		st := &stager{node: "each", sealed: true}
		s.around = func(d *dummy.Driver) executor.Driver { st.Driver = d; return st }
		s.elsewhere, s.given = far, []addresses.Object{far.object()}
		s.open("w1")
		first := s.submit(reading(`,"cache":true`), `{}`)
		if r := s.await(first, terminal); r.Status != lifecycle.Completed {
			t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
		}
		if n := far.times(); n != 1 || len(st.found) != 20 {
			t.Errorf("read %d times for %d tasks", n, len(st.found))
		}
		list, err := s.db.AddressesOf(t.Context(), s.team, first)
		if err != nil || len(list) != 1 || list[0].Learnt != hashOf("genome") {
			t.Errorf("%+v, %v", list, err)
		}
		// What was computed from it is reused, and nothing fetched for that.
		far.set(func(f *farAway) { f.refuses = fault.Forbidden("nobody may read it now") })
		again := s.submit(reading(`,"cache":true`), `{}`)
		if r := s.await(again, terminal); r.Status != lifecycle.Completed || len(st.found) != 20 {
			t.Errorf("%s: %s, %d tasks", r.Status, r.ErrorMessage, len(st.found))
		}
		// Another run finds the bytes here.
		other := s.submit(reading(``), `{}`)
		if r := s.await(other, terminal); r.Status != lifecycle.Completed || len(st.found) != 40 || far.times() != 1 {
			t.Errorf("%s: %s, %d tasks, read %d times", r.Status, r.ErrorMessage, len(st.found), far.times())
		}
	})
}

func TestWhatLiesElsewhereIsVerified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*farAway, *addresses.Object)
		code   lifecycle.ErrorCode
		says   string
	}{
		"it is right":                    {func(_ *farAway, o *addresses.Object) { o.SHA256 = hashOf("genome") }, "", ""},
		"it has changed":                 {func(f *farAway, _ *addresses.Object) { f.etag, f.text = "e2", "enigma" }, lifecycle.InputChanged, "s3://lab/o.txt has changed"},
		"another sha256 was given":       {func(_ *farAway, o *addresses.Object) { o.SHA256 = hashOf("other") }, lifecycle.InputChanged, "is not what was asked for"},
		"nobody may read it":             {func(f *farAway, _ *addresses.Object) { f.refuses = fault.Forbidden("no credentials like these") }, lifecycle.InputUnreachable, "no credentials like these"},
		"no etag":                        {func(_ *farAway, o *addresses.Object) { o.ETag = "" }, "", ""},
		"no etag, and another length":    {func(f *farAway, o *addresses.Object) { o.ETag, f.text = "", "gene" }, lifecycle.InputChanged, "has changed"},
		"no etag, and nobody knows size": {func(_ *farAway, o *addresses.Object) { o.ETag, o.Size = "", -1 }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, storetest.SQLite(t))
			far := &farAway{text: "genome", etag: "e1"}
			o := far.object()
			tt.change(far, &o)
			s.elsewhere, s.given = far, []addresses.Object{o}
			s.open("w1")
			id := s.submit(`{"inputs":{"ref":{"type":"file"}},"nodes":[{"id":"one","command":"true","inputs":{"in":{"from":"inputs.ref"}}}]}`, `{}`)
			r := s.await(id, terminal)
			if r.ErrorCode != tt.code || !strings.Contains(r.ErrorMessage, tt.says) || (tt.code == "") != (r.Status == lifecycle.Completed) {
				t.Errorf("%s %s: %s", r.Status, r.ErrorCode, r.ErrorMessage)
			}
			// When it is back, another try goes through.
			far.set(func(f *farAway) { f.refuses = nil })
			if tt.code == lifecycle.InputUnreachable {
				again := s.retry(string(r.Definition), id)
				if r := s.await(again, terminal); r.Status != lifecycle.Completed {
					t.Errorf("%s: %s", r.Status, r.ErrorMessage)
				}
			}
		})
	}
}

// slowFor is a store elsewhere that sends nothing to one team.
type slowFor struct {
	*farAway
	team   ids.Team
	opened chan struct{}
}

func (f slowFor) Open(ctx context.Context, team ids.Team, o addresses.Object, from, length int64) (io.ReadCloser, error) {
	if team != f.team {
		return f.farAway.Open(ctx, team, o, from, length)
	}
	f.opened <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// Runs that wait for the slow hosts of one team keep no other team's run from being
// prepared and started.
func TestSlowHostsOfOneTeamHoldUpNoOtherTeam(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	far := slowFor{&farAway{text: "genome", etag: "e1"}, s.team, make(chan struct{}, 100)}
	s.images, s.elsewhere = everyImage{t.TempDir()}, far
	s.open("w1")
	const definition = `{"inputs":{"ref":{"type":"file"}},"nodes":[{"id":"a","image":"alpine:3","command":"true","inputs":{"in":{"from":"inputs.ref"}}}]}`
	slow := make([]ids.Run, 6)
	for i := range slow {
		o := far.object()
		o.URL = fmt.Sprintf("https://slow%d.example.org/reads", i)
		s.given = []addresses.Object{o}
		slow[i] = s.submit(definition, `{}`)
	}
	for range 4 {
		<-far.opened
	}
	team := s.team
	other := storetest.Owner(t, s.db, "other")
	s.team, s.user, s.given = other.Team, other.User, []addresses.Object{far.object()}
	if r := s.await(s.submit(definition, `{}`), terminal); r.Status != lifecycle.Completed {
		t.Errorf("%s: %s", r.Status, r.ErrorMessage)
	}
	s.team = team
	for _, id := range slow {
		if r := s.await(id, func(runs.Run) bool { return true }); r.Status != lifecycle.Queued {
			t.Errorf("a run whose host sends nothing is %s", r.Status)
		}
	}
}
