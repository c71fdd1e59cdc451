package sharing_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/store/storetest"
)

// run is one of the team's, which waits.
func (b *bench) run(as access.Caller) ids.Run {
	b.t.Helper()
	b.Results = b.db
	r := runs.Run{
		ID: ids.NewRun(), Team: as.Team, Workflow: b.workflow, WorkflowName: "w", Revision: 1, Definition: []byte(`{}`), Parameters: []byte(`{}`),
		Inputs: []byte(`{}`), Size: credits.DefaultSize(), Price: 1, Starter: runs.Starter{Type: "user", ID: string(as.User), Name: as.Name}, CreatedAt: b.clock.Now(),
	}
	if err := b.db.SubmitRun(b.t.Context(), r, 1, nil); err != nil {
		b.t.Fatal(err)
	}
	return r.ID
}

func (b *bench) results(in sharing.NewResultLink) (sharing.ResultLink, string) {
	b.t.Helper()
	l, token, err := b.ShareResults(b.t.Context(), b.owner, in)
	if err != nil {
		b.t.Fatal(err)
	}
	return l, token
}

func TestWhoSharesResultsAndHow(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		run, ctx := b.run(b.owner), t.Context()
		kept, _ := b.results(sharing.NewResultLink{Run: run})
		for role, kind := range map[access.Role]fault.Kind{access.Admin: "", access.Member: fault.KindForbidden, access.Viewer: fault.KindForbidden, access.GuestEditor: fault.KindForbidden} {
			as := b.owner
			as.Role = role
			_, _, err := b.ShareResults(ctx, as, sharing.NewResultLink{Run: run})
			storetest.Refused(t, string(role)+" makes one", err, kind)
			_, err = b.ResultLinks(ctx, as, run)
			storetest.Refused(t, string(role)+" lists them", err, kind)
			_, err = b.AllResultLinks(ctx, as, "", 10)
			storetest.Refused(t, string(role)+" exports them", err, kind)
			if kind != "" {
				storetest.Refused(t, string(role)+" revokes one", b.RevokeResults(ctx, as, run, kept.ID), kind)
			}
		}
		known := []string{"open", "closed"}
		for name, tt := range map[string]struct {
			in    sharing.NewResultLink
			wrong string // paths
		}{
			"an hour":             {sharing.NewResultLink{Hours: 1}, ""},
			"thirty days":         {sharing.NewResultLink{Hours: 720, Known: known, Parameters: []string{"open", "closed", "open"}}, ""},
			"less than an hour":   {sharing.NewResultLink{Hours: -1}, "expiresInHours"},
			"more than that":      {sharing.NewResultLink{Hours: 721}, "expiresInHours"},
			"unknown parameters":  {sharing.NewResultLink{Known: known, Parameters: []string{"open", "other", "", "open "}}, "parameters[1] parameters[2] parameters[3]"},
			"a run without any":   {sharing.NewResultLink{Parameters: []string{"open"}}, "parameters[0]"},
			"everything is wrong": {sharing.NewResultLink{Hours: 1000, Parameters: []string{"x"}}, "expiresInHours parameters[0]"},
		} {
			tt.in.Run = run
			_, _, err := b.ShareResults(ctx, b.owner, tt.in)
			var paths []string
			if e, ok := errors.AsType[*fault.Error](err); ok {
				for _, d := range e.Details {
					paths = append(paths, d.Path)
				}
			}
			if got := strings.Join(paths, " "); got != tt.wrong || (err == nil) != (tt.wrong == "") {
				t.Errorf("%s: %v", name, err)
			}
		}
		// Of a thousand wrong names some are enough.
		_, _, err := b.ShareResults(ctx, b.owner, sharing.NewResultLink{Run: run, Parameters: make([]string, 1000)})
		if e, ok := errors.AsType[*fault.Error](err); !ok || len(e.Details) > 25 {
			t.Errorf("got %v", err)
		}
	})
}

