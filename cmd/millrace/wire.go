package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	software "github.com/millrace/millrace/cmd/millrace/environments"
	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/cmd/millrace/observe"
	"github.com/millrace/millrace/cmd/millrace/operate"
	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/clock/uptime"
	"github.com/millrace/millrace/internal/collab"
	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/retention"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/engine/executor/tool"
	"github.com/millrace/millrace/internal/engine/failedfolders"
	"github.com/millrace/millrace/internal/engine/recipe"
	environmentsroom "github.com/millrace/millrace/internal/environments"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/freedisk"
	"github.com/millrace/millrace/internal/git"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/identity/builtin"
	identitygroups "github.com/millrace/millrace/internal/identity/groups"
	"github.com/millrace/millrace/internal/identity/oidc"
	"github.com/millrace/millrace/internal/mail"
	"github.com/millrace/millrace/internal/metrics"
	"github.com/millrace/millrace/internal/notifications"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/remote"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/compare"
	"github.com/millrace/millrace/internal/runs/crate"
	runfilters "github.com/millrace/millrace/internal/runs/finding"
	"github.com/millrace/millrace/internal/runs/live"
	"github.com/millrace/millrace/internal/runs/outputcopy"
	"github.com/millrace/millrace/internal/runs/reported"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/runs/webhooks"
	"github.com/millrace/millrace/internal/secrets"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/tracing"
	"github.com/millrace/millrace/internal/upkeep"
	"github.com/millrace/millrace/internal/webhook"
	"github.com/millrace/millrace/internal/workflows"
	"github.com/millrace/millrace/internal/workflows/sourcecheck"
	"github.com/millrace/millrace/web"
)

// application is the parts of a server.
type application struct {
	log       *slog.Logger
	db        *store.DB
	sender    *mail.Sender
	accounts  *builtin.System
	files     *files.Service
	uploads   *files.Uploads
	disk      *freedisk.Watch
	taskDisk  *freedisk.Watch // of tasks, where they have another; else nil
	workers   *executors.Workers
	places    []workplace // of the executors of this process
	software  executors.SoftwareOfAll
	ai        *ai.Service
	tools     *tool.Runner
	checks    *sourcecheck.Service
	refresher *workflows.Refresher
	shims     *executors.Shims
	scratch   string // the folder of PDFs on their way
	account   *account.Service
	hub       live.Hub
	feed      *live.Feed
	editor    *collab.Server
	upkeep    *upkeep.Keeper
	schedule  *schedules.Runner
	mailer    notifications.Mailer
	hooks     *webhooks.Sender
	copier    *outputcopy.Copier
	failures  *operator.Recorder
	board     *operator.Board
	verifier  *runs.Verifier

	retention *upkeep.Retention
	traces    *tracing.Tracer // nil: nobody traces
	keepAudit retention.Days
	metrics   *prometheus.Registry
	memory    *bounds.Memory
	handler   http.Handler
}

