package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/installation"
)

func TestTheServiceManagerHearsHowTheServerIs(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "notify") // the name of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(folder, "s"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	said := make(chan string, 1000)
	go func() {
		for b := make([]byte, 1000); ; {
			n, err := socket.Read(b)
			if err != nil {
				close(said)
				return
			}
			said <- string(b[:n])
		}
	}()
	cmd := millrace(t, "serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+filepath.Join(folder, "s"), "WATCHDOG_USEC=100000")
	s := launch(t, cmd)
	if first := <-said; first != "READY=1" {
		t.Errorf("it says %q first", first)
	}
	if next := <-said; next != "WATCHDOG=1" {
		t.Errorf("then %q", next)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for word := range said {
		if word == "STOPPING=1" {
			break
		}
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v %s", err, s.log)
	}
}

func TestAServiceManagerThatIsGoneEndsNoServer(t *testing.T) {
	t.Parallel()
	cmd := millrace(t, "serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+filepath.Join(t.TempDir(), "gone"))
	s := launch(t, cmd)
	await(t, "it says so", func() bool { return strings.Contains(s.log.String(), "does not hear us") })
	if status, data, _ := s.call(http.MethodGet, "/api/health", ""); status != http.StatusOK {
		t.Error(status, data)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.drained
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v %s", err, s.log)
	}
}

func TestTheServerTakesTheSocketItIsHanded(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := millrace(t, "serve", "--listen", "127.0.0.1:1")
	// LISTEN_PID is the process that execs the program, which a shell knows.
	args := append([]string{"-c", `LISTEN_PID=$$ exec "$@"`, "sh"}, cmd.Args...)
	shell := exec.Command("sh", args...)
	shell.Env, shell.Dir, shell.ExtraFiles = append(cmd.Env, "LISTEN_FDS=1"), cmd.Dir, []*os.File{file}
	s := launch(t, shell)
	if s.base != "http://"+l.Addr().String() {
		t.Errorf("it listens on %s, not %s", s.base, l.Addr())
	}
	if status, data, _ := s.call(http.MethodGet, "/api/health", ""); status != http.StatusOK || data["version"] != version {
		t.Error(status, data)
	}
}

func TestSettingsComeFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sub", "millrace.conf")
	data := filepath.Join(t.TempDir(), "data")
	out, err := millrace(t, "admin", "init", file, "--data", data, "--listen", "127.0.0.1:0", "--public-urls", "https://a.example,https://b.example", "--drain", "7s").CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, want := range []string{"data = " + data, "public-urls = https://a.example,https://b.example", "drain = 7s", "sign-up = invite", "#task-disk = 10GB"} {
		if !slices.Contains(lines, want) {
			t.Errorf("%q is not in the file", want)
		}
	}
	if out, err := millrace(t, "admin", "init", file).CombinedOutput(); err == nil || !strings.Contains(string(out), "is there already") {
		t.Errorf("a second time: %v %s", err, out)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "127.0.0.1:9090", "127.0.0.1:0")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := launch(t, millrace(t, "serve", "--config", file))
	if _, err := os.Stat(filepath.Join(data, installation.File)); err != nil {
		t.Error("the file's --data does not count:", err)
	}
	if s.metrics == "" {
		t.Error("the file's --admin-listen does not count")
	}
	s.kill()
	other := filepath.Join(t.TempDir(), "other")
	cmd := millrace(t, "migrate")
	cmd.Env = append(cmd.Env, "MILLRACE_CONFIG="+file, "MILLRACE_DATA="+other)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(other, installation.File)); err != nil {
		t.Error("a variable does not win over the file:", err)
	}
}

func TestSettingsAreWrittenAsTheyAreRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "millrace.conf")
	cmd := millrace(t, "admin", "init", file, "--oidc-providers", "a", "--oidc-issuers", "a=https://a.example",
		"--oidc-client-ids", "a=one", "--oidc-client-secrets", `a=x\;b=y`)
	cmd.Env = append(cmd.Env, "MILLRACE_DATABASE_URL=postgres://db.example/millrace")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`oidc-client-secrets = a=x\;b=y`, "database-url = postgres://db.example/millrace", "secret-key = "} {
		if !strings.Contains(string(text), "\n"+want) {
			t.Errorf("%q is not in the file", want)
		}
	}
	for _, value := range []string{"a@b.example\nsign-up = open", " a@b.example", "a@b.example\t"} {
		refused := filepath.Join(t.TempDir(), "f")
		out, err := millrace(t, "admin", "init", refused, "--contact-email", value).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "cannot be written to a file") {
			t.Errorf("%q: %v %s", value, err, out)
		}
		if _, err := os.Stat(refused); err == nil {
			t.Errorf("%q: there is a file", value)
		}
	}
}

func TestAFileOfSettingsThatIsWrongIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"listem = 127.0.0.1:0":      `line 1 of the settings file: there is no setting "listem"`,
		"\nlisten":                  "line 2 of the settings file is not",
		"drain = 1s\ndrain = 2s":    "lines 1 and 2",
		"drain = soon":              "drain",
		"config = /etc/passwd":      "there is no setting",
		"secret-key = a\x00b":       "NUL",
		strings.Repeat("x", 70_000): "cannot be read",
	} {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := millrace(t, "serve", "--listen", "127.0.0.1:0", "--config", file).CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%.40q: %v %s", text, err, out)
		}
	}
}

// man reads the page without a complaint.
func TestTheManualPage(t *testing.T) {
	t.Parallel()
	out, err := millrace(t, "man").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".TH MILLRACE 1", ".SS serve", `\-\-public\-urls`, ".SS runs watch", ".SS admin init"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it lacks %q", want)
		}
	}
	for line := range strings.Lines(string(out)) {
		if (line[0] == '.' || line[0] == '\'') && !slices.ContainsFunc([]string{".TH ", ".SH ", ".SS ", ".TP\n", ".B ", ".I ", ".PP\n"}, func(known string) bool { return strings.HasPrefix(line, known) }) {
			t.Errorf("roff would take this for a request: %q", line)
		}
	}
}
