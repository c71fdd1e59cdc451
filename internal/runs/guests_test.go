package runs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/secrets"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/store/storetest"
)

// guest is who holds a link to a workflow.
func (b *bench) guest(w ids.Workflow, allowed bool) access.Caller {
	b.t.Helper()
	i := sharing.Invite{
		ID: ids.NewInvite(), Team: b.owner.Team, Workflow: w, Role: sharing.Editor, Hours: 1, AllowSecrets: allowed, ExpiresAt: b.clock.Now().Add(time.Hour),
		CreatedBy: b.owner.User, CreatedByName: b.owner.Name, CreatedAt: b.clock.Now(),
	}
	if err := b.db.InsertInvite(b.t.Context(), i, "hash of "+string(i.ID), nil); err != nil {
		b.t.Fatal(err)
	}
	return access.Caller{Team: b.owner.Team, Name: "Guest", Role: access.GuestEditor, Guest: &access.Guest{ID: "guest_1", Invite: i.ID, Workflow: w, Secrets: allowed}}
}

func given(key string) map[string]json.RawMessage {
	text, _ := json.Marshal(key)
	return map[string]json.RawMessage{"reads": text}
}

// A guest uses the files that runs of their workflow were given. Of all others they
// hear the same, whether the team has them or not.
func TestAGuestFindsOutNoFiles(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		all := b.kept()
		ctx, w := t.Context(), b.workflow(`{"inputs":{"reads":{"required":true}},"nodes":[{"id":"a","command":"true"}]}`)
		maker := b.start(b.owner, b.workflow(`{"nodes":[{"id":"a","command":"true","outputs":{"o":{"path":"o"}}}]}`))
		made := b.put(all, fmt.Sprintf("teams/%s/runs/%s/a/0", b.owner.Team, maker.ID), "made")
		made.Node, made.Port = "a", "o"
		b.carryOut(maker.ID, lifecycle.Completed, runs.Step{Outputs: []runs.Output{made}})
		guest := b.guest(w, false)
		submit := func(as access.Caller, key string) string {
			_, err := b.Submit(ctx, as, runs.New{Workflow: w, Inputs: given(key)})
			if e, ok := errors.AsType[*fault.Error](err); ok {
				return string(e.Kind) + ": " + e.Message
			}
			if err != nil {
				t.Fatal(err)
			}
			return ""
		}
		none := made.Key + "1"
		theirs, absent := submit(guest, made.Key), submit(guest, none)
		if want := fmt.Sprintf("not_found: the team has no file with the key %q", made.Key); theirs != want {
			t.Errorf("of a file that the team has: %q", theirs)
		}
		if want := fmt.Sprintf("not_found: the team has no file with the key %q", none); absent != want {
			t.Errorf("of one that nobody has: %q", absent)
		}
		if got := submit(b.owner, made.Key); got != "" {
			t.Fatalf("a member: %s", got)
		}
		if got := submit(guest, made.Key); got != "" {
			t.Errorf("of one that a run of the workflow was given: %q", got)
		}
		if got := submit(b.guest(b.workflow(asking), false), made.Key); got != "forbidden: your link is for another workflow" {
			t.Errorf("of another workflow: %q", got)
		}
	})
}

// What a guest may not give a run, in the words that they are told.
func TestAGuestStartsRunsAsTheyAre(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		plain := b.workflow(`{"inputs":{"reads":{"required":false}},"nodes":[{"id":"a","command":"true"}]}`)
		if _, err := b.db.PutSecret(ctx, b.owner.Team, secrets.Secret{Name: "TOKEN", UpdatedAt: b.clock.Now()}, "sealed", 100); err != nil {
			t.Fatal(err)
		}
		secret := b.workflow(`{"nodes":[{"id":"a","command":"true","secrets":["TOKEN"]}]}`)
		for name, tt := range map[string]struct {
			as   access.Caller
			in   runs.New
			kind fault.Kind
			code string
		}{
			"nothing":               {b.guest(plain, false), runs.New{Workflow: plain}, "", ""},
			"a name":                {b.guest(plain, true), runs.New{Workflow: plain, Label: runs.Label{Name: "n"}}, fault.KindForbidden, ""},
			"a note":                {b.guest(plain, true), runs.New{Workflow: plain, Label: runs.Label{Note: "n"}}, fault.KindForbidden, ""},
			"tags":                  {b.guest(plain, true), runs.New{Workflow: plain, Label: runs.Label{Tags: []string{"t"}}}, fault.KindForbidden, ""},
			"an executor":           {b.guest(plain, true), runs.New{Workflow: plain, Executor: "cluster"}, fault.KindForbidden, ""},
			"an address":            {b.guest(plain, true), runs.New{Workflow: plain, Inputs: given("https://host.example/x")}, fault.KindForbidden, "addresses_not_allowed"},
			"an address, by others": {b.owner, runs.New{Workflow: plain, Inputs: given("https://host.example/x")}, fault.KindInvalid, ""},
			"secrets":               {b.guest(secret, false), runs.New{Workflow: secret}, fault.KindForbidden, "secrets_not_allowed"},
			"secrets, allowed":      {b.guest(secret, true), runs.New{Workflow: secret}, "", ""},
			"secrets, by others":    {b.owner, runs.New{Workflow: secret}, "", ""},
		} {
			r, err := b.Submit(ctx, tt.as, tt.in)
			storetest.Refused(t, name, err, tt.kind)
			if e, ok := errors.AsType[*fault.Error](err); ok && tt.code != "" && e.Code != tt.code {
				t.Errorf("%s: the code is %s", name, e.Code)
			}
			if err == nil && tt.as.Guest != nil && (r.Invite != tt.as.Guest.Invite || r.Starter.Type != "guest") {
				t.Errorf("%s: started by %+v through %q", name, r.Starter, r.Invite)
			}
		}
		missing := b.workflow(`{"nodes":[{"id":"a","command":"true","secrets":["TOKEN","OTHER"]}]}`)
		_, err := b.Submit(ctx, b.owner, runs.New{Workflow: missing})
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "incomplete_workflow" || len(e.Details) != 1 {
			t.Errorf("a secret that the team has not: %v", err)
		}
	})
}
