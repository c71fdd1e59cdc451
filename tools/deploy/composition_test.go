package deploy

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// composition is what stands in for Docker: each service has an address of its own
// in 127.0.0.0/8, where it listens on the ports of the file, and a folder in place of
// each volume.
type composition struct {
	t       *testing.T
	project *types.Project
	ip      map[string]string
	dir     string
	started map[string]*exec.Cmd
	client
}

// imageVariables are those that the images set by themselves: tools/image, and
// worker.Dockerfile.
var imageVariables = map[string]string{"MILLRACE_DATA": "/var/lib/millrace", "MILLRACE_LISTEN": "0.0.0.0:8080"}

// prepare gives out addresses, and puts the programs where the commands find them.
func (c *composition) prepare() {
	c.t.Helper()
	var net [2]byte
	_, _ = rand.Read(net[:]) // others test here, too
	for i, name := range c.project.ServiceNames() {
		c.ip[name] = fmt.Sprintf("127.%d.%d.%d", net[0]|1, net[1], i+2)
	}
	bin := filepath.Join(c.dir, "bin")
	c.must(os.Mkdir(bin, 0o755))
	for name, variable := range map[string]string{"millrace": "MILLRACE_TEST_PROGRAM", "caddy": "MILLRACE_TEST_CADDY", "versitygw": "MILLRACE_TEST_VERSITYGW"} {
		c.must(os.Symlink(os.Getenv(variable), filepath.Join(bin, name)))
	}
}

func (c *composition) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *composition) variable(service, name string) string {
	return *c.project.Services[service].Environment[name]
}

func (c *composition) secret(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(c.project.Secrets[name].File)
	c.must(err)
	return string(text)
}

var address = regexp.MustCompile(`\b([a-z][a-z0-9-]*|0\.0\.0\.0|127\.0\.0\.1):(\d+)\b`)

// mapped is a text of a service as it holds here: addresses, and folders.
func (c *composition) mapped(service, text string) string {
	text = address.ReplaceAllStringFunc(text, func(found string) string {
		host, port, _ := strings.Cut(found, ":")
		switch {
		case host == "0.0.0.0" || host == "127.0.0.1":
			return c.ip[service] + ":" + port
		case host == "postgres" && port == "5432":
			u, err := url.Parse(os.Getenv("MILLRACE_TEST_POSTGRES"))
			c.must(err)
			return u.Host
		case c.ip[host] != "":
			return c.ip[host] + ":" + port
		}
		return found
	})
	text = strings.ReplaceAll(text, "172.31.250.0/24", "127.0.0.0/8")
	for _, v := range c.project.Services[service].Volumes {
		text = regexp.MustCompile(regexp.QuoteMeta(v.Target)+`(/|\s|$)`).ReplaceAllString(text, c.folder(service, v)+"$1")
	}
	text = strings.ReplaceAll(text, "/var/lib/millrace", filepath.Join(c.dir, service, "tmpfs"))
	return strings.ReplaceAll(text, "/run/secrets/", filepath.Join(c.dir, service, "secrets")+"/")
}

// folder stands for a volume; a file that is mounted is mapped.
func (c *composition) folder(service string, v types.ServiceVolumeConfig) string {
	at := filepath.Join(c.dir, service, "volumes", filepath.Base(v.Target))
	c.must(os.MkdirAll(filepath.Dir(at), 0o755))
	if v.Type != types.VolumeTypeBind {
		c.must(os.MkdirAll(at, 0o700))
		return at
	}
	text, err := os.ReadFile(v.Source)
	c.must(err)
	// Only what has to differ on a machine with others on it.
	own := strings.Replace(string(text), "admin off\n", "admin off\n\tskip_install_trust\n\tdefault_bind "+c.ip[service]+"\n", 1)
	c.must(os.WriteFile(at, []byte(address.ReplaceAllStringFunc(own, func(found string) string {
		host, port, _ := strings.Cut(found, ":")
		if ip := c.ip[host]; ip != "" {
			return ip + ":" + port
		}
		return found
	})), 0o600))
	return at
}

