package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
	"github.com/millrace/millrace/internal/git/gittest"
)

// theOtherSide is what the test in a network of its own is told, as JSON.
const theOtherSide = "MILLRACE_TEST_OFFLINE"

// carried is what comes to a machine without network.
type carried struct {
	Bundle             string
	Workflow, Pipeline string // their ids
	Repository         string // that the pipeline follows
	Input              string // by address
	Image              string // that was not carried
}

// needNoNetwork skips a test where it cannot have a network of its own.
func needNoNetwork(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("unshare", "--net", "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Skipf("no network of one's own can be had here (unshare --net): %v %s", err, out)
	}
}

// What a bundle has is executed on a machine without network, which is set up as
// operating/offline.md says: an image by its tag, an environment, code at a branch, and a
// pipeline.
func TestAMachineWithoutNetworkExecutesABundle(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	needNoNetwork(t)
	x := indextest.New(t)
	x.AddWheel("greeter", "1.1", map[string]string{"greeter.py": "import words\nprint('hello ' + words.WORD)\n"}, "words>=2")
	x.AddWheel("words", "2.5", map[string]string{"words.py": "WORD = 'world'\n"})
	host, _ := imageHub(t)
	image := pushImage(t, host+"/lab/tool:1", "release 1", "cat", "bash")
	code, pipeline := gittest.New(t), gittest.New(t)
	code.Write("say.sh", "echo code of main")
	code.Commit()
	pipeline.Write("main.nf", "workflow { }")
	pipeline.Commit()
	const page = "operating/offline.md"
	data, to := t.TempDir(), filepath.Join(t.TempDir(), "bundle")
	s := start(t, "--data", data, "--fetch-allow-private", "--pip-index-url", x.URL, "--nextflow", standIn(t, "nextflow", "echo launched"))
	r := s.reader(page)
	definition := fmt.Sprintf(`{"source":{"git":%q,"ref":"main"},"nodes":[
		{"id":"image","image":%q,"command":"cat /etc/release"},
		{"id":"environment","environment":{"pip":["greeter"]},"command":"python -c 'import greeter'"},
		{"id":"code","command":"sh $SOURCE_DIR/say.sh"}]}`, code.Serve(), image)
	reads := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "four reads") }))
	t.Cleanup(reads.Close)
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"Offline","definition":%s}`, definition), "Cookie", r.cookie)["id"].(string)
	address := pipeline.Serve()
	p := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q,"ref":"main"}}`, address), "Authorization", bearer(r.token))["id"].(string)
	r.environment = append(r.environment, "MILLRACE_FETCH_ALLOW_PRIVATE=true", "MILLRACE_PIP_INDEX_URL="+x.URL)
	r.here["/var/lib/millrace"], r.here["/media/usb/bundle"], r.here["wf_…"] = data, to, w+","+p
	printed := r.typeLines(example{page: page, text: strings.TrimSpace(exampleOf(t, page, "millrace admin bundle --data")) + " --inputs " + reads.URL + "/reads.fq"})
	for _, want := range []string{"lab/tool:1", "2 packages, for Python 3.", "launches a pipeline", "SHA-256"} {
		if !strings.Contains(printed, want) {
			t.Errorf("it prints nothing of %q:\n%s", want, printed)
		}
	}
	text, err := json.Marshal(carried{Bundle: to, Workflow: w, Pipeline: p, Repository: address, Input: reads.URL + "/reads.fq", Image: "registry.invalid/lab/tool:2"})
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command("unshare", "--net", "sh", "-c", `ip link set lo up && exec "$@"`, "sh", os.Args[0], "-test.run", "^TestOnAMachineWithoutNetwork$", "-test.v")
	other.Env = append(os.Environ(), theOtherSide+"="+string(text))
	out, err := other.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestOnAMachineWithoutNetwork") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestOnAMachineWithoutNetwork is the part of the test above that has no network. It
