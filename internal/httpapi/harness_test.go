package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/clock/uptime"
	"github.com/millrace/millrace/internal/collab"
	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/domain/retention"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/engine/executor/tool/tooltest"
	"github.com/millrace/millrace/internal/engine/failedfolders"
	"github.com/millrace/millrace/internal/engine/recipe"
	"github.com/millrace/millrace/internal/environments"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/identity/groups"
	"github.com/millrace/millrace/internal/identity/oidc"
	"github.com/millrace/millrace/internal/mail"
	"github.com/millrace/millrace/internal/notifications"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/papers"
	"github.com/millrace/millrace/internal/papers/paperstest"
	"github.com/millrace/millrace/internal/payments/sandbox"
	"github.com/millrace/millrace/internal/remote"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/compare"
	"github.com/millrace/millrace/internal/runs/crate"
	"github.com/millrace/millrace/internal/runs/finding"
	"github.com/millrace/millrace/internal/runs/live"
	"github.com/millrace/millrace/internal/runs/reported"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/runs/webhooks"
	"github.com/millrace/millrace/internal/secrets"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/upkeep"
	"github.com/millrace/millrace/internal/webhook"
	"github.com/millrace/millrace/internal/workflows"
	"github.com/millrace/millrace/internal/workflows/sourcecheck"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // of hundreds of small servers, it takes a quarter of the time
	tooltest.Main(m)
}

const (
	base  = "http://127.0.0.1:8080"
	cloud = "https://cloud.millrace.example"
)

// harness is the real API over a real database, with a clock the test turns.
type harness struct {
	t        *testing.T
	url      string
	db       *store.DB
	mux      *kernel.Mux
	accounts *builtin.System
	mailbox  string
	sender   *mail.Sender
	log      *bytes.Buffer

	papers    *paperstest.Services
	hub       live.Hub
	editor    *collab.Server
	keeper    *disk.Store
	verifier  *runs.Verifier
	schedules *schedules.Runner
	filesRoom *files.Service
	uploads   *files.Uploads
	people    *account.Service
	attempts  string // the executor's folder

	opened time.Time
	mu     sync.Mutex
	now    time.Time
}

func (h *harness) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(time.Microsecond) // two things never happen at once
	return h.now
}

// ticking is the clock of what waits for a time to come: nobody turns it then.
func (h *harness) ticking() time.Time { return h.clock().Add(time.Since(h.opened)) }

func (h *harness) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func (h *harness) deletePerson(ctx context.Context, id ids.User) ([]ids.Team, error) {
	return h.people.DeletePerson(ctx, id)
}

// newHarness opens one on SQLite; options may be changed before it is built.
func newHarness(t *testing.T, change ...func(*httpapi.Options, *builtin.Options)) *harness {
	t.Helper()
	return houseOn(t, storetest.SQLite(t), change...)
}

// eachHarness runs the test over both databases.
func eachHarness(t *testing.T, test func(t *testing.T, h *harness)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) { test(t, houseOn(t, url)) })
}

