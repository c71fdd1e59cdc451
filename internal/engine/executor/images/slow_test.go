package images_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor/images"
)

// sendNothing has a registry answer requests for what has a word in its path, and send
// nothing, until the client leaves. Each that holds is told.
func sendNothing(h *hub, word string, holding chan<- string) {
	h.stepIn(func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, word) {
			return false
		}
		select {
		case holding <- r.URL.Path:
			<-r.Context().Done()
		case <-r.Context().Done():
		}
		return true
	})
}

// While the slow registries of ten teams, which one account can make in a day, hold as
// many pulls, or look-ups, as they can, another team's image arrives.
func TestSlowRegistriesLeaveOtherTeamsTheirTurns(t *testing.T) {
	t.Parallel()
	const teams = 10
	for word, most := range map[string]int{"/blobs/": 4, "/manifests/": 8} {
		t.Run(strings.Trim(word, "/"), func(t *testing.T) {
			t.Parallel()
			slow, fast, s := newHub(t), newHub(t), open(t, images.Config{AllowPrivate: true})
			type pull struct {
				team        images.Team
				ref, digest string
			}
			var wanted []pull
			for team := range teams {
				for i := range most + 1 { // one more than a team may
					p := pull{team: s.For(ids.Team(fmt.Sprint("team_slow", team)))}
					name := fmt.Sprintf("%d of %d", i, team)
					p.ref = slow.push(t, fmt.Sprintf("lab/slow%d-%d", team, i), image(t, nil, layer(t, file{name: "v", text: name})))
					var err error
					if p.digest, err = p.team.Resolve(t.Context(), p.ref); err != nil {
						t.Fatal(err)
					}
					wanted = append(wanted, p)
				}
			}
			ref := fast.push(t, "lab/fast", image(t, nil, layer(t, file{name: "v", text: "fast"})))
			holding := make(chan string)
			sendNothing(slow, word, holding)
			ctx, stop := context.WithCancel(t.Context())
			var pulls sync.WaitGroup
			for _, p := range wanted {
				pulls.Go(func() {
					_, err := p.team.Resolve(ctx, p.ref)
					if err == nil {
						_, _, _, err = p.team.Root(ctx, p.ref, p.digest)
					}
					if err == nil {
						t.Error("a registry that sends nothing was read")
					}
				})
			}
			for range teams * most {
				<-holding
			}
			root, _ := get(t, s, ref)
			if got := read(t, root, "v"); got != "fast" {
				t.Error(got)
			}
			stop()
			pulls.Wait()
		})
	}
}

// A slow registry that offers an image under a digest that others use too keeps nobody
// from having it from where they name.
func TestSlowRegistryDoesNotHoldBackTheSameImageOfAnother(t *testing.T) {
	t.Parallel()
	slow, fast, s := newHub(t), newHub(t), open(t, images.Config{AllowPrivate: true})
	popular := image(t, nil, layer(t, file{name: "v", text: "popular"}))
	bait, ref := slow.push(t, "lab/bait", popular), fast.push(t, "lab/popular", popular)
	team := s.For("team_slow")
	digest, err := team.Resolve(t.Context(), bait)
	if err != nil {
		t.Fatal(err)
	}
	holding := make(chan string)
	sendNothing(slow, "/blobs/", holding)
	ctx, stop := context.WithCancel(t.Context())
	var pull sync.WaitGroup
	pull.Go(func() { _, _, _, _ = team.Root(ctx, bait, digest) })
	<-holding
	root, _ := get(t, s, ref)
	if got := read(t, root, "v"); got != "popular" {
		t.Error(got)
	}
	stop()
	pull.Wait()
	if left := hidden(t, s); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}