// follows operating/offline.md.
func TestOnAMachineWithoutNetwork(t *testing.T) {
	var c carried
	if os.Getenv(theOtherSide) == "" {
		t.Skip("TestAMachineWithoutNetworkExecutesABundle calls it")
	}
	if err := json.Unmarshal([]byte(os.Getenv(theOtherSide)), &c); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	s := start(t, "--data", data, "--runs-per-minute", "10000", "--nextflow", standIn(t, "nextflow", "echo launched"))
	const page = "operating/offline.md"
	r := s.reader(page)
	r.here["/media/usb/bundle"], r.here["/var/lib/millrace"], r.here["wf_…"] = c.Bundle, data, c.Workflow
	prints := map[string][]string{
		"millrace admin bundle --load": {"SHA-256", "image", "lab/tool:1", "greeter-1.1-py3-none-any.whl", "workflows apply"},
		"millrace workflows apply":     {"completed run_"},
		"millrace clients":             {"the Python client", "millrace_python-"},
	}
	for _, e := range examplesOf(t, page) {
		for begins, list := range prints {
			if !strings.HasPrefix(e.text, begins) {
				continue
			}
			printed := r.typeLines(e)
			for _, want := range list {
				if !strings.Contains(printed, want) {
					t.Errorf("%s prints nothing of %q:\n%s", e, want, printed)
				}
			}
			delete(prints, begins)
			if id := regexp.MustCompile(`completed (run_\w+)`).FindStringSubmatch(printed); id != nil {
				log := fmt.Sprint(s.ended(r.token, id[1])["logs"])
				for _, want := range []string{"release 1", "hello world", "code of main"} {
					if !strings.Contains(log, want) {
						t.Errorf("the log has nothing of %q:\n%s", want, log)
					}
				}
			}
		}
	}
	if len(prints) > 0 {
		t.Errorf("the page has no %v", prints)
	}
	follows := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q,"ref":"main"}}`, c.Repository), "Authorization", bearer(r.token))
	if run := s.ended(r.token, s.run(r.token, fmt.Sprintf(`{"workflowId":%q}`, follows["id"]))); run["status"] != "completed" || !strings.Contains(fmt.Sprint(run["logs"]), "launched") {
		t.Errorf("the pipeline ended as %v: %v", run["status"], run["errorMessage"])
	}
	reads := s.workflow(r.token, `{"inputs":{"reads":{"type":"file"}},"nodes":[{"id":"a","inputs":{"reads":{"from":"inputs.reads"}},"command":"cat $INPUT_reads"}]}`)
	if run := s.ended(r.token, s.run(r.token, fmt.Sprintf(`{"workflowId":%q,"inputs":{"reads":{"url":%q}}}`, reads, c.Input))); run["status"] != "completed" || !strings.Contains(fmt.Sprint(run["logs"]), "four reads") {
		t.Errorf("with an input by address it ended as %v: %v", run["status"], run["errorMessage"])
	}
	// What was not carried is named.
	for definition, want := range map[string]string{
		fmt.Sprintf(`{"nodes":[{"id":"a","image":%q,"command":"true"}]}`, c.Image): c.Image + " is not here",
		`{"nodes":[{"id":"a","environment":{"pip":["absent"]},"command":"true"}]}`: "absent",
	} {
		run := s.ended(r.token, s.run(r.token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(r.token, definition))))
		if run["status"] != "failed" || !strings.Contains(fmt.Sprint(run["errorMessage"]), want) {
			t.Errorf("%s: it ended as %v: %v", definition, run["status"], run["errorMessage"])
		}
	}
}

// What cannot be fetched leaves no bundle behind, and says which workflow it is of.
func TestABundleIsMadeWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data)
	token, _, _ := s.signUp("ada")
	w := s.workflow(token, `{"nodes":[{"id":"a","image":"registry.invalid/lab/tool:1","command":"true"}]}`)
	plain := s.workflow(token, `{"nodes":[{"id":"a","command":"true"}]}`)
	to := filepath.Join(t.TempDir(), "bundle")
	for args, want := range map[string]string{
		"--workflow " + w + " --out " + to:   w,
		"--workflow wf_absent --out " + to:   "wf_absent: ",
		"--workflow " + w + " --out " + data: "file exists",
		"--workflow " + w:                    "--workflow and --out",
		"--load " + to + " --out " + to:      "--workflow and --out",
		"--load " + to:                       "cannot open the bundle",
		"--load " + data:                     "it is no bundle",

		"--workflow " + plain + " --inputs s3://lab/*.fq --out " + to:      "is not one file",
		"--workflow " + plain + " --inputs file:///etc/passwd --out " + to: "is not an address",
	} {
		out, err := millrace(t, append([]string{"admin", "bundle", "--data", data}, strings.Fields(args)...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v %s", args, err, out)
		}
	}
	for _, path := range []string{to, filepath.Join(data, "bundling", "work")} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left behind: %v", path, err)
		}
	}
}
