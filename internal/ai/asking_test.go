package ai_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/store/storetest"
)

func TestOnlyADOINamesAPaper(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, text := range []string{"", "mills", "10.1000", "10.1000/", "https://example.org/10.1000/mill", "10.1000/\x00", strings.Repeat("1", 5000)} {
			_, err := b.Analyze(t.Context(), b.owner, text)
			if e, ok := errors.AsType[*fault.Error](err); !ok || e.Kind != fault.KindInvalid || len(e.Details) != 1 || e.Details[0].Path != "doi" {
				t.Errorf("%q: %v", text, err)
			}
		}
		if a, again := b.ask("https://doi.org/10.1000/MILL"), b.ask("doi:10.1000/mill."); a.ID != again.ID || a.DOI != mill {
			t.Errorf("%+v and %+v", a, again)
		}
	})
}

// upload is one of a team, with this content.
func (b *bench) upload(o ai.Owner, hash, title string) (ai.Analysis, error) {
	return b.Upload(b.t.Context(), o, ai.Upload{Path: "x.pdf", SHA256: hash, Title: title})
}

func TestAnUploadIsItsOwnersAndReadOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		must := func(a ai.Analysis, err error) ai.Analysis {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		first := must(b.upload(b.owner, "aa", " Our\x00 mill\xff "))
		if first.Title != "Our mill" || first.Status != ai.Queued {
			t.Errorf("%+v", first)
		}
		again := must(b.upload(b.owner, "aa", "Our new mill"))
		if again.ID != first.ID || again.Title != "Our new mill" || b.world.texts() != 1 || b.charged() != 1 {
			t.Errorf("%+v after %d texts, charged %d", again, b.world.texts(), b.charged())
		}
		if unnamed := must(b.upload(b.owner, "aa", "")); unnamed.Title != "Our new mill" {
			t.Errorf("no title took away %q", unnamed.Title)
		}
		eve := storetest.Owner(t, b.db, "eve")
		if other := must(b.upload(ai.OwnerOf(eve), "aa", "")); other.ID == first.ID || b.world.texts() != 2 {
			t.Errorf("another team shares %+v", other)
		}
		if _, err := b.Analysis(t.Context(), eve, first.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team reads it: %v", err)
		}
		run(t, b.Service)
		if got := b.ended(b.Service, first); got.Result.Paper.Source != "upload" || got.Result.Paper.Title != "Our new mill" {
			t.Errorf("%+v", got.Result)
		}
	})
}

func TestWhoHasNoQuotaMakesUsReadNothing(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.Service = b.room(func(o *ai.Options) { o.Limits.PerOwner = 1 })
		b.ask(mill)
		_, err := b.upload(b.owner, "aa", "")
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "analysis_quota_exhausted" || e.RetryAfter > 12*time.Hour || b.world.texts() != 0 {
			t.Errorf("%v after %d texts", err, b.world.texts())
		}
		_, err = b.Upload(t.Context(), b.owner, ai.Upload{SHA256: "bb", DOI: "mills"})
		storetest.Refused(t, "a wrong DOI", err, fault.KindInvalid)
		q, err := b.Quota(t.Context(), b.owner)
		if err != nil || q.Limit != 1 || q.Used != 1 || q.Remaining != 0 || !q.ResetsAt.Equal(time.Date(2026, 8, 23, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%+v, %v", q, err)
		}
		b.clock.Pass(12 * time.Hour)
		if _, err := b.upload(b.owner, "aa", ""); err != nil || b.world.texts() != 1 {
			t.Errorf("the next day: %v", err)
		}
	})
}

