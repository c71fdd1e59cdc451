package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/cmd/millrace/settingsfile"
	"github.com/millrace/millrace/internal/store/storetest"
)

// Settings that are wrong are refused before anything is written, with what to do.
func TestWrongSettingsAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		variable, want string
		args           []string
	}{
		"a misspelled variable":     {variable: "MILLRACE_SIGN_UPP=open", want: `MILLRACE_SIGN_UPP; did you mean "MILLRACE_SIGN_UP"?`},
		"an unknown variable":       {variable: "MILLRACE_COFFEE=black", want: "MILLRACE_COFFEE; remove it"},
		"another database":          {args: []string{"--database-url", "mysql://localhost/millrace"}, want: "does not know mysql databases: give postgres://"},
		"a short key":               {args: []string{"--secret-key", "short"}, want: "use at least 16"},
		"an issuer of nobody":       {args: []string{"--oidc-issuers", "orcid=https://orcid.example"}, want: `--oidc-issuers names "orcid", which is not in --oidc-providers`},
		"a provider without issuer": {args: []string{"--oidc-providers", "orcid"}, want: "--oidc-issuers: the issuer of orcid"},
		"a secret of nobody":        {args: []string{"--oidc-client-secrets", "orcid=hush"}, want: `--oidc-client-secrets names "orcid"`},
		"two secrets":               {args: []string{"--secret-key", "a key that is long enough", "--secret-key-file", "/etc/hostname"}, want: "--secret-key and --secret-key-file are both set"},
		"no file":                   {args: []string{"--stripe-secret-key-file", "/nowhere"}, want: "--stripe-secret-key-file: open /nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			cmd := millrace(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, c.args...)...)
			if c.variable != "" {
				cmd.Env = append(cmd.Env, c.variable)
			}
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) {
				t.Errorf("%v %s", err, out)
			}
			if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
				t.Error("it has written something:", err)
			}
		})
	}
}

// Variables of others are nobody's mistake.
func TestVariablesOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	parser, err := console{}.parser(func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := settingsfile.Unknown(parser.Model, []string{
		"MILLRACE_TEST_POSTGRES=x", "MILLRACE_ATTEMPT=x", "MILLRACE_TOKEN=x", "MILLRACE_CONFIG=x", "MILLRACE_SIGN_UP=open", "PATH=/bin",
		"MILLRACE_SERVICE_HOST=10.0.0.1", "MILLRACE_SERVICE_PORT_HTTP=80", "MILLRACE_PORT=tcp://10.0.0.1:80", "MILLRACE_ADMIN_PORT_9090_TCP_ADDR=10.0.0.1",
	}); err != nil {
		t.Error(err)
	}
}