func TestALinkToResultsIsItsTeamsAndItsRuns(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		run, other := b.run(b.owner), b.run(b.owner)
		l, token := b.results(sharing.NewResultLink{Run: run, Known: []string{"a"}, Parameters: []string{"a"}, AllowCopy: true})
		if l.Hours != 168 || !l.ExpiresAt.Equal(l.CreatedAt.Add(7*24*time.Hour)) || !strings.HasPrefix(token, sharing.ResultPrefix) || l.TokenHint != token[len(token)-4:] {
			t.Errorf("%+v", l)
		}
		eve := storetest.Owner(t, b.db, "eve")
		_, _, err := b.ShareResults(ctx, eve, sharing.NewResultLink{Run: run})
		storetest.Refused(t, "another team's run", err, fault.KindNotFound)
		for name, list := range map[string]func() ([]sharing.ResultLink, error){
			"another team":      func() ([]sharing.ResultLink, error) { return b.ResultLinks(ctx, eve, run) },
			"another run":       func() ([]sharing.ResultLink, error) { return b.ResultLinks(ctx, b.owner, other) },
			"all of the others": func() ([]sharing.ResultLink, error) { return b.AllResultLinks(ctx, eve, "", 10) },
		} {
			if got, err := list(); err != nil || len(got) != 0 {
				t.Errorf("%s has %+v, %v", name, got, err)
			}
		}
		storetest.Refused(t, "another team revokes it", b.RevokeResults(ctx, eve, run, l.ID), fault.KindNotFound)
		storetest.Refused(t, "by another run", b.RevokeResults(ctx, b.owner, other, l.ID), fault.KindNotFound)
		second, _ := b.results(sharing.NewResultLink{Run: other})
		all, err := b.AllResultLinks(ctx, b.owner, "", 1)
		if err != nil || len(all) != 1 || all[0].ID != second.ID {
			t.Fatalf("%+v, %v", all, err)
		}
		if all, err = b.AllResultLinks(ctx, b.owner, second.ID, 5); err != nil || len(all) != 1 || all[0].ID != l.ID || fmt.Sprint(all[0].Parameters) != "[a]" || !all[0].AllowCopy || all[0].CreatedByName != "ada" {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// Views are counted while a link is worth something, however many come at once.
func TestALinkToResultsCountsItsViewsUntilItEnds(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, run := t.Context(), b.run(b.owner)
		l, token := b.results(sharing.NewResultLink{Run: run, Hours: 2})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if got, err := b.OpenResults(ctx, token); err != nil || got.Run != run {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		wg.Wait()
		if got, err := b.ReadResultsAgain(ctx, token); err != nil || got.Run != run {
			t.Errorf("read again: %+v, %v", got, err)
		}
		views := func(id ids.ResultLink, want int, status sharing.Status) {
			t.Helper()
			list, err := b.ResultLinks(ctx, b.owner, run)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range list {
				if l.ID == id && (l.Views != want || l.Status(b.clock.Now()) != status || (want > 0) == l.LastUsedAt.IsZero()) {
					t.Errorf("%+v, want %d views and %s", l, want, status)
				}
			}
		}
		views(l.ID, 10, sharing.Active)
		for _, wrong := range []string{"", token + "x", token[:len(token)-1], strings.ToUpper(token), sharing.ResultPrefix} {
			_, err := b.OpenResults(ctx, wrong)
			storetest.Refused(t, wrong, err, fault.KindNotFound)
			_, err = b.ReadResultsAgain(ctx, wrong)
			storetest.Refused(t, wrong+", again", err, fault.KindNotFound)
		}
		revoked, its := b.results(sharing.NewResultLink{Run: run})
		for range 2 { // who lost the answer asks again
			storetest.Refused(t, "revoking", b.RevokeResults(ctx, b.owner, run, revoked.ID), "")
		}
		got, err := b.OpenResults(ctx, its)
		if code(err) != "revoked" || got.Run != "" {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err = b.ReadResultsAgain(ctx, its); code(err) != "revoked" || got.Run != "" {
			t.Errorf("read again: %+v, %v", got, err)
		}
		views(revoked.ID, 0, sharing.Revoked)
		b.clock.Pass(2*time.Hour - time.Minute)
		if _, err := b.OpenResults(ctx, token); err != nil {
			t.Errorf("before its end: %v", err)
		}
		b.clock.Pass(time.Minute)
		if got, err = b.OpenResults(ctx, token); code(err) != "expired" || got.Run != "" {
			t.Errorf("%+v, %v", got, err)
		}
		views(l.ID, 11, sharing.Expired)
	})
}

// An answer that cannot be recorded is no link.
func TestALinkThatCannotBeRecordedIsNotMade(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		run, no := b.run(b.owner), errors.New("it cannot be sealed")
		_, token, err := b.ShareResults(t.Context(), b.owner, sharing.NewResultLink{Run: run, Once: func(sharing.ResultLink, string) (*access.IdempotencyRecord, error) { return nil, no }})
		if !errors.Is(err, no) || token != "" {
			t.Errorf("%q, %v", token, err)
		}
		if list, err := b.ResultLinks(t.Context(), b.owner, run); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
