package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/builtin"
)

var errWait = errors.New("wait")

func grant(n int) builtin.NewTokens {
	return builtin.NewTokens{
		Grant: fmt.Sprint("grant ", n), AccessID: fmt.Sprint("access ", n), AccessHash: fmt.Sprint("access hash ", n), RefreshHash: fmt.Sprint("refresh hash ", n),
		AccessUntil: august.Add(time.Hour), GrantUntil: august.Add(24 * time.Hour), Now: august,
	}
}

// device is the open request of a terminal.
func device(t *testing.T, db *DB, name string) {
	t.Helper()
	must(t, db.InsertDevice(t.Context(), builtin.Device{DeviceHash: "device " + name, UserHash: "user " + name, Client: "millrace-cli", State: builtin.DeviceOpen, Pause: 5 * time.Second, PolledAt: august, ExpiresAt: august.Add(time.Minute)}))
}

// poll asks as a terminal does: it goes on when somebody has allowed it.
func poll(t *testing.T, db *DB, name, client string, n int) error {
	t.Helper()
	return db.PollDevice(t.Context(), "device "+name, client, grant(n), func(d builtin.Device) (builtin.Device, error) {
		if d.State == builtin.DeviceAllowed {
			return d, nil
		}
		d.Pause *= 2
		return d, fmt.Errorf("%w: %s", errWait, d.State)
	})
}

func TestATerminalIsLetInOnce(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		device(t, db, "a")
		if err := poll(t, db, "a", "millrace-cli", 0); !errors.Is(err, errWait) {
			t.Error(err)
		}
		if d, err := db.Device(ctx, "user a", august); err != nil || d.Pause != 10*time.Second { // what poll made of it is kept
			t.Errorf("%+v, %v", d, err)
		}
		refused(t, "as another program", poll(t, db, "a", "other", 0), fault.KindNotFound, "")
		refused(t, "by an unknown code", db.DecideDevice(ctx, "user b", ada.ID, true, august), fault.KindNotFound, "")
		refused(t, "too late", db.DecideDevice(ctx, "user a", ada.ID, true, august.Add(time.Minute)), fault.KindNotFound, "")
		done, errs := atOnce(4, func(i int) error { return db.DecideDevice(ctx, "user a", ada.ID, i%2 == 0, august) })
		if done != 1 {
			t.Errorf("%d decided: %v", done, errs)
		}
		refused(t, "once it is decided", second(db.Device(ctx, "user a", august)), fault.KindNotFound, "")

		device(t, db, "b")
		must(t, db.DecideDevice(ctx, "user b", ada.ID, true, august))
		if done, errs := atOnce(4, func(i int) error { return poll(t, db, "b", "millrace-cli", i) }); done != 1 {
			t.Errorf("%d got a grant: %v", done, errs)
		}
		apps, err := db.Apps(ctx, ada.ID, august)
		if err != nil || len(apps) != 1 || apps[0].Grants != 1 {
			t.Errorf("%+v, %v", apps, err)
		}
		if all, err := db.Consented(ctx, ada.ID, "millrace-cli"); err != nil || !all {
			t.Errorf("%v, %v", all, err)
		}
		device(t, db, "c")
		must(t, db.DecideDevice(ctx, "user c", ada.ID, false, august))
		if err := poll(t, db, "c", "millrace-cli", 9); !errors.Is(err, errWait) {
			t.Errorf("one that was denied: %v", err)
		}
	})
}

// Whatever way access is taken back, a terminal that was allowed and has not asked
// yet gets nothing either.
func TestATerminalThatWasAllowedIsPutOut(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		for i, end := range []func(a builtin.NewAccount) error{
			func(a builtin.NewAccount) error { return db.DeleteConsent(ctx, a.ID, "millrace-cli") },
			func(a builtin.NewAccount) error { return db.SuspendPerson(ctx, a.ID, august) },
			func(a builtin.NewAccount) error { return db.SetPassword(ctx, a.Email, "x") },
		} {
			name := fmt.Sprint(i)
			a := signedUp(t, db, name+"@example.org")
			for _, n := range []string{name, name + " later"} {
				device(t, db, n)
				must(t, db.DecideDevice(ctx, "user "+n, a.ID, true, august))
			}
			must(t, poll(t, db, name, "millrace-cli", i))
			must(t, end(a))
			refused(t, "a terminal that asks later", poll(t, db, name+" later", "millrace-cli", 100+i), fault.KindNotFound, "")
			refused(t, "one that was in", second(db.PresenceByAccess(ctx, fmt.Sprint("access hash ", i), august)), fault.KindNotFound, "")
			refused(t, "its grant", second(db.PresenceByGrant(ctx, fmt.Sprint("grant ", i), august)), fault.KindNotFound, "")
		}
	})
}

func TestAProgramThatIsForgottenHasNothing(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		c := builtin.Client{ID: "dyn_1", Name: "tool", RedirectURIs: []string{"http://127.0.0.1/a", "http://127.0.0.1/b"}, CreatedAt: august}
		must(t, db.InsertClient(ctx, c))
		refused(t, "twice", db.InsertClient(ctx, c), fault.KindConflict, "")
		if got, err := db.Client(ctx, c.ID); err != nil || len(got.RedirectURIs) != 2 || got.Name != "tool" {
			t.Errorf("%+v, %v", got, err)
		}
		code := func(name string, user ids.User) {
			t.Helper()
			must(t, db.InsertCode(ctx, builtin.Code{Hash: name, User: user, Client: c.ID, ExpiresAt: august.Add(time.Minute)}, august))
		}
		code("used", ada.ID)
		code("open", ada.ID)
		fits := func(builtin.Code) error { return nil }
		must(t, db.RedeemCode(ctx, "used", fits, grant(1)))
		late := grant(2)
		late.Now = august.Add(time.Minute)
		refused(t, "a code that ran out", db.RedeemCode(ctx, "open", fits, late), fault.KindNotFound, "")
		wrong := errors.New("wrong verifier")
		if err := db.RedeemCode(ctx, "open", func(builtin.Code) error { return wrong }, grant(2)); !errors.Is(err, wrong) {
			t.Error(err)
		}
		must(t, db.EndGrant(ctx, "access hash 1", "another program"))
		if _, err := db.PresenceByAccess(ctx, "access hash 1", august); err != nil {
			t.Errorf("another program has ended it: %v", err)
		}
		must(t, db.DeleteClient(ctx, c.ID))
		refused(t, "twice", db.DeleteClient(ctx, c.ID), fault.KindNotFound, "")
		refused(t, "the program", second(db.Client(ctx, c.ID)), fault.KindNotFound, "")
		refused(t, "its token", second(db.PresenceByAccess(ctx, "access hash 1", august)), fault.KindNotFound, "")
		refused(t, "an open code", db.RedeemCode(ctx, "open", fits, grant(3)), fault.KindNotFound, "")
		if list, err := db.Clients(ctx); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
