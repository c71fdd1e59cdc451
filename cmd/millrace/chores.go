package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/millrace/millrace/internal/domain/retention"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/metrics"
	"github.com/millrace/millrace/internal/upkeep"
)

const often, hourly, seldom = 10 * time.Minute, time.Hour, 6 * time.Hour

// newKeeper puts together what has to be done from time to time. A new chore is a line
// in one of the lists.
func (h *application) newKeeper() *upkeep.Keeper {
	host, _ := os.Hostname() // only to tell people who it is
	return upkeep.New(upkeep.Options{
		Store: h.db, Owner: host + " " + rand.Text(), Metrics: metrics.NewUpkeep(h.metrics), Log: h.log, Now: h.db.Now,
		Shared: [][]upkeep.Chore{h.databaseChores(), h.objectChores(), {
			// Large files take hours to read. One whose bytes stop coming is left out.
			{Name: "file-hashes", Every: often, Batch: h.cleaning(files.Cleaner.Hash)},
		}},
		Local: []upkeep.Chore{
			{Name: "local-images", Every: often, Batch: onThisMachine(h.software.CleanImages)},
			{Name: "local-environments", Every: often, Batch: onThisMachine(h.software.CleanEnvironments)},
			{Name: "local-tools", Every: often, Batch: onThisMachine(h.tools.Recover)},
			{Name: "local-sources", Every: often, Batch: onThisMachine(h.software.CleanSources)},
			{Name: "local-papers", Every: often, Batch: onThisMachine(func(context.Context) error { return emptyScratch(h.scratch, scratchLife) })},
		},
	})
}

// databaseChores ask only the database.
func (h *application) databaseChores() []upkeep.Chore {
	return append([]upkeep.Chore{
		{Name: "expired-rows", Every: often, Batch: func(ctx context.Context, fence int64) (upkeep.Result, error) {
			return h.db.Fenced(fence).DeleteExpired(ctx, h.db.Now())
		}},
		{Name: "free-space", Every: often, Batch: func(ctx context.Context, fence int64) (upkeep.Result, error) {
			return h.db.Fenced(fence).ReturnSpace(ctx)
		}},
		{Name: "signing-keys", Every: often, Batch: func(ctx context.Context, _ int64) (upkeep.Result, error) {
			return upkeep.Result{}, h.accounts.Keys.Rotate(ctx)
		}},
		{Name: "storage-samples", Every: often, Batch: func(ctx context.Context, fence int64) (upkeep.Result, error) {
			n, err := h.db.Fenced(fence).SampleStorage(ctx, h.db.Now())
			return upkeep.Result{Done: n}, err
		}},
		{Name: "storage-charges", Every: often, Batch: func(ctx context.Context, fence int64) (upkeep.Result, error) {
			n, err := h.db.Fenced(fence).ChargeStorage(ctx, h.db.Now())
			return upkeep.Result{Done: n}, err
		}},
		{Name: "failed-folders", Every: often, Batch: func(ctx context.Context, fence int64) (upkeep.Result, error) {
			n, err := h.db.Fenced(fence).DropExpiredKept(ctx, h.db.Now())
			return upkeep.Result{Done: n, More: n > 0}, err
		}},
		{Name: "silent-runs", Every: often, Batch: func(ctx context.Context, fence int64) (upkeep.Result, error) {
			ended, err := h.db.Fenced(fence).InterruptSilent(ctx, h.db.Now())
			for _, id := range ended {
				h.feed.Ended(id)
			}
			return upkeep.Result{Done: len(ended), More: len(ended) > 0}, err
		}},
		{Name: "deleted-runs", Every: hourly, Batch: h.retention.ForgetDeleted},
		{Name: "run-index", Every: 2 * time.Second, Batch: func(ctx context.Context, fence int64) (upkeep.Result, error) {
			return h.db.Fenced(fence).IndexRuns(ctx)
		}},
		{Name: "notification-mails", Every: time.Minute, Batch: func(ctx context.Context, fence int64) (upkeep.Result, error) {
			n, more, err := h.mailer.SendDue(ctx, h.db.Fenced(fence))
			return upkeep.Result{Done: n, More: more}, err
		}},
		{Name: "audit-log", Every: hourly, Batch: func(ctx context.Context, fence int64) (upkeep.Result, error) {
			if h.keepAudit == 0 {
				return upkeep.Result{}, nil
			}
			n, err := h.db.Fenced(fence).TrimAudit(ctx, h.db.Now().AddDate(0, 0, -int(h.keepAudit)))
			return upkeep.Result{Done: n, More: n > 0}, err
		}},
	}, h.retention.Chores(hourly)...)
}

// objectLimit is far more than any batch takes of an object store that answers.
const objectLimit = 5 * time.Minute