func TestUnreadablePDFsAreCountedAndOthersAreNot(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		var fails error
		b.world.text = func(context.Context) (ai.Text, error) {
			return ai.Text{Pages: []reader.Page{{Number: 1, Text: "x"}}, Of: 1}, fails
		}
		b.Service = b.room(func(o *ai.Options) { o.Limits.FailedPerOwner = 2 })
		for i, tt := range []struct {
			fails  error
			counts int
		}{
			{fault.Unsupported("this is not a PDF"), 0},
			{fault.Unavailable("no sandbox"), 0},
			{nil, 0},
			{fault.Invalid("damaged").WithCause(ai.ErrUnreadable), 1},
			{errors.Join(context.Canceled, ai.ErrUnreadable), 2}, // who leaves has caused it all the same
		} {
			fails = tt.fails
			if _, err := b.upload(b.owner, fmt.Sprint(i), ""); (err == nil) != (fails == nil) || b.failedPDFs() != tt.counts {
				t.Errorf("%d: %v, and %d count, want %d", i, err, b.failedPDFs(), tt.counts)
			}
		}
		before := b.world.texts()
		_, err := b.upload(b.owner, "one more", "")
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "unreadable_pdfs_exhausted" || b.world.texts() != before {
			t.Errorf("%v after %d texts", err, b.world.texts()-before)
		}
	})
}

func TestAPDFSaysSoAtItsBeginning(t *testing.T) {
	t.Parallel()
	pad := func(n int) []byte { return append(bytes.Repeat([]byte{' '}, n), "%PDF-1.7"...) }
	for _, tt := range []struct {
		head []byte
		is   bool
	}{{nil, false}, {pad(0), true}, {pad(ai.PDFHead - 5), true}, {pad(ai.PDFHead - 4), false}, {[]byte("%PDF"), false}, {[]byte("PK\x03\x04"), false}} {
		if err := ai.MustBePDF(tt.head); (err == nil) != tt.is || err != nil && !fault.Is(err, fault.KindUnsupported) {
			t.Errorf("%d bytes: %v", len(tt.head), err)
		}
	}
}

