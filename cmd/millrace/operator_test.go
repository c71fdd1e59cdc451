package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTheOperatorWorksBesideTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, "--data", dir)
	token, cookie, data := s.signUp("ada")
	admin := func(in string, args ...string) string {
		t.Helper()
		c := millrace(t, append([]string{"admin"}, args...)...)
		c.Env = append(c.Env, "MILLRACE_DATA="+dir)
		c.Stdin = strings.NewReader(in)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v %s", args, err, out)
		}
		return string(out)
	}
	if out := admin("", "user", "list"); !strings.Contains(out, "ada@example.org") {
		t.Error(out)
	}
	team := data["team"].(map[string]any)["id"].(string)
	if out := admin("", "team", "list"); !strings.Contains(out, team) || !strings.Contains(out, "ada@example.org") {
		t.Error(out)
	}
	admin("", "team", "set-plan", team, "pro")
	if me := s.want(200, "GET", "/api/me", "", "Authorization", bearer(token)); me["team"].(map[string]any)["plan"] != "pro" {
		t.Errorf("%v", me)
	}
	admin("a good password\n", "user", "create", "bob@example.org", "--name", "Bob")
	if out, err := millrace(t, "admin", "user", "suspend", "ada@example.org", "--data", dir).CombinedOutput(); err == nil || !strings.Contains(string(out), "last operator") {
		t.Errorf("the last operator, suspended: %s, %v", out, err)
	}
	admin("", "user", "set-operator", "bob@example.org")
	admin("", "user", "suspend", "Ada@example.org")
	s.want(401, "GET", "/api/me", "", "Authorization", bearer(token))
	s.want(401, "GET", "/api/me", "", "Cookie", cookie)
	s.want(403, "POST", "/auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`)
	admin("", "user", "resume", "ada@example.org")
	admin("another horse\n", "user", "set-password", "ada@example.org")
	s.want(401, "POST", "/auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`)
	s.want(200, "POST", "/auth/sign-in", `{"email":"ada@example.org","password":"another horse"}`)
	s.want(200, "POST", "/auth/sign-in", `{"email":"bob@example.org","password":"a good password"}`)

	rules := fmt.Sprintf(`{"rules":[{"group":"lab","teamId":%q,"role":"member"}]}`, team)
	admin(rules, "group-mapping", "set", "-")
	if out := admin("", "group-mapping", "list"); !strings.Contains(out, `"lab"`) || !strings.Contains(out, team) {
		t.Error(out)
	}
	admin(admin("", "group-mapping", "list", "--json"), "group-mapping", "set", "-")
	for _, wrong := range []string{`{}`, `{"rules":[]}{"rules":[]}`, `{"rules":[],"more":1}`, strings.Replace(rules, team, "team_nobody", 1)} {
		c := millrace(t, "admin", "group-mapping", "set", "-")
		c.Env, c.Stdin = append(c.Env, "MILLRACE_DATA="+dir), strings.NewReader(wrong)
		if out, err := c.CombinedOutput(); err == nil {
			t.Errorf("%s: %s", wrong, out)
		}
	}

	// What the operators' page shows and does.
	worker := ""
	await(t, "the worker", func() bool {
		lines := strings.Split(strings.TrimSpace(admin("", "worker", "list")), "\n")
		if len(lines) == 2 && strings.HasSuffix(lines[1], "fine") {
			worker = strings.Fields(lines[1])[0]
		}
		return worker != ""
	})
	admin("", "worker", "drain", worker)
	if out := admin("", "worker", "list"); !strings.Contains(out, "draining") {
		t.Error(out)
	}
	admin("", "worker", "undrain", "embedded") // the host, which has only one
	admin("", "team", "suspend", team)
	if out := admin("", "team", "usage"); !strings.Contains(out, team) || !strings.Contains(out, "20") {
		t.Error(out)
	}
	admin("", "team", "resume", team)
	if out := admin("", "team", "set-quota", team, "--executors", "local,cluster", "--account", "lab", "--monthly-vcpu-hours", "100.5", "--storage-gb", "none"); !strings.Contains(out, "executors=local,cluster slurm-account=lab slurm-qos=none slurm-wckey=none storage-gb=none monthly-vcpu-hours=100.5 per-person-vcpu-hours=none") {
		t.Error(out)
	}
	if out := admin("", "team", "set-quota", "default", "--per-person-vcpu-hours", "7"); !strings.Contains(out, "new teams: plan=free") || !strings.Contains(out, "per-person-vcpu-hours=7") {
		t.Error(out)
	}
	admin("", "team", "grant", team, "7.5")
	admin("", "mail", "test", "ada@example.org")
	await(t, "the mail", func() bool {
		list, err := filepath.Glob(filepath.Join(dir, "mail", "*.eml"))
		for _, name := range list {
			text, _ := os.ReadFile(name)
			if strings.Contains(string(text), "Subject: Test email") {
				return true
			}
		}
		return err != nil
	})
	if out := admin("", "status"); !strings.Contains(out, "0 runs queued, 0 running") || !strings.Contains(out, "LAST SUCCESS") {
		t.Error(out)
	}

	// Each of them is on record once, in the log of the team or the installation,
	// and looking at things is not.
	mine := s.want(200, "POST", "/auth/sign-in", `{"email":"ada@example.org","password":"another horse"}`)["token"].(string)
	seen := fmt.Sprint(s.want(200, "GET", "/api/audit?action=operator.", "", "Authorization", bearer(mine))["data"])
	if strings.Count(seen, "operator.") != 5 || strings.Count(seen, "operator.team_suspension") != 2 || !strings.Contains(seen, "operator.credits_granted") || !strings.Contains(seen, "operator.plan_set") || !strings.Contains(seen, "pro") {
		t.Error(seen)
	}
	if out := admin("", "audit", "verify"); !strings.Contains(out, team+": ") || !strings.Contains(out, "installation: 11 entries, whole") {
		t.Error(out)
	}

	for _, bad := range [][]string{
		{"admin", "team", "set-plan", team, "platinum", "--data", dir},
		{"admin", "team", "set-plan", "team_nobody", "pro", "--data", dir},
		{"admin", "team", "set-quota", team, "--data", dir},
		{"admin", "team", "set-quota", "team_nobody", "--storage-gb", "1", "--data", dir},
		{"admin", "team", "set-quota", team, "--storage-gb", "-1", "--data", dir},
		{"admin", "team", "set-quota", team, "--account", "$(id)", "--data", dir},
		{"admin", "user", "disable", "nobody@example.org", "--data", dir},
		{"admin", "worker", "drain", "nobody", "--data", dir},
		{"admin", "team", "suspend", "team_nobody", "--data", dir},
		{"admin", "team", "grant", team, "0", "--data", dir},
		{"admin", "mail", "test", "Ada <ada@example.org>\r\nBcc: all@example.org", "--data", dir},
		{"admin", "status", "--errors", "501", "--data", dir},
		{"admin", "user", "list", "--data", t.TempDir()},
		{"worker", "--data", dir},
		{"serve", "--public-urls", "https://example.org/path"},
		{"serve", "--tls-cert", "only.pem"},
		{"serve", "--trusted-proxies", "everybody"},
		{"serve", "--task-disk", "much"},
		{"serve", "--capacity", "vcpu=many"},
		{"serve", "--min-free-disk", "some"},
		{"serve", "--capacity", "cores=4"},
		{"serve", "--no-such-flag"},
	} {
		out, err := millrace(t, bad...).CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), "millrace: ") {
			t.Errorf("%v: %v %s", bad, err, out)
		}
	}
}

func TestTheDoctorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--data", dir)
	token, _, _ := s.signUp("ada")
	url, _ := s.presign(token, "a.txt", 5)
	if got := put(t, url, strings.NewReader("hello"), 5); got != 200 {
		t.Fatal(got)
	}
	out, err := millrace(t, "admin", "doctor", "--data", dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok       database") || !strings.Contains(string(out), "ok       stored files") || !strings.Contains(string(out), "ok       executor local") {
		t.Errorf("%v %s", err, out)
	}
	open := millrace(t, "admin", "doctor", "--data", dir, "--sandbox", "none")
	if out, err := open.CombinedOutput(); err != nil || !strings.Contains(string(out), "warning  limits of tasks: this machine does not enforce: ") || !strings.Contains(string(out), "network; isolation") {
		t.Errorf("%v %s", err, out)
	}
	bare := millrace(t, "admin", "doctor", "--data", dir)
	bare.Env = append(bare.Env, "PATH="+t.TempDir()) // without bubblewrap and uv
	if out, err := bare.CombinedOutput(); err == nil || !strings.Contains(string(out), "WRONG    executor local") || !strings.Contains(string(out), "pip install uv") {
		t.Errorf("%v %s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(dir, "objects", "objects")); err != nil {
		t.Fatal(err)
	}
	out, err = millrace(t, "admin", "doctor", "--data", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "WRONG    stored files: 1 of the newest 1 files are missing") {
		t.Errorf("%v %s", err, out)
	}
	out, err = millrace(t, "admin", "doctor", "--data", dir, "--secret-key", "not the one it has").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "WRONG    database") {
		t.Errorf("%v %s", err, out)
	}
	out, err = millrace(t, "admin", "doctor", "--data", dir, "--smtp-url", "smtp://127.0.0.1:1?from=a@b.c").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "WRONG    mail") {
		t.Errorf("%v %s", err, out)
	}
}