// A server with another key than the database's changes nothing in it.
func TestTheKeyIsCheckedBeforeMigration(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		data := t.TempDir()
		args := []string{"--data", data}
		if strings.HasPrefix(url, "postgres") {
			args = append(args, "--database-url", url)
		} else {
			text, err := os.ReadFile(url)
			if err := errors.Join(err, os.WriteFile(filepath.Join(data, "millrace.db"), text, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		start(t, append(args, "--secret-key", "the key of this database")...).kill()
		for _, command := range []string{"migrate", "serve"} {
			out, err := millrace(t, append([]string{command, "--secret-key", "the key of another one"}, args...)...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "is not the one this database was made with") {
				t.Errorf("%s: %v %s", command, err, out)
			}
			out, err = millrace(t, append([]string{command}, args...)...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "and there is none in") {
				t.Errorf("%s without a key: %v %s", command, err, out)
			}
		}
		if out, err := millrace(t, append([]string{"migrate", "--secret-key", "the key of this database"}, args...)...).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
}

func TestSecretsComeFromFiles(t *testing.T) {
	t.Parallel()
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("a key that is long enough\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--data", data, "--secret-key-file", file)
	if strings.Contains(s.log.String(), "everybody on this machine") {
		t.Error(s.log)
	}
	s.kill()
	s = start(t, "--data", data, "--secret-key", "a key that is long enough", "--smtp-url", "smtp://127.0.0.1:1?from=a@b.c")
	if log := s.log.String(); !strings.Contains(log, "everybody on this machine") || !strings.Contains(log, `["--secret-key"]`) {
		t.Error(log)
	}
	s.kill()
	for text, want := range map[string]string{"": "is empty", "one\ntwo": "must have one line", strings.Repeat("x", 70_000): "more than"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := millrace(t, "migrate", "--data", data, "--secret-key-file", file).CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%.20q: %v %s", text, err, out)
		}
	}
	out, err := millrace(t, "admin", "doctor", "--data", data, "--secret-key", "a key that is long enough", "--storage-url", "s3://b?endpoint=http://127.0.0.1:1&access-key=a&secret-key=b").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "warning  secrets: --storage-url, --secret-key on the command line") && !strings.Contains(string(out), "warning  secrets: --secret-key, --storage-url on the command line") {
		t.Errorf("%v %s", err, out)
	}
}

// As root beside the package, commands read the settings of the service and act as the owner of its
// data folder, unless somebody names another installation.
func TestCommandsActAsTheService(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root becomes another user")
	}
	data, other, layer := packagedFolder(t), filepath.Join(t.TempDir(), "other"), t.TempDir()
	// /etc with a settings file, for one command.
	const steps = `mount -t tmpfs tmpfs "$1" && mkdir "$1/u" "$1/w" && mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/u,workdir=$1/w" /etc && mkdir -p /etc/millrace && printf '%b' "$2" > /etc/millrace/millrace.conf && chmod 600 /etc/millrace/millrace.conf && shift 2 && exec "$@"`
	packaged := func(conf string, args ...string) (string, error) {
		cmd := millrace(t, args...)
		path, err := exec.LookPath("unshare")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args = append([]string{path, "--mount", "sh", "-euc", steps, "sh", layer, conf, cmd.Path}, args...)
		cmd.Path = path
		cmd.Stdin = strings.NewReader("a good password\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	conf := "data = " + data + `\nlisten = 127.0.0.1:0\ncontact-email = ada@example.org\n`
	do := func(want string, args ...string) {
		t.Helper()
		if out, err := packaged(conf, args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v %s", args, err, out)
		}
	}
	doctor := func(want string, args ...string) {
		t.Helper()
		if out, _ := packaged(conf, append([]string{"admin", "doctor"}, args...)...); !strings.Contains(out, want) {
			t.Errorf("doctor %q: %s", args, out)
		}
	}
	doctor("ok       database (empty; the server makes its tables)")
	do("is up to date", "migrate")
	do("created account", "admin", "user", "create", "bob@example.org", "--name", "Bob")
	doctor("ok       data folder " + data)
	doctor("ok       contact address", "--data", data)
	do("bob@example.org", "admin", "user", "list")
	do("sealed with the new key", "admin", "rotate-key")
	wantOwned(t, data)

	start(t, "--data", other).kill()
	if out, err := packaged(conf, "admin", "user", "list", "--data", other); err != nil || strings.Contains(out, "bob@") {
		t.Errorf("of another installation: %v %s", err, out)
	}
	if out, err := packaged(`contact-emial = x\n`, "admin", "user", "list"); err == nil || !strings.Contains(out, `did you mean "contact-email"?`) {
		t.Errorf("with a wrong file: %v %s", err, out)
	}
	if out, err := packaged(`contact-emial = x\n`, "version"); err != nil {
		t.Errorf("a command of the client: %v %s", err, out)
	}
}

func TestTheDoctorBeforeTheFirstStart(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		args := []string{"admin", "doctor", "--data", filepath.Join(t.TempDir(), "data")}
		if strings.HasPrefix(url, "postgres") {
			system(t, "psql", "--quiet", "--command=DROP SCHEMA public CASCADE; CREATE SCHEMA public", url)
			args = append(args, "--database-url", url)
		}
		out, err := millrace(t, args...).CombinedOutput()
		for _, want := range []string{"(does not exist yet; the server makes it)", "ok       database (empty", "ok       port of --listen 127.0.0.1:0 (free)"} {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v, without %q: %s", err, want, out)
			}
		}
		if _, err := os.Stat(args[3]); err == nil {
			t.Error("it made the data folder")
		}
	})
}

