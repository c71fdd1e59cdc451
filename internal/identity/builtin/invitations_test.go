package builtin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// hasty is a database in which somebody revokes an invitation in the moment
// before it is accepted.
type hasty struct {
	*store.DB
	team ids.Team
}

func (h hasty) AcceptInvitation(ctx context.Context, inv identity.Invitation, user ids.User, session ids.Session, now time.Time) error {
	return errors.Join(h.RevokeInvitation(ctx, h.team, inv.ID, now), h.DB.AcceptInvitation(ctx, inv, user, session, now))
}

type noPost struct{}

func (noPost) SendNow(context.Context) {}
func (noPost) SendSoon()               {}

func TestAnInvitationThatIsRevokedInTheLastMomentIsRevoked(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Now()
		person := func(name string) builtin.NewAccount {
			a := builtin.NewAccount{
				Account:   builtin.Account{User: identity.User{ID: ids.NewUser(), Email: name + "@example.org", Name: name}},
				Team:      identity.Team{ID: ids.NewTeam(), Name: name, Plan: "free"},
				CreatedAt: now,
			}
			if err := db.SignUp(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			return a
		}
		ada, bob := person("ada"), person("bob")
		stores := db.Identity()
		stores.Invitations = hasty{db, ada.Team.ID}
		s := builtin.New(builtin.Options{Stores: stores, Post: noPost{}, Passwords: builtin.NewPasswords(), Origins: []string{"http://a"}, Now: time.Now})
		made, err := s.Invite(t.Context(), access.Caller{User: ada.ID, Team: ada.Team.ID, Role: access.Owner}, identity.NewInvitation{
			Email: bob.Email, Role: access.Member, Link: func(secret string) string { return secret },
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Invitations.Accept(t.Context(), identity.Presence{User: bob.User}, made.Link)
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Kind != fault.KindForbidden || e.Code != "revoked" {
			t.Errorf("%v", err)
		}
	})
}
