package outputto

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// answers are what the other side says, and of which target it was asked.
type answers struct {
	fits, check error
	asked       []string
}

func (a *answers) FitsTarget(_ context.Context, _ ids.Team, t Target) error {
	a.asked = append(a.asked, t.URL)
	return a.fits
}

func (a *answers) CheckTarget(_ context.Context, _ ids.Team, t Target) error {
	a.asked = append(a.asked, t.URL)
	return a.check
}

func TestATargetIsAskedBeforeARunIsAccepted(t *testing.T) {
	t.Parallel()
	target := Target{URL: "s3://lab/{runId}/out/", Connection: "conn_1"}
	member, guest := Asker{Team: "team_1", Run: "run_1"}, Asker{Team: "team_1", Run: "run_1", Guest: true}
	for name, tt := range map[string]struct {
		asker   Asker
		answers *answers
		kind    fault.Kind
		code    string
		message string
	}{
		"it can be written to":    {member, &answers{}, "", "", ""},
		"a guest":                 {guest, &answers{}, fault.KindForbidden, "output_to_not_allowed", ""},
		"a server that copies no": {member, nil, fault.KindInvalid, "", "copies no outputs"},
		"not the team's":          {member, &answers{fits: fault.NotFound("no such connection")}, fault.KindNotFound, "", "no such connection"},
		"gone meanwhile":          {member, &answers{check: fault.NotFound("no such connection")}, fault.KindNotFound, "", "no such connection"},
		"outside its prefix":      {member, &answers{check: fault.Forbidden("not below lab/").WithCode("outside")}, fault.KindForbidden, "outside", "not below"},
		"refused over there":      {member, &answers{check: fault.Forbidden("access denied")}, fault.KindInvalid, "output_unreachable", "s3://lab/run_1/out/: access denied"},
		"no answer":               {member, &answers{check: errors.New("dial tcp 10.1.2.3: secret")}, fault.KindInvalid, "output_unreachable", "it did not answer within 10 seconds"},
	} {
		var targets Targets
		if tt.answers != nil {
			targets = tt.answers
		}
		c, err := target.Check(t.Context(), tt.asker, targets)
		if tt.kind == "" {
			if err != nil || c == nil || c.Target != target || strings.Join(tt.answers.asked, " ") != "s3://lab/run_1/out/ s3://lab/run_1/out/" {
				t.Errorf("%s: %+v, asked %q, %v", name, c, tt.answers.asked, err)
			}
			continue
		}
		e, _ := errors.AsType[*fault.Error](err)
		if e == nil || e.Kind != tt.kind || e.Code != tt.code || !strings.Contains(e.Message, tt.message) || strings.Contains(e.Message, "secret") {
			t.Errorf("%s: %+v", name, err)
		}
	}
	if c, err := (*Target)(nil).Check(t.Context(), guest, nil); c != nil || err != nil {
		t.Errorf("without a target: %+v, %v", c, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := target.Check(cancelled, member, &answers{check: context.Canceled}); !errors.Is(err, context.Canceled) {
		t.Errorf("whoever asked has left: %v", err)
	}
}

func TestAnEarlierTargetStaysWhileItCanBeReached(t *testing.T) {
	t.Parallel()
	target := Target{URL: "s3://lab/", Connection: "conn_1"}
	for name, tt := range map[string]struct {
		fits  error
		stays bool
	}{
		"as it was": {nil, true}, "its connection is gone": {fault.NotFound("no such connection"), false}, "it is for another bucket now": {fault.Invalid("for another bucket"), true}, "nobody knows": {errors.New("down"), true},
	} {
		if got := target.Still(t.Context(), Asker{}, &answers{fits: tt.fits}); (got != nil) != tt.stays {
			t.Errorf("%s: %v", name, got)
		}
	}
}
