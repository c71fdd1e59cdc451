package deploy

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// project is deploy/compose, prepared as its page says, in a folder of the test.
func project(t *testing.T, host string) *types.Project {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../deploy/compose")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "make-secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(dir, "make-secrets"), host).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	options, err := cli.NewProjectOptions([]string{filepath.Join(dir, "compose.yaml")}, cli.WithWorkingDirectory(dir), cli.WithEnvFiles(), cli.WithDotEnv, cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheComposeFileIsWhole(t *testing.T) {
	p := project(t, "millrace.example.org")
	connections := 0
	for name, s := range p.Services {
		once := name == "migrate"
		if (s.HealthCheck == nil) != once || s.Restart == "" || !strings.Contains(strings.Join(s.SecurityOpt, " "), "no-new-privileges:true") {
			t.Errorf("%s: health check %v, restart %q, %v", name, s.HealthCheck, s.Restart, s.SecurityOpt)
		}
		if !strings.HasPrefix(s.Image, "millrace") && !regexp.MustCompile(`:v?\d`).MatchString(s.Image) {
			t.Errorf("%s has no version of %s", name, s.Image)
		}
		if len(s.Ports) > 0 && name != "proxy" {
			t.Errorf("%s is published: %v", name, s.Ports)
		}
		if strings.HasPrefix(name, "server-") || strings.HasPrefix(name, "worker-") || once {
			connections += 15 // the default of --database-connections
		}
		for variable, value := range s.Environment {
			if value != nil && regexp.MustCompile(`[0-9a-f]{64}`).MatchString(*value) {
				t.Errorf("%s has a secret in %s", name, variable)
			}
		}
	}
	found := regexp.MustCompile(`max_connections=(\d+)`).FindStringSubmatch(strings.Join(p.Services["postgres"].Command, " "))
	if found == nil {
		t.Fatal("PostgreSQL is not told how many connections there are")
	}
	if most, _ := strconv.Atoi(found[1]); most < connections+20 {
		t.Errorf("%d connections for processes that take %d", most, connections)
	}
	for name, s := range p.Secrets {
		about, err := os.Stat(s.File)
		if err != nil || about.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v %v", name, about, err)
		}
	}
	if about, err := os.Stat(filepath.Join(p.WorkingDir, "secrets")); err != nil || about.Mode().Perm() != 0o700 {
		t.Error("others on the machine can read the secrets:", about, err)
	}
	if out, err := exec.Command(filepath.Join(p.WorkingDir, "make-secrets"), "other").CombinedOutput(); err == nil {
		t.Errorf("secrets were replaced: %s", out)
	}
}

// What a worker's image installs is what the package depends on.
func TestTheWorkersImageHasWhatTasksNeed(t *testing.T) {
	recipe, err := fs.ReadFile(os.DirFS("../../deploy"), "compose/worker.Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadFile("../../deploy/packages/nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"depends", "recommends"} {
		list := regexp.MustCompile(`(?m)^` + field + `: \[(.*)\]$`).FindSubmatch(files)
		if list == nil {
			t.Fatalf("the package says nothing of what it %s", field)
		}
		for _, name := range strings.Split(string(list[1]), ", ") {
			if !strings.Contains(string(recipe), " "+name+" ") {
				t.Errorf("the worker's image has no %s", name)
			}
		}
	}
}

// TestTheComposeFileServes starts what the file names, process by process, at
// addresses of the loopback network, and has a run go through over the proxy.
func TestTheComposeFileServes(t *testing.T) {
	c := composed(t)
	c.start("proxy")
	c.start("worker-1")
	c.start("worker-2")

	c.program("server-1", "correct horse battery\n", "admin", "user", "create", "ada@example.org", "--name", "Ada")
	c.signIn("ada@example.org", "correct horse battery")
	first := c.run("first")
	c.ends(first, "first")

	// A server that is gone, and a worker, are not missed.
	c.kill("server-1")
	c.kill("worker-1")
	c.ends(first, "first")
	c.ends(c.run("second"), "second")
}

// composed prepares the services.
func composed(t *testing.T) *composition {
	t.Helper()
	for _, needed := range []string{"MILLRACE_TEST_PROGRAM", "MILLRACE_TEST_CADDY", "MILLRACE_TEST_VERSITYGW", "MILLRACE_TEST_POSTGRES"} {
		if os.Getenv(needed) == "" {
			t.Skip(needed + " is not set: make test-deploy does")
		}
	}
	if os.Getuid() != 0 {
		t.Skip("only root listens on port 443")
	}
	c := &composition{t: t, project: project(t, "localhost"), ip: map[string]string{}, dir: t.TempDir(), started: map[string]*exec.Cmd{}}
	c.prepare()
	c.makeDatabase()
	return c
}

// makeDatabase makes the role and the database that the file names, and removes
// them in the end. What somebody has already is not touched.
func (c *composition) makeDatabase() {
	c.t.Helper()
	database, role := c.variable("postgres", "POSTGRES_DB"), c.variable("postgres", "POSTGRES_USER")
	psql := func(command string) string {
		c.t.Helper()
		out, err := exec.Command("psql", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1", os.Getenv("MILLRACE_TEST_POSTGRES"), "--command", command).CombinedOutput()
		if err != nil {
			c.t.Fatalf("%v %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if found := psql(fmt.Sprintf("SELECT 'database ' || datname FROM pg_database WHERE datname = '%s' UNION ALL SELECT 'role ' || rolname FROM pg_roles WHERE rolname = '%s'", database, role)); found != "" {
		c.t.Fatalf("The server of MILLRACE_TEST_POSTGRES has what this test would make (%s): name another server, or remove it if nobody needs it.", strings.ReplaceAll(found, "\n", ", "))
	}
	psql(fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", role, c.secret("postgres-password")))
	c.t.Cleanup(func() { psql("DROP ROLE " + role) })
	psql(fmt.Sprintf("CREATE DATABASE %s OWNER %s", database, role))
	c.t.Cleanup(func() { psql(fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", database)) })
}