// build puts the parts together; origins are where we are served.
func build(ctx context.Context, s *settings, db *store.DB, log *slog.Logger, origins []string) (*application, error) {
	transport, mailbox, err := s.mailTransport(db.Now)
	if err != nil {
		return nil, err
	}
	proxies, err := s.proxies()
	if err != nil {
		return nil, err
	}
	h := &application{log: log, db: db, sender: mail.NewSender(db, transport, log, db.Now), metrics: newRegistry(), memory: limitMemory(log)}
	h.sender.Base = origins[0]
	if err := s.checkMachines(ctx, db, log); err != nil {
		return nil, err
	}
	keep, parts, doors, err := s.openObjects(ctx, db.Key("object addresses"), db.Now)
	if err != nil {
		return nil, err
	}
	catalog, err := s.catalog()
	if err != nil {
		return nil, err
	}
	keeping, err := s.policy()
	if err != nil {
		return nil, err
	}
	h.retention = upkeep.NewRetention(db, keeping, db.Now)
	h.keepAudit, _ = retention.Parse(s.KeepAudit) // which the policy has checked
	h.files = files.NewService(db.FileStores(), keep.Bytes(), catalog, db.Now)
	h.uploads = files.NewUploads(db, parts, h.files)
	if err := h.trace(ctx, s); err != nil {
		return nil, err
	}
	if err := h.watchDisk(s); err != nil {
		return nil, err
	}
	name, err := db.Installation(ctx)
	if err != nil {
		return nil, err
	}
	h.shims = &executors.Shims{Store: db, Objects: keep, Key: db.Key("tickets of attempts"), Installation: name, Log: log, Now: db.Now}
	if err := h.buildEngine(ctx, s, keep, catalog); err != nil {
		return nil, err
	}
	money, pages := s.billing(db, catalog, h.workers, origins)
	chat, scratch, err := h.buildAI(s, origins)
	if err != nil {
		return nil, err
	}
	newcomers, err := s.newcomers()
	if err != nil {
		return nil, err
	}
	h.accounts = builtin.New(builtin.Options{
		Stores: db.Identity(), Post: h.sender, Passwords: builtin.NewPasswords(), Origins: origins,
		SignUp: s.signUp(origins), Newcomers: newcomers, NoPasswords: s.PasswordSignIn == "off", Private: s.private(origins), FirstPlan: string(credits.Free), Now: db.Now,
	})
	providers, err := s.providers()
	if err != nil {
		return nil, err
	}
	elsewhere := oidc.New(providers, db.Key("sign-in elsewhere"), db.Now)
	elsewhere.ReadGroups(oidc.Groups{Claim: s.OIDCGroupClaim, Wanted: func(ctx context.Context) (bool, error) {
		if len(newcomers.Groups) > 0 {
			return true, nil
		}
		return db.MapsGroups(ctx)
	}})
	people, accounts, cookie := s.people(h.accounts, db, catalog, origins)
	h.account = account.NewService(account.Options{
		Store: db, Eraser: db, People: db, Runs: db, Objects: keep, Engine: h.workers, Mailbox: mailbox, Log: log, Now: db.Now,
		Lifetimes: operate.Lifetimes,
	})
	drawings := workflows.NewService(db.WorkflowStores(), db.Now)
	shares := sharing.NewService(sharing.Options{Store: db, Results: db, Rooms: db, Members: people, Key: db.Key("share links and rooms"), Now: db.Now})
	h.editor = collab.New(collab.Options{
		Documents: db, Definitions: drawings, Passes: shares, Bridge: db.Bridge(), Log: log, Now: db.Now,
	})
	drawings.GoLive(h.editor)
	drawings.SayNoEnvironments(h.software.NoEnvironments)
	hosts := &git.Hosts{Trees: h.software.Sources.Trees, Open: db.OpenConnection}
	drawings.FollowGit(hosts, h.memory)
	h.refresher = &workflows.Refresher{Workflows: drawings, Log: log}
	observe.CountRooms(h.metrics, h.editor)
	asked := runs.NewService(runs.Options{
		Store: syncedStore{db, h.editor, h.files}, Details: db, Shards: db, Reported: reported.Tasks{Store: db}, Reports: db.Key("reports"), Logs: db, Submit: syncedStore{db, h.editor, h.files}, Sweeps: syncedStore{db, h.editor, h.files}, Kept: db, Known: db, Remote: s.remoteInputs(db), Targets: remote.NewOutputs(s.FetchAllowPrivate, db), Recipes: recipe.Of, Objects: keep, Verifier: h.verifier, Engine: h.workers, Catalog: catalog, Memory: h.memory, Now: db.Now,
	})
	startsItself, reports := schedules.NewService(db, db, asked, db.Now), reported.NewService(db, h.feed, db.Now)
	if s.Embedded() { // else the disk is not where the database is
		for _, room := range []interface {
			RefuseWhile(full func(context.Context) error)
		}{drawings, startsItself, reports} {
			room.RefuseWhile(h.disk.Check)
		}
		h.editor.Full = h.disk.Check
		asked.RefuseWhile(h.disk.CheckNearlyNone) // runs that are accepted wait for the disk
	}
	h.checks = &sourcecheck.Service{Store: db, Repositories: hosts, Log: log, Now: db.Now}
	h.copier = &outputcopy.Copier{Store: db, Outputs: asked, Objects: keep, Buckets: remote.NewOutputs(s.FetchAllowPrivate, db), Log: log, Now: db.Now}
	h.failures, h.board = failureRecorder(db), operator.NewBoard(db, db.Now)
	h.hooks = webhooks.NewSender(db, webhook.New(s.FetchAllowPrivate), origins[0], log, db.Now)
	h.mailer = notifications.Mailer{Base: origins[0], Sent: h.sender.SendSoon, Now: db.Now}
	h.schedule = &schedules.Runner{Store: db, Runs: asked, Base: origins[0], Sent: h.sender.SendSoon, Log: log, Now: db.Now}
	finding := runfilters.NewService(db, db, db, db, db.Now)
	finding.DeleteBytes(h.files.DeleteNow)
	offered, err := s.clients(ctx, log)
	if err != nil {
		return nil, err
	}
	api := httpapi.New(httpapi.Options{
		Away: isUnavailable, Version: version,
		Log: log, Identity: people, BuiltIn: accounts, Cookie: cookie, Workflows: drawings, Sources: h.checks,
		Life: ctx, Runs: asked, Compare: &compare.Service{Runs: asked, Details: db, Known: db, Memory: h.memory}, Crates: &crate.Service{Runs: asked, Details: db, Known: db, Origins: db, Version: version, Now: db.Now},
		Feed: &h.hub, Sharing: shares, Editor: h.editor, CollabURL: s.CollabURL, Files: h.files, Uploads: h.uploads, Transfers: doors, Billing: money, Pages: pages,
		Account: h.account, Retention: h.retention, Providers: elsewhere,
		AI: h.ai, Chat: chat, VisitorKey: db.Key("visitors"), AnalysisWait: time.Minute, Scratch: scratch,
		Limiter: db, Answers: db, Memory: h.memory, Metrics: kernel.NewMetrics(h.metrics), Trace: h.traceRequest(), Now: db.Now,
		Secrets: secrets.NewService(db, db.Now), Environments: environmentsroom.NewService(db), Notifications: notifications.NewService(db, db.Now), Audit: audit.NewService(db),
		Webhooks:    webhooks.NewService(db, db, h.hooks, s.FetchAllowPrivate, db.Now),
		Schedules:   startsItself,
		Reported:    reports,
		Finding:     finding,
		Failed:      h.failures.Record,
		Board:       h.board,
		Groups:      identitygroups.NewService(db),
		Operator:    newOperator(aboutSettings{Version: version, SignUp: string(s.signUp(origins)), DatabaseURL: s.DatabaseURL, StorageURL: s.StorageURL, SMTPURL: s.SMTPURL}, db, h.disk, h.workers, catalog, h.sender.SendSoon, h.account.DeletePerson),
		Connections: connections.NewService(db, remote.New(s.FetchAllowPrivate), connections.Rules{PlainHTTP: s.FetchAllowPrivate}, db.Now),
		Clients:     offered,
		App:         httpapi.App{Files: web.App(), Unbuilt: web.Unbuilt, Connects: s.connects(keep)},
		Checks:      map[string]func(context.Context) error{"database": db.Ping, "storage": s.checkData, "environment": s.checkEnvironment, "disk": h.disk.Check},
		PublicURLs:  origins, TrustedProxies: proxies, RunsPerMinute: s.RunsPerMinute, ChangesPerDay: s.ChangesPerDay, SendsMail: s.SMTPURL != "",
	})
	h.handler = api.Handler()
	if s.servesAttempts() {
		h.handler = h.shims.Handler(h.handler)
	}
	h.upkeep = h.newKeeper()
	return h, nil
}