func houseOn(t *testing.T, url string, change ...func(*httpapi.Options, *builtin.Options)) *harness {
	t.Helper()
	h := &harness{t: t, url: url, db: storetest.Open(t, url), mailbox: t.TempDir(), opened: time.Now(), now: time.Now().Truncate(time.Second), log: &bytes.Buffer{}}
	log := slog.New(slog.NewTextHandler(&locked{w: h.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	folder, err := mail.NewFolder(h.mailbox, "millrace@localhost", h.clock)
	if err != nil {
		t.Fatal(err)
	}
	h.sender = mail.NewSender(h.db, folder, log, h.clock)
	ido := builtin.Options{
		Private: true, Stores: h.db.Identity(), Post: h.sender, Passwords: builtin.NewPasswordsOfCost(64, 1),
		Origins: []string{base, cloud}, SignUp: builtin.SignUpOpen, FirstPlan: "free", Now: h.clock,
	}
	signer := disk.NewSigner(h.db.Key("objects"))
	keeper, err := disk.Open(t.Context(), t.TempDir(), signer, h.clock)
	if err != nil {
		t.Fatal(err)
	}
	catalog := credits.DefaultCatalog()
	h.keeper, h.filesRoom = keeper, files.NewService(h.db.FileStores(), objects.Kept{Store: keeper, Presigner: keeper}.Bytes(), catalog, h.clock)
	h.uploads = files.NewUploads(h.db, keeper, h.filesRoom)
	h.verifier = runs.NewVerifier(objects.Kept{Store: keeper, Presigner: keeper}, h.db)
	background(t, h.verifier.Run)
	work := engineOf(t, h)
	asked := runs.NewService(runs.Options{
		Store: h.db, Details: h.db, Shards: h.db, Reported: reported.Tasks{Store: h.db}, Reports: h.db.Key("reports"), Logs: h.db, Submit: h.db, Sweeps: h.db, Kept: h.db, Known: h.db, Remote: remote.NewInputs(remote.New(true), h.db, true), Targets: remote.NewOutputs(true, h.db), Recipes: recipe.Of, Objects: objects.Kept{Store: keeper, Presigner: keeper}, Verifier: h.verifier, Engine: work, Catalog: catalog, Now: h.clock,
	})
	h.schedules = &schedules.Runner{Store: h.db, Runs: asked, Base: base, Log: log, Now: h.clock}
	o := httpapi.Options{
		Notifications: notifications.NewService(h.db, h.clock), Finding: finding.NewService(h.db, h.db, h.db, h.db, h.clock),
		Runs: asked, Schedules: schedules.NewService(h.db, h.db, asked, h.clock),
		Webhooks: webhooks.NewService(h.db, h.db, webhooks.NewSender(h.db, webhook.New(true), base, log, h.clock), true, h.clock), Compare: &compare.Service{Runs: asked, Details: h.db, Known: h.db}, Crates: &crate.Service{Runs: asked, Details: h.db, Known: h.db, Origins: h.db, Version: "test", Now: h.clock},
		Reported: reported.NewService(h.db, &h.hub, h.clock),
		Operator: operator.NewService(operator.Options{
			Operators: h.db, Runs: h.db, Keeping: h.db, Changes: h.db, Notices: h.db, Mailbox: h.db, People: h.db, Delete: h.deletePerson, SendSoon: h.sender.SendSoon, Wake: work.Wake, Cancel: work.Cancel, Catalog: catalog, Disk: func() operator.Disk { return operator.Disk{Total: 2, Free: 1} },
			About: operator.About{Version: "test", SignUp: "open"}, Now: h.clock,
		}),
		Board:  operator.NewBoard(h.db, h.clock),
		Groups: groups.NewService(h.db),
		Feed:   &h.hub, Life: t.Context(),
		Files: h.filesRoom, Uploads: h.uploads, Transfers: signer,
		Billing: billing.NewService(billing.Options{Ledger: h.db, Budgets: h.db, Quotas: h.db, Costs: h.db, Orders: h.db, History: h.db, Capacity: work, Catalog: catalog, Payments: sandbox.Sandbox{}, Sandbox: true, Now: h.clock}),
		Pages:   sandbox.Sandbox{}, VisitorKey: h.db.Key("visitors"), AnalysisWait: time.Minute, Scratch: t.TempDir(),
		Log: log, Secrets: secrets.NewService(h.db, h.clock), Environments: environments.NewService(h.db), Audit: audit.NewService(h.db), Connections: connections.NewService(h.db, remote.New(true), connections.Rules{PlainHTTP: true}, h.clock), Workflows: workflows.NewService(h.db.WorkflowStores(), h.clock), Sources: &sourcecheck.Service{Store: h.db, Log: log, Now: h.clock}, Limiter: h.db, Answers: h.db, App: builtApp(),
		Checks:  map[string]func(context.Context) error{"database": h.db.Ping},
		Metrics: kernel.NewMetrics(prometheus.NewRegistry()), Now: h.clock,
		PublicURLs: []string{base, cloud}, RunsPerMinute: 30,
	}
	h.paperRoom(&o, log)
	o.Account = account.NewService(account.Options{
		Store: h.db, Eraser: h.db, People: h.db, Runs: h.db, Objects: objects.Kept{Store: keeper, Presigner: keeper}, Engine: work, Mailbox: folder, Log: log, Now: h.clock,
		Lifetimes: account.Lifetimes{UploadLink: files.UploadLife, Transfer: files.TransferLife},
	})
	h.people = o.Account
	background(t, o.Account.Run)
	o.Providers = oidc.New(nil, h.db.Key("sign-in elsewhere"), h.clock)
	o.Retention = upkeep.NewRetention(h.db, retention.Policy{retention.Logs: 90}, h.clock)
	for _, c := range change {
		c(&o, &ido)
	}
	background(t, o.AI.Run)
	h.accounts = builtin.New(ido)
	o.Sharing = sharing.NewService(sharing.Options{Store: h.db, Results: h.db, Rooms: h.db, Members: h.accounts, Key: h.db.Key("sharing"), Now: h.clock})
	h.editor = editorOf(t, h, o)
	o.Editor = h.editor
	o.Workflows.GoLive(h.editor)
	o.Workflows.FollowGit(&repository{}, nil)
	if o.Identity == nil {
		o.Identity, o.BuiltIn = h.accounts, h.accounts
	}
	if err := h.accounts.Keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := httpapi.New(o)
	h.mux = a.Handler()
	return h
}

// engineOf carries the harness's runs, by an executor that does as it is told.
func engineOf(t *testing.T, h *harness) *engine.Engine {
	t.Helper()
	dir := t.TempDir()
	h.attempts = dir
	driver, err := dummy.New(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Options{
		Queue: h.db, Leases: h.db, Clock: uptime.Read, Journal: h.db, Archive: h.db, Holds: h.db, Objects: objects.Kept{Store: h.keeper, Presigner: h.keeper}, Verifier: h.verifier, Files: h.db, Driver: driver, Catalog: credits.DefaultCatalog(),
		Dir: dir, Owner: "here test", Host: "here", AbandonAfter: time.Minute, Changed: h.hub.Changed, Ended: h.hub.Ended, Sampled: h.hub.SetUsage,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: h.ticking,
		Addresses: h.db, RemoteInputs: remote.NewInputs(remote.New(true), h.db, true), InputCache: 1 << 30,
		FailedFolders: &failedfolders.Keeper{Store: h.db, Objects: objects.Kept{Store: h.keeper, Presigner: h.keeper}, KeepFor: time.Hour, Now: h.clock},
	})
	t.Cleanup(func() { driver.Close() })
	background(t, e.Run)
	return e
}

// background runs something until the test has ended.
func background(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// mill is a paper that everybody knows, with an open copy.
const mill = "10.1000/mill"

// paperRoom reads papers of its own services, without a model.
func (h *harness) paperRoom(o *httpapi.Options, log *slog.Logger) {
	h.papers = paperstest.New(h.t)
	h.papers.Add(mill, paperstest.Work{Title: "On Mills", Abstract: "Mills grind.", PDF: paperstest.PDF(paperstest.Sample)})
	options := h.papers.Options()
	options.Sandbox = tooltest.New(h.t, tooltest.Limits)
	library := papers.New(options)
	o.AI = ai.NewService(ai.Options{
		Store: h.db, Queue: h.db, Use: h.db, Failed: h.db, Library: library, PDFs: library, Limits: ai.DefaultLimits(), Worker: "test", Alone: true, Log: log, Now: h.clock,
	})
	o.Chat = &ai.Chat{Store: h.db, Limits: ai.ChatLimits{PerUser: 200, All: 5000}, Log: log, Now: h.clock}
}

// editorOf hosts the harness's editor rooms.
func editorOf(t *testing.T, h *harness, o httpapi.Options) *collab.Server {
	t.Helper()
	s := collab.New(collab.Options{
		Documents: h.db, Definitions: o.Workflows, Passes: o.Sharing, Bridge: h.db.Bridge(),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: time.Now,
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// someone is a person with a session.
type someone struct {
	id     ids.User
	email  string
	team   ids.Team
	token  string
	secret string
}

// signUp makes an account through the API.
func (h *harness) signUp(name string) someone {
	h.t.Helper()
	email := strings.ToLower(name) + "@example.org"
	r := h.call("POST", "/auth/sign-up", fmt.Sprintf(`{"email":%q,"password":"correct horse","name":%q}`, email, name)).want(201)
	c, err := http.ParseSetCookie(r.header.Get("Set-Cookie"))
	if err != nil {
		h.t.Fatal(err)
	}
	return someone{
		id: ids.User(r.text("data", "user", "id")), email: email, team: ids.Team(r.text("data", "team", "id")),
		token: r.text("data", "token"), secret: c.Value,
	}
}

// verify follows the link in the mail to a person.
func (h *harness) verify(who someone) {
	h.t.Helper()
	h.call("POST", "/auth/verify", fmt.Sprintf(`{"token":%q}`, h.linkToken(who.email, "verify"))).want(200)
}

// verified makes an account that has proven its address.
func (h *harness) verified(name string) someone {
	h.t.Helper()
	who := h.signUp(name)
	h.verify(who)
	return who
}

// join brings a person into a team through the back door.
func (h *harness) join(who someone, host someone, role access.Role) {
	h.t.Helper()
	id := ids.NewInvitation()
	now := h.clock()
	sent := builtin.SentInvitation{
		Invitation: identity.Invitation{
			ID: id, Team: identity.Team{ID: host.team}, Email: who.email, Role: role,
			InvitedBy: host.id, CreatedAt: now, ExpiresAt: now.Add(time.Hour), Proves: true,
		},
		TokenHash: string(id), SentAt: now, Mail: &mails.Message{ID: string(id), To: who.email},
	}
	if err := h.db.InsertInvitation(h.t.Context(), sent); err != nil {
		h.t.Fatal(err)
	}
	if err := h.db.AcceptInvitation(h.t.Context(), sent.Invitation, who.id, "", now); err != nil {
		h.t.Fatal(err)
	}
}

// mailTo is the newest mail to an address.
func (h *harness) mailTo(to string) string {
	h.t.Helper()
	h.sender.SendNow(h.t.Context())
	for _, text := range slices.Backward(h.mails()) {
		if strings.Contains(text, "To: <"+to+">") {
			return text
		}
	}
	h.t.Fatalf("no mail to %s", to)
	return ""
}

// mails are all that were sent, the newest last.
func (h *harness) mails() (texts []string) {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.mailbox, "*.eml"))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			h.t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// invitationToken follows the link in the newest mail to an address.
func (h *harness) invitationToken(to string) string {
	h.t.Helper()
	_, rest, found := strings.Cut(h.mailTo(to), "/invitations/")
	if !found {
		h.t.Fatal("the mail has no link")
	}
	return strings.Fields(rest)[0]
}
