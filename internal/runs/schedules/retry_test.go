package schedules_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/store/storetest"
)

// What was started by itself is retried by a person, in their own name: it is
// theirs, it takes no time of the schedule, and it does not need whoever made that.
func TestARetryOfWhatStartedByItselfIsOnesOwn(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		eve, mia := storetest.Join(t, b.db, b.owner, "eve", access.Member), storetest.Join(t, b.db, b.owner, "mia", access.Member)
		s := b.make(eve, "0 * * * *")
		b.clock.Pass(time.Hour)
		b.round()
		trigger, _, err := b.CreateTrigger(ctx, eve, b.workflow, schedules.NewTrigger{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Fire(ctx, trigger, nil, nil); err != nil {
			t.Fatal(err)
		}
		started := b.all()
		if len(started) != 2 {
			t.Fatalf("%d runs", len(started))
		}
		b.end()
		retry := func(as access.Caller, id ids.Run) runs.Run {
			t.Helper()
			r, err := b.runs.Retry(ctx, as, id, runs.New{})
			if err != nil {
				t.Fatal(err)
			}
			kept, err := b.runs.Run(ctx, as, r.ID)
			if err != nil || kept.RetryOf != id || kept.Starter.Type != "user" || kept.Starter.ID != as.Subject() || kept.For != "" {
				t.Errorf("%+v in the name of %q, %v", kept.Starter, kept.For, err)
			}
			return kept
		}
		for _, r := range started {
			again := retry(mia, r.ID)
			_, err := b.runs.Cancel(ctx, eve, again.ID)
			storetest.Refused(t, "cancelled by who made the "+r.Starter.Type, err, fault.KindForbidden)
			_, err = b.runs.Cancel(ctx, mia, again.ID)
			storetest.Refused(t, "cancelled by who retried it", err, "")
		}
		if got := b.outcomes(s.ID); got != "13:00 started" {
			t.Errorf("the schedule fired: %s", got)
		}
		if err := b.DeleteTrigger(ctx, eve, b.workflow, trigger.ID); err != nil {
			t.Fatal(err)
		}
		for _, r := range started {
			retry(b.owner, r.ID)
		}
	})
}