// The doctor asks everything that the settings name.
func TestTheDoctorLooksAtTheNetwork(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer":%q}`, issuer.URL)
		case "/other/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer":%q}`, issuer.URL)
		default:
			http.NotFound(w, r)
		}
	}))
	defer issuer.Close()
	said := make(chan string, 1)
	mail, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mail.Close()
	go func() {
		for {
			conn, err := mail.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, <-said)
			conn.Close()
		}
	}()
	certificate, key, _ := selfSigned(t, data)
	s := start(t, "--data", data, "--admin-listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key)
	doctor := func(wants []string, args ...string) {
		t.Helper()
		out, _ := millrace(t, append([]string{"admin", "doctor", "--data", data}, args...)...).CombinedOutput()
		for _, want := range wants {
			if !strings.Contains(string(out), want) {
				t.Errorf("%q: without %q: %s", args, want, out)
			}
		}
	}
	oidc := func(at string) []string {
		return []string{"--oidc-providers", "a", "--oidc-issuers", "a=" + at, "--oidc-client-ids", "a=b"}
	}
	said <- "220 mail.example ESMTP\r\n"
	doctor([]string{"ok       issuers", "ok       mail", "(used by Millrace)", "warning  certificate " + certificate},
		append(oidc(issuer.URL), "--smtp-url", "smtp://"+mail.Addr().String()+"?from=a@b.c", "--listen", strings.TrimPrefix(s.base, "http://"), "--tls-cert", certificate, "--tls-key", key)...)
	said <- "554 no\r\n"
	doctor([]string{"WRONG    issuers that people sign in through: a: people cannot sign in: ", "both must be the same", `WRONG    mail: the mail server refuses us: "554 no"`, "WRONG    port of --listen " + issuer.Listener.Addr().String() + ": another program uses it"},
		append(oidc(issuer.URL+"/other"), "--smtp-url", "smtp://"+mail.Addr().String()+"?from=a@b.c", "--listen", issuer.Listener.Addr().String())...)
}

// What keeps users from making namespaces is named, with what lifts it.
func TestRulesAboutUserNamespacesAreNamed(t *testing.T) {
	t.Parallel()
	system := func(files ...string) func(string) ([]byte, error) {
		return func(path string) ([]byte, error) {
			for i := 0; i < len(files); i += 2 {
				if files[i] == path {
					return []byte(files[i+1]), nil
				}
			}
			return nil, fs.ErrNotExist
		}
	}
	const restricted = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	for want, read := range map[string]func(string) ([]byte, error){
		"":                         system(restricted, "0\n"),
		"/etc/apparmor.d/millrace": system(restricted, "1\n"),
		"apparmor_parser --replace /etc/apparmor.d/millrace": system(restricted, "1\n", apparmorProfile, "profile"),
		"max_user_namespaces":                                system("/proc/sys/user/max_user_namespaces", "0\n"),
		"sysctl -w kernel.unprivileged_userns_clone=1":       system("/proc/sys/kernel/unprivileged_userns_clone", "0\n"),
	} {
		if err := checkNamespaces(false, read); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if err := checkNamespaces(true, read); err != nil {
			t.Error("root:", err)
		}
	}
}

// A certificate that ends soon is a warning, one that has ended or is for another name an error.
func TestTheDoctorLooksAtTheCertificate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	certificate, key, _ := selfSigned(t, folder)
	s := &settings{TLSCert: certificate, TLSKey: key}
	now := time.Now()
	if f := s.checkCertificate(now.Add(-renewBefore)); f.err != nil {
		t.Error(f)
	}
	if f := s.checkCertificate(now); f.err == nil || !f.warning || !strings.Contains(f.err.Error(), "ends soon") {
		t.Error(f)
	}
	if f := s.checkCertificate(now.Add(renewBefore)); f.err == nil || f.warning || !strings.Contains(f.err.Error(), "has expired") {
		t.Error(f)
	}
	s.PublicURLs = []string{"https://127.0.0.1:8080", "https://other.example"}
	if f := s.checkCertificate(now.Add(-renewBefore)); f.err == nil || strings.Contains(f.err.Error(), "127.0.0.1, not") || !strings.Contains(f.err.Error(), "other.example") {
		t.Error(f)
	}
	_, other, _ := selfSigned(t, t.TempDir())
	s.TLSKey = other
	if f := s.checkCertificate(now); f.err == nil || !strings.Contains(f.err.Error(), "does not match") {
		t.Error(f)
	}
}
