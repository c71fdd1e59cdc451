package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// releasable is a repository of its own with the scripts and files of releases, and
// a key that may sign them.
type releasable struct {
	t        *testing.T
	dir, key string
}

func newReleasable(t *testing.T, files ...string) releasable {
	t.Helper()
	r := releasable{t, filepath.Join(t.TempDir(), "repository"), filepath.Join(t.TempDir(), "key")}
	const take = `mkdir -p "$0" && cd .. && git ls-files -z --cached --others --exclude-standard -- "$@" | xargs -0 cp --parents -t "$0"`
	r.must("", "sh", append([]string{"-c", take, r.dir}, files...)...)
	r.must("", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", r.key)
	r.write("deploy/packages/allowed_signers", "millrace "+read(t, r.key+".pub"))
	r.write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n### Added\n\n- Wings.\n\n## 0.1.0 - 2026-01-02\n\n- Legs.\n")
	r.must(r.dir, "git", "init", "--quiet", "--initial-branch=main")
	r.commit()
	return r
}

func (r releasable) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r releasable) commit() {
	r.t.Helper()
	r.must(r.dir, "git", "add", "--all")
	r.must(r.dir, "git", "commit", "--quiet", "--message", "files")
}

func (r releasable) must(dir, name string, args ...string) string {
	r.t.Helper()
	out, err := command(dir, name, args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s %v: %v %s", name, args, err, out)
	}
	return string(out)
}

func (r releasable) refused(why, name string, args ...string) {
	r.t.Helper()
	c := command(r.dir, name, args...)
	c.Env = append(c.Env, "SIGNING_KEY="+r.key)
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), why) {
		r.t.Errorf("%s %v is not refused with %q: %v %s", name, args, why, err, out)
	}
}

func command(dir, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
		"GIT_AUTHOR_DATE=2026-01-03T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-03T00:00:00Z")
	return c
}

func TestAVersionIsCutFromWhatIsUnreleased(t *testing.T) {
	t.Parallel()
	r := newReleasable(t, "scripts", "deploy/packages")
	for version, why := range map[string]string{"v1.2.3": "no version", "1.2": "no version", "01.2.3": "no version", "0.1.0": "already"} {
		r.refused(why, "scripts/cut-release", version)
	}
	r.write("new", "")
	r.refused("not committed", "scripts/cut-release", "1.2.3")
	r.commit()
	r.must(r.dir, "scripts/cut-release", "1.2.3")
	if tag := strings.TrimSpace(r.must(r.dir, "git", "describe", "--exact-match", "--dirty")); tag != "v1.2.3" {
		t.Errorf("the tag is %s", tag)
	}
	section := r.must(r.dir, "scripts/changes", "1.2.3")
	if !strings.HasPrefix(section, "## 1.2.3 - 2") || !strings.HasSuffix(section, "\n- Wings.\n") {
		t.Errorf("the section is %q", section)
	}
	r.refused("already", "scripts/cut-release", "1.2.3")
	r.refused("no section Unreleased", "scripts/cut-release", "1.2.4")
}

func TestAReleaseIsRefused(t *testing.T) {
	t.Parallel()
	r := newReleasable(t, "scripts", "deploy/packages")
	release := func(why string) {
		t.Helper()
		r.refused(why, "scripts/make-release", filepath.Join(r.t.TempDir(), "release"))
	}
	release("has no tag")
	r.must(r.dir, "git", "tag", "v1.2")
	release("no version")
	r.must(r.dir, "git", "tag", "--delete", "v1.2")
	r.must(r.dir, "git", "tag", "v1.2.3")
	release("no section 1.2.3")
	r.must(r.dir, "git", "tag", "--delete", "v1.2.3")
	r.must(r.dir, "scripts/cut-release", "1.2.3")
	r.write("new", "")
	release("not committed")
	if err := os.Remove(filepath.Join(r.dir, "new")); err != nil {
		t.Fatal(err)
	}
	r.must("", "sh", "-c", `rm "$0" "$0.pub" && ssh-keygen -q -t ed25519 -N "" -f "$0"`, r.key)
	release("does not have the key")
	r.key = ""
	release("SIGNING_KEY must name")
}

// TestAReleaseIsWhatItSays makes a release twice, verifies it as people do, and finds
// what is changed afterwards.
func TestAReleaseIsWhatItSays(t *testing.T) {
	if os.Getenv("MILLRACE_TEST_PACKAGES") == "" {
		t.Skip("building a release takes minutes: make test-deploy does")
	}
	r := newReleasable(t, ".")
	r.must("", "cp", "-a", "../web/dist", filepath.Join(r.dir, "web"))
	r.must("", "sh", "-c", `mkdir "$0" && mkdir -p ../.cache/bin && ln -s "$(realpath ../.cache/bin)" "$0"`, filepath.Join(r.dir, ".cache"))
	r.must(r.dir, "scripts/cut-release", "1.2.3")
	var sums []string
	folder := filepath.Join(r.dir, "bin/release")
	for range 2 {
		r.must(r.dir, "env", "ARCHITECTURES=amd64", "SIGNING_KEY="+r.key, "scripts/make-release", "bin/release")
		sums = append(sums, read(t, filepath.Join(folder, "SHA256SUMS"))+read(t, filepath.Join(folder, "SHA256SUMS.sig")))
	}
	if sums[0] != sums[1] {
		t.Errorf("one commit gives\n%s and\n%s", sums[0], sums[1])
	}
	for _, name := range []string{"millrace-linux-amd64", "millrace-client-darwin-amd64", "millrace-linux-amd64.spdx.json", "millrace_1.2.3_amd64.deb", "millrace-1.2.3-1.x86_64.rpm", "CHANGES.md"} {
		if !strings.Contains(sums[0], "  "+name+"\n") {
			t.Errorf("no %s in\n%s", name, sums[0])
		}
	}
	if said := r.must(folder, "./millrace-linux-amd64", "version"); said != "millrace v1.2.3\n" {
		t.Errorf("the program is %q", said)
	}
	verify := page(t, "../docs/operating/installing.md", "ssh-keygen -Y verify")
	verify = strings.ReplaceAll(verify, "/usr/share/millrace/allowed_signers", filepath.Join(r.dir, "deploy/packages/allowed_signers"))
	r.must(folder, "bash", "-euc", verify)
	r.must(folder, "sh", "-c", "echo more >>CHANGES.md")
	r.refusedIn(folder, verify)
	r.must(folder, "sh", "-c", "sha256sum $(awk '{print $2}' SHA256SUMS) >new && mv new SHA256SUMS")
	r.refusedIn(folder, verify)
}

func (r releasable) refusedIn(dir, script string) {
	r.t.Helper()
	if out, err := command(dir, "bash", "-euc", script).CombinedOutput(); err == nil {
		r.t.Errorf("%s takes what was changed: %s", script, out)
	}
}

// page is the block of shell commands of a page that has a text in it.
func page(t *testing.T, file, text string) string {
	t.Helper()
	for i, block := range strings.Split(read(t, file), "```") {
		if i%2 == 1 && strings.Contains(block, text) {
			_, commands, _ := strings.Cut(block, "\n")
			return commands
		}
	}
	t.Fatalf("no command on %s has %q", file, text)
	return ""
}