// command is one of a service, with its variables, folders and secrets.
func (c *composition) command(service string, args []string) *exec.Cmd {
	c.t.Helper()
	s := c.project.Services[service]
	secrets := filepath.Join(c.dir, service, "secrets")
	c.must(os.MkdirAll(secrets, 0o755))
	for _, used := range s.Secrets {
		c.must(os.WriteFile(filepath.Join(secrets, used.Source), []byte(c.mapped(service, c.secret(used.Source))), 0o600))
	}
	for i, arg := range args {
		args[i] = c.mapped(service, arg)
	}
	bin := filepath.Join(c.dir, "bin")
	if program := filepath.Join(bin, filepath.Base(args[0])); exists(program) {
		args[0] = program
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = filepath.Join(c.dir, service)
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH") + pgBin(), "HOME=" + cmd.Dir, "XDG_DATA_HOME=" + c.mapped(service, "/data"), "XDG_CONFIG_HOME=" + c.mapped(service, "/config")}
	variables := s.Environment.Resolve(os.LookupEnv)
	if strings.HasPrefix(s.Image, "millrace") {
		for name, value := range imageVariables {
			cmd.Env = append(cmd.Env, name+"="+c.mapped(service, value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if value := variables[name]; value != nil {
			cmd.Env = append(cmd.Env, name+"="+c.mapped(service, *value))
		}
	}
	return cmd
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// pgBin is where Debian has the programs of PostgreSQL.
func pgBin() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	return ":" + strings.Join(found, ":")
}

// start starts a service after those it depends on, as they have to be by then.
func (c *composition) start(name string) {
	c.t.Helper()
	if c.started[name] != nil {
		return
	}
	s := c.project.Services[name]
	for on, how := range s.DependsOn {
		c.start(on)
		if how.Condition == types.ServiceConditionHealthy {
			c.healthy(on)
		}
	}
	if name == "postgres" { // scripts/with-postgres has started it
		c.started[name] = exec.Command("true")
		return
	}
	entry := []string(s.Entrypoint)
	if strings.HasPrefix(s.Image, "millrace") {
		entry = []string{"/millrace"}
	}
	cmd := c.command(name, slices.Concat(entry, s.Command))
	log := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	c.started[name] = cmd
	if s.HealthCheck == nil { // it comes to an end
		if err := cmd.Run(); err != nil {
			c.t.Fatalf("%s: %v %s", name, err, log)
		}
		return
	}
	c.must(cmd.Start())
	c.t.Cleanup(func() {
		c.kill(name)
		if c.t.Failed() {
			c.t.Logf("%s: %s", name, log)
		}
	})
	c.healthy(name)
}

func (c *composition) kill(name string) {
	if cmd := c.started[name]; cmd.Process != nil && cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// healthy waits until a service's own check says so.
func (c *composition) healthy(name string) {
	c.t.Helper()
	test := c.project.Services[name].HealthCheck.Test
	if test[0] != "CMD" {
		c.t.Fatalf("%s: %v", name, test)
	}
	var said []byte
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		args := slices.Clone([]string(test[1:]))
		if name == "postgres" {
			u, err := url.Parse(os.Getenv("MILLRACE_TEST_POSTGRES"))
			c.must(err)
			args = append(args, "--port="+u.Port())
		}
		out, err := c.command(name, args).CombinedOutput()
		if err == nil {
			return
		}
		said = out
	}
	c.t.Fatalf("%s is not well: %s", name, said)
}

// program runs a command of ours with a service's settings, as `docker compose run`.
func (c *composition) program(service, in string, args ...string) {
	c.t.Helper()
	cmd := c.command(service, append([]string{"/millrace"}, args...))
	cmd.Stdin = strings.NewReader(in)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %v %s", args, err, out)
	}
}
