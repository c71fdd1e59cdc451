package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	software "github.com/millrace/millrace/cmd/millrace/environments"
	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/cmd/millrace/sources"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/tracing"
)

// settings are everything an operator can say. Each is a flag, an environment
// variable MILLRACE_<NAME> and a line of `millrace serve --help`.
type settings struct {
	databaseSettings             `embed:""`
	moneySettings                `embed:""`
	LogSettings                  `embed:""`
	imageSettings                `embed:""`
	sources.Settings             `embed:""`
	software.EnvironmentSettings `embed:""`
	PipelineSettings             `embed:""`

	retentionSettings `embed:""`
	executors.Slurm   `embed:""`

	executors.Kubernetes `embed:""`

	Listen             string            `default:"127.0.0.1:8080" help:"Address to listen on." group:"serving"`
	TLSCert            string            `name:"tls-cert" help:"Certificate file, to end TLS here." group:"serving"`
	TLSKey             string            `name:"tls-key" help:"Key file of the certificate." group:"serving"`
	AdminListen        string            `help:"Address for metrics (/metrics) and profiles (/debug/pprof/); off unless set. Keep it private." group:"serving"`
	PublicURLs         []string          `name:"public-urls" help:"Origins we are served on, comma-separated: base first, then the cloud host. Default: http:// and --listen." group:"serving"`
	CollabURL          string            `name:"collab-url" help:"Address of the editor-sync host. Default: the base with ws or wss." group:"serving"`
	TrustedProxies     []string          `help:"Addresses or networks of proxies whose X-Forwarded-For counts." group:"serving"`
	ClientsFolder      string            `help:"Folder with programs for other platforms, such as a release of the command line, which /clients/ offers to everybody." group:"serving"`
	Drain              time.Duration     `default:"30s" help:"How long SIGTERM waits for running work." group:"serving"`
	StorageURL         string            `name:"storage-url" help:"s3://bucket?endpoint=…&region=…; default: files in --data." group:"storage"`
	StorageURLFile     string            `name:"storage-url-file" help:"File with the value of --storage-url." group:"storage"`
	SMTPURL            string            `name:"smtp-url" help:"smtp://user:password@host:port?from=address; default: mail as .eml files in --data/mail." group:"storage"`
	SMTPURLFile        string            `name:"smtp-url-file" help:"File with the value of --smtp-url." group:"storage"`
	Identity           string            `default:"builtin" enum:"builtin,clerk" help:"Who keeps the accounts: builtin or clerk." group:"identity"`
	SignUp             string            `default:"" enum:",open,invite,closed" help:"Who may make an account: open, invite or closed. Default: open on loopback, else invite." group:"identity"`
	PasswordSignIn     string            `default:"on" enum:"on,off" help:"Whether people sign up and in with a password. With off, they use one of --oidc-providers." group:"identity"`
	OIDCSignUp         []string          `name:"oidc-sign-up" default:"off" help:"Whom providers bring in where --sign-up does not: open, off, or rules such as domain=example.org and group=lab, of which one must fit." group:"identity"`
	OIDCGroupClaim     string            `name:"oidc-group-claim" default:"groups" help:"Claim of providers that names the groups of a person." group:"identity"`
	OIDCProviders      []string          `name:"oidc-providers" help:"Names of OIDC providers people may sign in through." group:"identity"`
	OIDCIssuers        map[string]string `name:"oidc-issuers" help:"Issuer of each: name=https://…, separated by semicolons." group:"identity"`
	OIDCClientIDs      map[string]string `name:"oidc-client-ids" help:"Our client id at each: name=id, separated by semicolons." group:"identity"`
	OIDCSecrets        map[string]string `name:"oidc-client-secrets" help:"Our client secret at each: name=secret, separated by semicolons; none for a public client." group:"identity"`
	OIDCSecretsFile    string            `name:"oidc-client-secrets-file" help:"File with the value of --oidc-client-secrets." group:"identity"`
	ClerkSecretKey     string            `name:"clerk-secret-key" help:"Secret key of the Clerk instance." group:"identity"`
	ClerkSecretKeyFile string            `name:"clerk-secret-key-file" help:"File with the value of --clerk-secret-key." group:"identity"`
	ClerkAPIURL        string            `name:"clerk-api-url" default:"https://api.clerk.com" help:"Clerk's backend API." group:"identity"`
	ClerkFrontendURL   string            `name:"clerk-frontend-url" help:"Clerk's frontend API: the issuer of its session tokens." group:"identity"`

	Executor      string `default:"local" enum:"local,slurm,kubernetes,none" help:"Where tasks run: local, slurm, kubernetes, or none to leave them to workers elsewhere." group:"tasks"`
	ExecutorsFile string `help:"File that names several executors, in place of --executor, --capacity and the settings of clusters." group:"tasks"`

	Sandbox     string `default:"bwrap" enum:"bwrap,none" help:"How local tasks, and what reads PDFs, are isolated: bwrap, or none if you really want that." group:"tasks"`
	TaskNetwork bool   `help:"Let local tasks use the network." group:"tasks"`
	TaskDisk    string `default:"10GB" help:"Disk space of a local task." group:"tasks"`
	MinFreeDisk string `help:"Free disk space below which nothing new starts and uploads are refused, such as 5GB. Default: 5 % of the file system, at most 10 GB." group:"tasks"`
	Capacity    string `help:"What runs may use at once, such as vcpu=16,ramGb=64. Default: the machine." group:"tasks"`
	InputCache  string `default:"50GB" help:"Disk space for inputs that were fetched from elsewhere and no run uses now; the oldest make room." group:"tasks"`
	TaskLog     string `default:"64MB" help:"Log that is kept of one attempt of a task: its beginning and its end." group:"tasks"`

	AIBaseURL         string `name:"ai-base-url" help:"A chat-completions server for papers and chat, up to what comes before /chat/completions." group:"papers and chat"`
	AIModel           string `name:"ai-model" help:"Its model." group:"papers and chat"`
	AIAPIKey          string `name:"ai-api-key" help:"Its key." group:"papers and chat"`
	AIAPIKeyFile      string `name:"ai-api-key-file" help:"File with the value of --ai-api-key." group:"papers and chat"`
	ChatPerDay        int    `default:"200" help:"Chat requests a day for one person." group:"papers and chat"`
	ChatDailyQuota    int    `default:"5000" help:"Chat requests a day for all together." group:"papers and chat"`
	AnalysesPerDay    int    `default:"20" help:"Paper analyses a day for one visitor or team." group:"papers and chat"`
	CrossrefURL       string `name:"crossref-url" default:"https://api.crossref.org" help:"Where DOIs are looked up." group:"papers and chat"`
	OpenAlexURL       string `name:"openalex-url" default:"https://api.openalex.org" help:"Where papers are described." group:"papers and chat"`
	UnpaywallURL      string `name:"unpaywall-url" default:"https://api.unpaywall.org" help:"Where open copies are found." group:"papers and chat"`
	ContactEmail      string `help:"Our address for those services." group:"papers and chat"`
	FetchAllowPrivate bool   `help:"Let papers, images and data of connections be fetched from private networks." group:"papers and chat"`

	Payments                string `default:"" enum:",stripe,sandbox,off" help:"stripe, sandbox (mints credits!) or off. Default: sandbox on loopback, else off." group:"money"`
	StripeSecretKey         string `help:"Stripe's secret key." group:"money"`
	StripeSecretKeyFile     string `name:"stripe-secret-key-file" help:"File with the value of --stripe-secret-key." group:"money"`
	StripeWebhookSecret     string `help:"Secret of the Stripe webhook." group:"money"`
	StripeWebhookSecretFile string `name:"stripe-webhook-secret-file" help:"File with the value of --stripe-webhook-secret." group:"money"`
	StripeAPIURL            string `name:"stripe-api-url" default:"https://api.stripe.com" help:"Stripe's API." group:"money"`
	RunsPerMinute           int    `default:"30" help:"Runs one address may start a minute." group:"money"`
	ChangesPerDay           int    `default:"50000" help:"Changes one account may make a day, of those that are in the audit log; starting runs, deleting and signing in do not count." group:"money"`
}