// runStore is what the room of runs asks of the database beside reading.
type runStore interface {
	runs.Store
	runs.SubmitStore
	runs.SweepStore
}

// syncedStore is the database as a run sees it: with everything that people have
// edited until now.
type syncedStore struct {
	runStore
	editor *collab.Server
	files  *files.Service
}

func (s syncedStore) RunSource(ctx context.Context, team ids.Team, id ids.Workflow) (runs.Source, error) {
	if _, err := s.editor.SyncDefinition(ctx, team, id); err != nil {
		return runs.Source{}, err
	}
	return s.runStore.RunSource(ctx, team, id)
}

// MissingFiles looks for uploads that have just arrived at the object store, which tells nobody.
func (s syncedStore) MissingFiles(ctx context.Context, team ids.Team, keys []string) ([]string, error) {
	missing, err := s.runStore.MissingFiles(ctx, team, keys)
	if err != nil || len(missing) == 0 {
		return missing, err
	}
	if err := s.files.SettleKeys(ctx, team, missing); err != nil {
		return nil, err
	}
	return s.runStore.MissingFiles(ctx, team, keys)
}

func (s syncedStore) ConfirmedSource(ctx context.Context, team ids.Team, id ids.Workflow) (runs.Source, error) {
	if _, err := s.editor.SyncDefinition(ctx, team, id); err != nil {
		return runs.Source{}, err
	}
	return s.runStore.ConfirmedSource(ctx, team, id)
}

