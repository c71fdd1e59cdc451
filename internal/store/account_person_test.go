package store

import (
	"database/sql"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/operator"
)

var uploadLife = account.Lifetimes{UploadLink: time.Minute, Transfer: time.Hour}

// Whoever adds a table with what is a person's own decides that it goes with their account.
func TestDeletingAnAccountForgetsEverythingOfItsPerson(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, url string, pool *sql.DB) {
		ctx := t.Context()
		db, err := Open(ctx, Options{URL: url, SecretKey: "a secret key for tests only"})
		must(t, err)
		defer db.Close()
		other := signedUp(t, db, "other@example.org")
		for _, add := range []string{
			`INSERT INTO memberships (team_id, user_id, role, joined_at) VALUES ('` + string(other.Team.ID) + `', 'u', 'admin', 1)`,
			`INSERT INTO invitations (id, team_id, email, role, token_hash, invited_by, created_at, expires_at, ended_as) SELECT 'ended', '` + string(other.Team.ID) + `', email, 'member', 'h9', 'u', 1, 2, 'accepted' FROM users WHERE id = 'u'`,
			`DELETE FROM memberships WHERE team_id = 't' AND user_id <> 'u'`,
			`INSERT INTO memberships (team_id, user_id, role, joined_at) SELECT 't', 'u', 'owner', 1 WHERE NOT EXISTS (SELECT 1 FROM memberships WHERE team_id = 't' AND user_id = 'u')`,
			`UPDATE memberships SET role = 'owner' WHERE team_id = 't'`,
		} {
			_, err := pool.Exec(add)
			must(t, err)
		}
		must(t, db.SetOperator(ctx, other.Email, true, true, august))
		var email string
		must(t, pool.QueryRow(`SELECT email FROM users WHERE id = 'u'`).Scan(&email))
		closed, err := db.DeletePerson(ctx, "u", uploadLife, august)
		if err != nil || !slices.Equal(closed, []ids.Team{"t"}) {
			t.Fatalf("%v, %v", closed, err)
		}
		for _, name := range tablesOf(t, pool, url) {
			rows, err := pool.Query(`SELECT * FROM ` + name)
			must(t, err)
			columns, err := rows.Columns()
			must(t, err)
			rows.Close()
			// Of the person's own team all rows go when it is erased.
			goes := slices.ContainsFunc(everything, func(b belongings) bool { return b.table == name }) && !slices.Contains(ofPeople, name)
			if !slices.Contains(columns, "user_id") || goes {
				continue
			}
			var n int
			must(t, pool.QueryRow(`SELECT COUNT(*) FROM `+name+` WHERE user_id = 'u'`).Scan(&n))
			if n != 0 {
				t.Errorf("%s has %d rows of the person", name, n)
			}
		}
		for query, want := range map[string]int{
			`SELECT COUNT(*) FROM users WHERE email = '` + email + `'`:                                       0,
			`SELECT COUNT(*) FROM invitations WHERE email = '` + email + `' AND ended_as <> ''`:              0,
			`SELECT COUNT(*) FROM users WHERE id = 'u' AND password_hash = '' AND email = id AND name <> ''`: 1,
			`SELECT COUNT(*) FROM erasures WHERE team_id = 't'`:                                              1,
			`SELECT COUNT(*) FROM memberships WHERE user_id = 'u' AND team_id <> 't'`:                        0,
		} {
			var n int
			if err := pool.QueryRow(query).Scan(&n); err != nil || n != want {
				t.Errorf("%s: %d, want %d (%v)", query, n, want, err)
			}
		}
		_, err = db.DeletePerson(ctx, "u", uploadLife, august)
		refused(t, "twice", err, fault.KindNotFound, "")
		refused(t, "suspending it", db.SuspendPerson(ctx, "u", august), fault.KindNotFound, "")
		refused(t, "a password for it", db.SetPassword(ctx, "u", "x"), fault.KindNotFound, "")
	})
}