// Every setting of the contract is a flag, a variable, a line of help and one
// of the documentation.
func TestSettingsAreFlagsVariablesAndHelp(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operating/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := millrace(t, "serve", "--help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`listen tls-cert tls-key admin-listen data public-urls collab-url database-url storage-url
		secret-key sign-up executor sandbox task-network task-disk task-log capacity min-free-disk image-registries identity oidc-providers clerk-secret-key
		ai-base-url ai-model ai-api-key chat-per-day chat-daily-quota crossref-url openalex-url unpaywall-url contact-email
		fetch-allow-private payments stripe-secret-key stripe-webhook-secret stripe-api-url smtp-url trusted-proxies
		runs-per-minute analyses-per-day plan-free-run-seconds plans-file drain`) {
		variable := "$MILLRACE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if !strings.Contains(string(out), "--"+name) || !strings.Contains(string(out), variable) {
			t.Errorf("--%s and %s are not both in the help", name, variable)
		}
	}
	for _, flag := range regexp.MustCompile(`(?m)^ +--([a-z-]+)=?(?:"([^"]*)"|([0-9]\S*))?`).FindAllStringSubmatch(string(out), -1) {
		row := "| `--" + flag[1] + "` |"
		if standard := flag[2] + flag[3]; standard != "" {
			row += " `" + standard + "` |"
		}
		if !strings.Contains(string(page), row) {
			t.Errorf("%s … is not in docs/operating/settings.md", row)
		}
	}
	c := millrace(t, "serve")
	c.Env = append(c.Env, "MILLRACE_LISTEN=127.0.0.1:0", "MILLRACE_RUNS_PER_MINUTE=0")
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "--runs-per-minute") {
		t.Errorf("%v %s", err, out)
	}
}

// Every command of the client is on its page.
func TestEveryCommandIsOnItsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{"", "runs"} {
		out, err := millrace(t, append(strings.Fields(parent), "--help")...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
		_, list, _ := strings.Cut(string(out), "\nClient:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		commands := regexp.MustCompile(`(?m)^  ([a-z][a-z -]*[a-z])`).FindAllStringSubmatch(list, -1)
		if len(commands) < 10 {
			t.Errorf("%q has %d commands: %s", parent, len(commands), out)
		}
		for _, command := range commands {
			// What a group does by itself need not be said.
			name := strings.TrimSuffix(command[1], " list")
			if !strings.Contains(string(page), name) {
				t.Errorf("%s is not in docs/cli.md", name)
			}
		}
	}
}