// buildEngine makes what executes runs.
func (h *application) buildEngine(ctx context.Context, s *settings, keep objects.Kept, c credits.Catalog) (err error) {
	list, err := s.executors()
	if err != nil {
		return err
	}
	space, err := parseSize(s.TaskDisk)
	if err != nil {
		return err
	}
	inputs, err := parseSize(s.InputCache)
	if err != nil {
		return err
	}
	log, err := parseSize(s.TaskLog)
	if err != nil {
		return err
	}
	failedLife, err := s.failedLife()
	if err != nil {
		return err
	}
	h.feed = live.NewFeed(h.db.RunsBridge(), &h.hub, h.log)
	watched, trouble := h.observe()
	stored := observe.Objects{Kept: keep, Trouble: trouble}
	h.verifier = runs.NewVerifier(stored, h.db)
	if h.software.Sources, err = h.openSources(s, s.Data, s.Data); err != nil {
		return err
	}
	tasks := metrics.NewExecutors(h.metrics)
	h.workers = &executors.Workers{DB: h.db, Feed: h.feed, Alone: s.Embedded()}
	for i, x := range list {
		place, err := h.openExecutor(ctx, s, x)
		if err != nil {
			return err
		}
		h.places = append(h.places, place)
		watched := watched.For(tasks.Of(x.Name))
		h.workers.Engines = append(h.workers.Engines, engine.New(engine.Options{
			Network: s.TaskNetwork, Disk: space, TaskLog: log, FreeDisk: place.disk, Memory: h.memory,
			Queue: watched, Leases: watched, Clock: uptime.Read, Time: h.db.Clock(), Journal: watched, Archive: h.db, Secrets: h.db, Holds: h.db, Objects: stored, Verifier: h.verifier, Remote: s.StorageURL != "", Files: h.db, Driver: place.driver, Images: place.images, Environments: software.Of(place.Environments), Sources: &git.Sources{Trees: place.Sources.Trees, Connections: h.db}, Programs: s.Programs(x.Kind), Pipelines: h.db, Catalog: c,
			FailedFolders: &failedfolders.Keeper{Store: h.db, Objects: keep, KeepFor: failedLife, Low: h.disk.Low, Now: h.db.Now},
			Addresses:     h.db, RemoteInputs: s.remoteInputs(h.db), InputCache: inputs,
			Bytes: place.bytes, Dir: place.marks, Owner: place.host + " " + rand.Text(), Host: place.host, Scope: place.scope, AbandonAfter: place.away,
			Offer:   runs.Worker{Executor: x.Name, Kind: x.Kind, Place: i, PricePercent: x.Percent, NoEnvironments: place.Environments.Problem() != ""},
			Changed: h.feed.Changed, Ended: h.feed.Ended, Sampled: h.hub.SetUsage, Log: h.log, Now: h.db.Now,
		}))
	}
	h.feed.Wake, h.feed.Cancel = h.workers.WakeHere, h.workers.CancelHere
	return nil
}