func TestLimitsAtAndBeyond(t *testing.T) {
	t.Parallel()
	l := ai.Limits{PerOwner: 3, PerAddress: 5, Visitors: 7, FailedPerOwner: 2, FailedPerAddress: 4}
	team, visitor := ai.Owner{Team: "team_a"}, ai.Owner{Visitor: "v", Address: "192.0.2.1"}
	evening := time.Date(2026, 3, 1, 23, 59, 59, 0, time.FixedZone("", 3600))
	for _, tt := range []struct {
		owner ai.Owner
		used  ai.Charged
		words string
	}{
		{team, ai.Charged{Owner: 2, Address: 99, Visitors: 99}, ""},
		{team, ai.Charged{Owner: 3}, "this team has reached its daily limit of 3 analyses (--analyses-per-day)"},
		{visitor, ai.Charged{Owner: 2, Address: 4, Visitors: 6}, ""},
		{visitor, ai.Charged{Owner: 3, Address: 5, Visitors: 7}, "you've reached your daily limit of 3 analyses (--analyses-per-day)"},
		{visitor, ai.Charged{Owner: 2, Address: 5, Visitors: 7}, "visitors from your address have reached the daily limit of 5"},
		{visitor, ai.Charged{Owner: 2, Address: 4, Visitors: 7}, "all visitors together"},
	} {
		err := l.Refused(tt.owner, tt.used, evening)
		e, refused := errors.AsType[*fault.Error](err)
		if refused != (tt.words != "") || refused && (!strings.Contains(e.Message, tt.words) || e.RetryAfter != time.Hour+time.Second || e.Code != "analysis_quota_exhausted") {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	for _, tt := range []struct {
		owner ai.Owner
		used  ai.FailedPDFs
		words string
	}{
		{team, ai.FailedPDFs{Owner: 1, Address: 99}, ""},
		{team, ai.FailedPDFs{Owner: 2}, "2 of your PDFs"},
		{visitor, ai.FailedPDFs{Owner: 1, Address: 3}, ""},
		{visitor, ai.FailedPDFs{Owner: 1, Address: 4}, "4 PDFs from your address"},
	} {
		err := l.FailedRefused(tt.owner.Payer(), tt.used, evening)
		if (err != nil) != (tt.words != "") || err != nil && !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestTheQuotaOfAVisitorIsTheLeastOfThree(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.Service = b.room(func(o *ai.Options) {
			o.Limits = ai.Limits{PerOwner: 5, PerAddress: 3, Visitors: 4, FailedPerOwner: 9, FailedPerAddress: 9}
		})
		at := func(visitor, address string) ai.Owner { return ai.Owner{Visitor: visitor, Address: address} }
		left := func(o ai.Owner, want int) {
			t.Helper()
			if q, err := b.Quota(t.Context(), o); err != nil || q.Remaining != want {
				t.Errorf("%+v has %+v, %v, want %d left", o, q, err, want)
			}
		}
		left(at("new", "a"), 3)
		for i, o := range []ai.Owner{at("one", "a"), at("one", "a"), at("two", "b"), at("two", "b")} {
			if _, err := b.Analyze(t.Context(), o, fmt.Sprintf("10.1000/%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		left(at("one", "a"), 0)
		left(at("new", "c"), 0)
		left(b.owner, 5)
	})
}

func TestGuestsSeeNoAnalyses(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.ask(mill)
		b.ask(wheel)
		guest := b.ada
		guest.Role = access.GuestEditor
		_, err := b.Analysis(t.Context(), guest, "an_x")
		storetest.Refused(t, "one", err, fault.KindForbidden)
		_, err = b.AnalysisOf(t.Context(), guest, mill)
		storetest.Refused(t, "by its DOI", err, fault.KindForbidden)
		_, _, err = b.Analyses(t.Context(), guest, "", 1)
		storetest.Refused(t, "all", err, fault.KindForbidden)
		_, err = b.Days(t.Context(), guest, time.Time{})
		storetest.Refused(t, "days", err, fault.KindForbidden)
		list, more, err := b.Analyses(t.Context(), b.ada, "", 1)
		if err != nil || len(list) != 1 || !more || list[0].DOI != wheel {
			t.Fatalf("%+v, %v, %v", list, more, err)
		}
		if list, more, err = b.Analyses(t.Context(), b.ada, list[0].ID, 1); err != nil || len(list) != 1 || more || list[0].DOI != mill {
			t.Errorf("%+v, %v, %v", list, more, err)
		}
	})
}

func TestFollowingEndsWithWhoeverFollows(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.ask(mill)
		no := errors.New("no more")
		if got, err := b.Follow(t.Context(), a, func(ai.Analysis, bool) error { return no }); !errors.Is(err, no) || got.ID != a.ID {
			t.Errorf("%+v, %v", got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		got, err := b.Follow(ctx, a, func(_ ai.Analysis, moved bool) error {
			if !moved {
				t.Error("the first look is no news")
			}
			cancel()
			return nil
		})
		if err != nil || got.Status != ai.Queued {
			t.Errorf("%+v, %v", got, err)
		}
		gone := a
		gone.Owner = "another team"
		if _, err := b.Follow(t.Context(), gone, func(ai.Analysis, bool) error { return nil }); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("what is gone: %v", err)
		}
		// Whoever follows hears of each stage, and of the server's end.
		begun := make(chan struct{})
		b.world.text = func(ctx context.Context) (ai.Text, error) {
			close(begun)
			<-ctx.Done()
			return ai.Text{}, ctx.Err()
		}
		stop := run(t, b.Service)
		<-begun
		now, err := b.Analysis(t.Context(), b.ada, a.ID)
		if err != nil || now.Progress.Stage != "fetching" || now.Progress.Percent != 25 {
			t.Errorf("%+v, %v", now, err)
		}
		stop()
		if got, err := b.Follow(t.Context(), now, func(ai.Analysis, bool) error { return nil }); err != nil || got.Status != ai.Queued {
			t.Errorf("after the end: %+v, %v", got, err)
		}
	})
}