func TestTheLastOwnerOfOthersStays(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		bob := memberOf(t, db, ada.Team.ID, access.Admin, "bob@example.org")
		_, err := db.DeletePerson(ctx, ada.ID, uploadLife, august)
		refused(t, "the last owner", err, fault.KindConflict, "last_owner")
		if err == nil || !strings.Contains(err.Error(), ada.Team.Name) {
			t.Errorf("the team is not named: %v", err)
		}
		closed, err := db.DeletePerson(ctx, bob.ID, uploadLife, august)
		if err != nil || !slices.Equal(closed, []ids.Team{bob.Team.ID}) {
			t.Fatalf("%v, %v", closed, err)
		}
		if closed, err = db.DeletePerson(ctx, ada.ID, uploadLife, august); err != nil || len(closed) != 1 {
			t.Errorf("alone: %v, %v", closed, err)
		}
		again := signedUp(t, db, "ada@example.org")
		list, err := db.PeopleBefore(ctx, "", "", 10)
		if err != nil || len(list) != 1 || list[0].ID != again.ID {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// Of two owners who go at once, one stays with the others.
func TestTwoOwnersDoNotGoAtOnce(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ada := signedUp(t, db, "ada@example.org")
		bob := memberOf(t, db, ada.Team.ID, access.Owner, "bob@example.org")
		memberOf(t, db, ada.Team.ID, access.Member, "eve@example.org")
		both := []ids.User{ada.ID, bob.ID}
		gone, errs := atOnce(2, func(i int) error {
			_, err := db.DeletePerson(t.Context(), both[i], uploadLife, august)
			return err
		})
		if gone != 1 {
			t.Errorf("%d of them went: %v", gone, errs)
		}
	})
}

func TestTheLastOperatorStays(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada, bob := signedUp(t, db, "ada@example.org"), signedUp(t, db, "bob@example.org")
		must(t, db.SetOperator(ctx, ada.Email, true, false, august))
		refused(t, "suspending the last", db.SuspendPerson(ctx, ada.ID, august), fault.KindConflict, "last_operator")
		_, err := db.DeletePerson(ctx, ada.ID, uploadLife, august)
		refused(t, "deleting the last", err, fault.KindConflict, "last_operator")
		must(t, db.SetOperator(ctx, bob.Email, true, false, august))
		both := []ids.User{ada.ID, bob.ID}
		var mu sync.Mutex
		var left []ids.User
		gone, errs := atOnce(2, func(i int) error {
			err := db.SuspendPerson(ctx, both[i], august)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				left = append(left, both[i])
			}
			return err
		})
		if gone != 1 || len(left) != 1 {
			t.Fatalf("%d of them went: %v", gone, errs)
		}
		_, err = db.DeletePerson(ctx, left[0], uploadLife, august)
		refused(t, "the other one is suspended", err, fault.KindConflict, "last_operator")
	})
}

func TestAccountsAreFoundByAnyPartOfTheirNames(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada, bob := signedUp(t, db, "ada_okoye@example.org"), signedUp(t, db, "bob%@example.org")
		eve := memberOf(t, db, ada.Team.ID, access.Viewer, "eve@example.com")
		for text, want := range map[string][]ids.User{
			"": {eve.ID, bob.ID, ada.ID}, "ADA": {ada.ID}, "okoye@": {ada.ID}, "%": {bob.ID}, "_": {ada.ID}, `\`: {}, "example.org": {bob.ID, ada.ID}, string(eve.ID): {eve.ID}, "nobody": {},
		} {
			list, err := db.PeopleBefore(ctx, text, "", 10)
			got := []ids.User{}
			for _, p := range list {
				got = append(got, p.ID)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%q finds %v, want %v (%v)", text, got, want, err)
			}
		}
		page, err := db.PeopleBefore(ctx, "", eve.ID, 1)
		if err != nil || len(page) != 1 || page[0].ID != bob.ID {
			t.Errorf("%+v, %v", page, err)
		}
		list, err := db.PeopleBefore(ctx, "eve", "", 10)
		if err != nil || len(list) != 1 || !slices.Equal(list[0].Teams, []operator.PersonTeam{
			{ID: eve.Team.ID, Name: eve.Team.Name, Role: access.Owner}, {ID: ada.Team.ID, Name: ada.Team.Name, Role: access.Viewer},
		}) && !slices.Equal(list[0].Teams, []operator.PersonTeam{
			{ID: ada.Team.ID, Name: ada.Team.Name, Role: access.Viewer}, {ID: eve.Team.ID, Name: eve.Team.Name, Role: access.Owner},
		}) {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