// databaseSettings say where things are kept; every command reads them.
type databaseSettings = installation.Settings

// moneySettings say what things cost.
type moneySettings struct {
	Billing            string `default:"on" enum:"on,off" help:"on: runs and storage cost credits; off: nothing is charged or shown of prices, and only the quotas of teams count." group:"money"`
	PlansFile          string `help:"File that replaces the built-in plans, rates and packages." group:"money"`
	PlanFreeRunSeconds int    `default:"3600" help:"How long a run of the free plan may take." group:"money"`
}

// problems lists everything that is wrong with the settings alone.
func (s *settings) problems() error {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	if err := s.CheckSettings(); err != nil {
		note(err)
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		note(errors.New("--tls-cert and --tls-key go together"))
	}
	for _, u := range s.PublicURLs {
		if err := checkOrigin(u); err != nil {
			note(err)
		}
	}
	if _, err := s.proxies(); err != nil {
		note(err)
	}
	if _, err := s.catalog(); err != nil {
		note(err)
	}
	for name, size := range map[string]string{"--task-disk": s.TaskDisk, "--task-log": s.TaskLog, "--image-cache": s.ImageCache, "--input-cache": s.InputCache, "--source-cache": s.SourceCache} {
		if _, err := parseSize(size); err != nil {
			note(fmt.Errorf("%s: %w", name, err))
		}
	}
	if s.Connections < 5 {
		note(errors.New("--database-connections must be at least 5"))
	}
	if _, err := s.policy(); err != nil {
		note(err)
	}
	if s.OTLPEndpoint != "" && !tracing.CheckEndpoint(s.OTLPEndpoint) {
		note(fmt.Errorf("--otlp-endpoint: %q is not an address such as http://127.0.0.1:4318", s.OTLPEndpoint))
	}
	if s.MinFreeDisk != "" {
		if _, err := parseSize(s.MinFreeDisk); err != nil {
			note(fmt.Errorf("--min-free-disk: %w", err))
		}
	}
	for name, n := range map[string]int{"--runs-per-minute": s.RunsPerMinute, "--changes-per-day": s.ChangesPerDay, "--analyses-per-day": s.AnalysesPerDay, "--plan-free-run-seconds": s.PlanFreeRunSeconds, "--chat-per-day": s.ChatPerDay, "--chat-daily-quota": s.ChatDailyQuota} {
		if n < 1 {
			note(fmt.Errorf("%s must be at least 1", name))
		}
	}
	if err := s.paperProblems(); err != nil {
		note(err)
	}
	if err := s.executorProblems(); err != nil {
		note(err)
	}
	if s.Identity == "clerk" && (s.ClerkSecretKey == "" || checkOrigin(s.ClerkFrontendURL) != nil) {
		note(errors.New("--identity clerk needs --clerk-secret-key, and --clerk-frontend-url as an origin such as https://clerk.example.org"))
	}
	if _, err := s.providers(); err != nil {
		note(err)
	}
	if err := s.signInProblems(); err != nil {
		note(err)
	}
	if s.Payments == "stripe" && (s.StripeSecretKey == "" || s.StripeWebhookSecret == "") {
		note(errors.New("--payments stripe needs --stripe-secret-key and --stripe-webhook-secret"))
	}
	return errors.Join(errs...)
}