// objectChores ask the object store. A batch is cut short when the store hangs, so that
// the next chore has its turn.
func (h *application) objectChores() []upkeep.Chore {
	list := append([]upkeep.Chore{
		{Name: "arrived-uploads", Every: time.Minute, Batch: h.cleaning(files.Cleaner.SettleArrived)},
		{Name: "expired-uploads", Every: often, Batch: h.cleaning(files.Cleaner.EndUploads)},
		{Name: "stale-large-uploads", Every: hourly, Batch: upkeep.Paged(func(ctx context.Context, fence int64, after string) (upkeep.Result, string, error) {
			r, next, err := h.uploads.EndStale(ctx, h.db.Fenced(fence), after)
			return upkeep.Result(r), next, err
		})},
		{Name: "deleted-files", Every: time.Minute, Batch: h.unlessBackup(h.cleaning(files.Cleaner.DeletePending))},
		{Name: "unfinished-uploads", Every: hourly, Batch: func(ctx context.Context, fence int64) (upkeep.Result, error) {
			return upkeep.Result{}, h.files.Cleaner(h.db.Fenced(fence).FileStores()).SweepUploads(ctx)
		}},
		{Name: "orphaned-files", Every: seldom, Batch: h.unlessBackup(h.cleaning(files.Cleaner.RemoveOrphans))},
		{Name: "failed-folders-low-disk", Every: 10 * time.Second, Batch: h.dropFailed},
	}, h.shims.Chores(seldom)...)
	for i := range list {
		list[i].Limit = objectLimit
	}
	return list
}

func onThisMachine(do func(context.Context) error) func(context.Context, int64) (upkeep.Result, error) {
	return func(ctx context.Context, _ int64) (upkeep.Result, error) { return upkeep.Result{}, do(ctx) }
}

// cleaning is a chore of the files' room, under the fence.
func (h *application) cleaning(do func(files.Cleaner, context.Context, string) (files.Cleaned, string, error)) func(context.Context, int64) (upkeep.Result, error) {
	return upkeep.Paged(func(ctx context.Context, fence int64, after string) (upkeep.Result, string, error) {
		r, next, err := do(h.files.Cleaner(h.db.Fenced(fence).FileStores()), ctx, after)
		return upkeep.Result(r), next, err
	})
}

// unlessBackup leaves objects alone while a backup is being made: it has the
// rows of what it copies, and must find the bytes.
func (h *application) unlessBackup(do func(context.Context, int64) (upkeep.Result, error)) func(context.Context, int64) (upkeep.Result, error) {
	return func(ctx context.Context, fence int64) (upkeep.Result, error) {
		waits, err := h.db.BackingUp(ctx, h.db.Now())
		if err != nil || waits {
			return upkeep.Result{}, err
		}
		return do(ctx, fence)
	}
}

// dropFailed gives up folders of failed steps while the disk is nearly full,
// the oldest first: they are what is missed least.
func (h *application) dropFailed(ctx context.Context, fence int64) (upkeep.Result, error) {
	if !h.disk.Low() {
		return upkeep.Result{}, nil
	}
	n, err := h.db.Fenced(fence).DropOldestKept(ctx)
	if err != nil || n == 0 {
		return upkeep.Result{}, err
	}
	_, err = h.unlessBackup(h.cleaning(files.Cleaner.DeletePending))(ctx, fence)
	return upkeep.Result{Done: n, More: true}, err
}

// failedLife is how long the folders of failed steps are kept.
func (s *retentionSettings) failedLife() (time.Duration, error) {
	if s.KeepFailed == "0" || s.KeepFailed == "0d" {
		return 0, nil
	}
	days, err := retention.Parse(s.KeepFailed)
	if err != nil {
		return 0, fmt.Errorf("--keep-failed: %w", err)
	}
	return time.Duration(days) * 24 * time.Hour, nil
}

// retentionSettings say how long things are kept; teams can choose less.
type retentionSettings struct {
	KeepLogs        string `help:"How long run logs are kept, such as 90d or 12w. Default: forever." group:"retention"`
	KeepEvents      string `help:"How long run events are kept. Default: forever." group:"retention"`
	KeepRuns        string `help:"How long runs and their outputs are kept. Default: forever." group:"retention"`
	KeepDeletedRuns string `default:"400d" help:"How long it is kept which tags a deleted run had and in whose name it ran, for costs and budgets; 186d at least." group:"retention"`
	KeepFailed      string `default:"7d" help:"How long the working folders of failed steps are kept, such as 7d; 0d: not at all." group:"retention"`
	KeepAudit       string `help:"How long audit log entries are kept. Default: forever." group:"retention"`
	KeepRevisions   string `help:"How long earlier workflow versions are kept. Default: forever." group:"retention"`
}

func (s *retentionSettings) policy() (retention.Policy, error) {
	p := retention.Policy{}
	var wrong error
	for kind, text := range map[retention.Kind]string{
		retention.Logs: s.KeepLogs, retention.Events: s.KeepEvents, retention.Runs: s.KeepRuns, retention.Revisions: s.KeepRevisions,
		retention.DeletedRuns: s.KeepDeletedRuns,
	} {
		days, err := retention.Parse(text)
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("--keep-%s: %w", kind, err))
		}
		p[kind] = days
	}
	if d := p[retention.DeletedRuns]; d > 0 && d < retention.LeastDeletedRuns {
		wrong = errors.Join(wrong, fmt.Errorf("--keep-deleted-runs: %d days is less than the %d that reports of costs need", d, retention.LeastDeletedRuns))
	}
	if _, err := retention.Parse(s.KeepAudit); err != nil {
		wrong = errors.Join(wrong, fmt.Errorf("--keep-audit: %w", err))
	}
	return p, wrong
}
