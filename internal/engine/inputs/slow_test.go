package inputs

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// slowTeams is a remote whose hosts send nothing to some teams and everything to
// others.
type slowTeams struct {
	*far
	opened chan struct{}
}

func (s *slowTeams) Open(ctx context.Context, team ids.Team, o addresses.Object, from, length int64) (io.ReadCloser, error) {
	if !strings.HasPrefix(string(team), "team_slow") {
		return s.far.Open(ctx, team, o, from, length)
	}
	select {
	case s.opened <- struct{}{}:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// While the slow hosts of ten teams, which one account can make in a day, hold as many
// transfers as they can, another team's input arrives.
func TestSlowHostsLeaveOtherTeamsTheirTurns(t *testing.T) {
	t.Parallel()
	const teams = 10
	bytes, sum := random(1000)
	remote := &slowTeams{far: &far{bytes: bytes, left: -1}, opened: make(chan struct{})}
	s := NewFetched(t.TempDir(), remote, 1<<40, neverLow)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var slow sync.WaitGroup
	for team := range teams {
		for host := range maxTeamFiles + 2 {
			slow.Go(func() {
				o := object(10)
				o.URL = fmt.Sprintf("https://h%d.example.org/reads", host)
				if _, err := s.Fetch(ctx, ids.Team(fmt.Sprint("team_slow", team)), "run_slow", o, ignore); err == nil {
					t.Error("a host that sends nothing was read")
				}
			})
		}
	}
	for range teams * maxTeamFiles { // they hold their turns
		<-remote.opened
	}
	got := make(chan string)
	go func() {
		sum, _ := s.Fetch(ctx, "team_other", "run_other", object(len(bytes)), ignore)
		got <- sum
	}()
	select {
	case <-remote.opened:
		t.Error("a slow team has more turns than a team may")
	case arrived := <-got:
		if arrived != sum {
			t.Errorf("the other team got %q", arrived)
		}
	}
	stop()
	slow.Wait()
}

// drip sends one byte a second until nobody reads any more.
type drip struct{ ctx context.Context }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Second):
		return copy(p, "x"), nil
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

type drips struct {
	breaksOff bool // after each byte
}

func (d drips) Open(ctx context.Context, _ ids.Team, _ addresses.Object, _, _ int64) (io.ReadCloser, error) {
	if d.breaksOff {
		return io.NopCloser(io.LimitReader(drip{ctx}, 1)), nil
	}
	return io.NopCloser(drip{ctx}), nil
}

// A host that sends a byte a second would hold its turn for weeks. It is given up, and
// the team reads why.
func TestSlowHostIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		etag      string
		breaksOff bool
		words     string
	}{
		"in parts":              {"e", false, "it sends too slowly"},
		"as a whole":            {"", false, "sends too slowly"},
		"with many connections": {"e", true, "breaks off again and again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := addresses.Object{Address: addresses.Address{URL: secretLink}, Size: 1 << 30, ETag: tt.etag}
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				_, err := NewFetched(t.TempDir(), drips{tt.breaksOff}, 1<<40, neverLow).Fetch(ctx, "team_1", "run_1", o, ignore)
				if codeOf(err) != unreachableCode || !strings.Contains(err.Error(), tt.words) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%v (%s)", err, codeOf(err))
				}
			})
		})
	}
}