// checkOrigin refuses what no browser would send as an Origin.
func checkOrigin(text string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || text != u.Scheme+"://"+u.Host {
		return fmt.Errorf("--public-urls: %q is not an origin such as https://millrace.example.org (no path, no slash at the end)", text)
	}
	return nil
}

func (s *settings) proxies() ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range s.TrustedProxies {
		if addr, err := netip.ParseAddr(text); err == nil {
			list = append(list, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxies: %q is neither an address nor a network", text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// origins are the public URLs, given that we listen on addr.
func (s *settings) origins(addr net.Addr) []string {
	if len(s.PublicURLs) > 0 {
		return s.PublicURLs
	}
	scheme := "http"
	if s.TLSCert != "" {
		scheme = "https"
	}
	return []string{scheme + "://" + addr.String()}
}

// signUp is open only where nobody but this machine can reach us.
func (s *settings) signUp(origins []string) builtin.SignUpPolicy {
	switch {
	case s.SignUp != "":
		return builtin.SignUpPolicy(s.SignUp)
	case s.private(origins):
		return builtin.SignUpOpen
	default:
		return builtin.SignUpInvite
	}
}

func (s *settings) private(origins []string) bool {
	host, _, err := net.SplitHostPort(s.Listen)
	return err == nil && isLoopback(host) && !slices.ContainsFunc(origins, func(o string) bool {
		u, err := url.Parse(o)
		return err != nil || !isLoopback(u.Hostname())
	})
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}

// parseSize reads "10GB"; GB is 2³⁰ bytes and MB 2²⁰.
func parseSize(text string) (int64, error) {
	var n int64
	var unit string
	if _, err := fmt.Sscanf(strings.ToUpper(text), "%d%s", &n, &unit); err != nil || n < 1 || n > 1<<20 {
		return 0, fmt.Errorf("%q is not a size such as 10GB", text)
	}
	shift, ok := map[string]int{"MB": 20, "GB": 30}[unit]
	if !ok {
		return 0, fmt.Errorf("%q is not a size such as 10GB", text)
	}
	return n << shift, nil
}