// remoteInputs reads what runs take by address.
func (s *settings) remoteInputs(db *store.DB) *remote.Inputs {
	inputs := remote.NewInputs(remote.New(s.FetchAllowPrivate), db, s.FetchAllowPrivate)
	inputs.Loaded = s.loaded()
	return inputs
}

// mailTransport sends mails; the mailbox is nil unless they stay here.
func (s *settings) mailTransport(now func() time.Time) (mail.Transport, account.Mailbox, error) {
	if s.SMTPURL != "" {
		c, err := mail.NewSMTP(s.SMTPURL, now)
		return c, nil, err
	}
	f, err := mail.NewFolder(filepath.Join(s.Data, "mail"), "Millrace <millrace@localhost>", now)
	return f, f, err
}

func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// checkData reports whether the data folder takes a file.
func (s *settings) checkData(context.Context) error {
	f, err := os.CreateTemp(s.Data, ".ready-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	return f.Close()
}

// checkEnvironment reports whether the settings hold together.
func (s *settings) checkEnvironment(context.Context) error { return s.problems() }

// recover takes back what a dead server was at. Only the one owner of an
// embedded database may think that it is dead.
func (h *application) recover(ctx context.Context) error {
	return errors.Join(h.files.Recover(ctx), h.db.ReleaseErasures(ctx), h.db.ReleaseOutputCopies(ctx), h.db.ResetUpkeep(ctx))
}

// background is what runs beside the requests, on every server and worker.
func (h *application) background(ctx context.Context, g *errgroup.Group) {
	for _, part := range []interface{ Run(context.Context) error }{
		h.disk, h.feed, h.sender, h.editor, h.ai, h.account, h.upkeep, h.schedule, h.hooks, h.checks, h.refresher, h.copier, h.failures, h.board, h.verifier,
	} {
		g.Go(func() error { return part.Run(ctx) })
	}
	if h.taskDisk != nil {
		g.Go(func() error { return h.taskDisk.Run(ctx) })
	}
	for i, e := range h.workers.Engines {
		g.Go(func() error { return errors.Join(e.Run(ctx), h.places[i].driver.Close()) })
	}
	g.Go(func() error { return h.db.Clock().Run(ctx, h.log) })
	g.Go(func() error { return h.db.WatchSecretKey(ctx) })
	g.Go(h.shed)
}

// shed gives back what only starting took, 8 MB of buffers for migrations among
// it. The heap grows to twice what was last found in use, so this also bounds
// what it grows to.
func (h *application) shed() error {
	for _, place := range h.places {
		<-place.driver.Ready()
	}
	runtime.GC() // a pool lets go of what it holds at the second collection
	debug.FreeOSMemory()
	return nil
}

// serveHTTP answers on l until ctx ends, then lets open requests finish for
// as long as drain.
func serveHTTP(ctx context.Context, srv *http.Server, l net.Listener, serve func(net.Listener) error, drain time.Duration) error {
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		err := srv.Shutdown(grace)
		if err != nil {
			err = srv.Close() // who is not done by now is cut off
		}
		stopped <- err
	}()
	if err := serve(l); err != http.ErrServerClosed {
		return fmt.Errorf("serve: %w", err)
	}
	return <-stopped
}
