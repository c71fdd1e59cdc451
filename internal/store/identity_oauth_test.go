package store_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

func tokens(n int) builtin.NewTokens {
	return builtin.NewTokens{
		Grant: fmt.Sprint("grant ", n), AccessID: fmt.Sprint("access ", n), AccessHash: fmt.Sprint("access hash ", n), RefreshHash: fmt.Sprint("refresh hash ", n),
		AccessUntil: noon.Add(time.Hour), GrantUntil: noon.Add(24 * time.Hour), Now: noon,
	}
}

// However many redeem it in the same moment, a code gives one grant at most,
// and none is left, because the others are replays.
func TestACodeIsRedeemedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ada := person(t, db, "ada@example.org")
		code := builtin.Code{Hash: "code", User: ada.ID, Client: "millrace-cli", RedirectURI: "http://127.0.0.1/", Challenge: "c", ExpiresAt: noon.Add(time.Minute)}
		if err := db.InsertCode(t.Context(), code, noon); err != nil {
			t.Fatal(err)
		}
		fits := func(builtin.Code) error { return nil }
		if got := winners(t, 8, func(n int) error { return db.RedeemCode(t.Context(), "code", fits, tokens(n)) }); got != 1 {
			t.Errorf("%d of 8 redeemed it", got)
		}
		apps, err := db.Apps(t.Context(), ada.ID, noon)
		if err != nil || len(apps) != 1 || apps[0].Grants != 0 {
			t.Errorf("%v %v: the replays left a grant", apps, err)
		}
	})
}

func TestARefreshTokenIsUsedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ada := person(t, db, "ada@example.org")
		code := builtin.Code{Hash: "code", User: ada.ID, Client: "millrace-cli", ExpiresAt: noon.Add(time.Minute)}
		if err := db.InsertCode(t.Context(), code, noon); err != nil {
			t.Fatal(err)
		}
		if err := db.RedeemCode(t.Context(), "code", func(builtin.Code) error { return nil }, tokens(100)); err != nil {
			t.Fatal(err)
		}
		if got := winners(t, 8, func(n int) error {
			return db.Rotate(t.Context(), "refresh hash 100", "millrace-cli", func(granted access.ScopeSet) (access.ScopeSet, error) { return granted, nil }, tokens(n))
		}); got != 1 {
			t.Errorf("%d of 8 used it", got)
		}
		for n := range 8 {
			if _, err := db.PresenceByAccess(t.Context(), fmt.Sprint("access hash ", n), noon); !fault.Is(err, fault.KindNotFound) {
				t.Errorf("a token of the family lives on: %v", err)
			}
		}
	})
}

// The person takes the app back between the look at the code and the grant:
// there is no such code any more. The embedded database has one writer, and
// nothing comes between.
func TestACodeIsRedeemedWhileTheAppIsTakenBack(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.Postgres(t))
	ada := person(t, db, "ada@example.org")
	if err := db.InsertCode(t.Context(), builtin.Code{Hash: "code", User: ada.ID, Client: "millrace-cli", ExpiresAt: noon.Add(time.Minute)}, noon); err != nil {
		t.Fatal(err)
	}
	takeBack := func(builtin.Code) error { return db.DeleteConsent(t.Context(), ada.ID, "millrace-cli") }
	if err := db.RedeemCode(t.Context(), "code", takeBack, tokens(1)); !fault.Is(err, fault.KindNotFound) {
		t.Errorf("%v", err)
	}
}

// winners counts who gets what they ask for; the others must find nothing.
func winners(t *testing.T, n int, call func(n int) error) (won int) {
	t.Helper()
	var wins atomic.Int64
	parallel(t, n, func(i int) (struct{}, error) {
		err := call(i)
		if err == nil {
			wins.Add(1)
		}
		if fault.Is(err, fault.KindNotFound) {
			err = nil
		}
		return struct{}{}, err
	})
	return int(wins.Load())
}
