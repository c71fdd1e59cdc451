package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/git/gittest"
)

// pages are those whose examples are all executed, in the order in which people read them.
var pages = []string{
	"../README.md", "tutorial.md", "recipes.md", "python.md", "r.md", "snakemake.md", "pipelines.md", "reported-runs.md", "mcp.md", "coming-from.md",
	"definition.md", "source.md", "operating/offline.md", "operating/lab.md",
}

// note is what a test has to know about an example beside its text.
type note struct {
	page     string
	heading  string // with a language in its place, it is about all examples in that language
	language string
	begins   string // how the text begins, where a heading has several examples

	needs  func(*reader) // prepares what the example needs
	prints []string      // what it prints, as regular expressions
	status int           // with which it exits

	by     string // the file and the name of the test that executes it in place of TestEveryExampleOfThePages
	reason string // why nothing executes it
}

var notes = []note{
	{page: "tutorial.md", heading: "1. Start a server", begins: "millrace serve\n", reason: "Each test starts a server of its own, at a free port."},
	{page: "tutorial.md", heading: "1. Start a server", begins: "millrace login", prints: []string{"ada@example.org"}},
	{page: "tutorial.md", heading: "2. Run something", prints: []string{`\nHello, Ada\n`}},
	{page: "tutorial.md", heading: "3. One step for each file", begins: "cat", prints: []string{`\ncount/0 +\S+ +completed`, `\ncount/2 +\S+ +completed`, "16 reads in all"}},
	{page: "tutorial.md", heading: "4. Change one step and reuse the other", begins: "sed", prints: []string{`count .*\(cached\)`}},
	{page: "tutorial.md", heading: "4. Change one step and reuse the other", begins: "longer=", prints: []string{"completed run_"}},
	{page: "tutorial.md", heading: "5. Repair a step that fails", begins: "sed -i 's/int(r\\[0", status: 1, prints: []string{"failed run_"}},
	{page: "tutorial.md", heading: "5. Repair a step that fails", begins: "millrace", prints: []string{"report +failed", "IndexError: list index out of range", "report.html"}},
	{page: "tutorial.md", heading: "5. Repair a step that fails", begins: "sed -i 's/int(r\\[9", prints: []string{"completed run_"}},
	{page: "tutorial.md", heading: "6. Compare several values", prints: []string{`RUN +# +minLength +STATUS`, `\nrun_\S+ +\d+ +5 `, `\nrun_\S+ +\d+ +10 `, `\nrun_\S+ +\d+ +11 `}},
	{page: "tutorial.md", heading: "7. Share the results", begins: "millrace runs share", prints: []string{"/results#mrr_"}},
	{page: "tutorial.md", heading: "7. Share the results", begins: "millrace invite link", prints: []string{"/join#mri_"}},
	{page: "tutorial.md", heading: "7. Share the results", begins: "millrace invite member", prints: []string{"grace@example.org"}},

	{page: "recipes.md", heading: "One step for each file", prints: []string{`(?m)^5$`}},
	{page: "recipes.md", heading: "One step for each value", prints: []string{"seed 4 is number 3"}},
	{page: "recipes.md", heading: "Several files for each item", prints: []string{"reads has 2 files"}},
	{page: "recipes.md", heading: "Split, map, reduce", prints: []string{`(?m)^3$`}},
	{page: "recipes.md", heading: "Branches", prints: []string{"quick\n"}},
	{page: "recipes.md", heading: "Go on without what failed", prints: []string{"good\nbetter"}},
	{page: "recipes.md", heading: "Try again after a pause", prints: []string{"attempt 3"}},
	{page: "recipes.md", heading: "Try again with more memory", prints: []string{"0.5 GB"}},
	{page: "recipes.md", heading: "A container image", reason: "The image is in a registry of somebody else. The test reads the definition."},
	{page: "recipes.md", heading: "GPUs", reason: "The machines of tests have no GPU. The test reads the definition."},
	{page: "recipes.md", heading: "Show progress", prints: []string{"done"}},
	{page: "recipes.md", heading: "Use a secret", needs: (*reader).haveSecret, prints: []string{`has 20 characters: \*\*\*`}},
	{page: "recipes.md", heading: "Reads in a bucket, and a report back into it", begins: "{", prints: []string{"2 files in the report"}},
	{page: "recipes.md", heading: "Reads in a bucket, and a report back into it", begins: "millrace", needs: (*reader).haveBucket, prints: []string{"completed run_"}},
	{page: "recipes.md", heading: "Scripts from a repository", needs: (*reader).haveScripts, prints: []string{"3 lines"}},
	{page: "recipes.md", heading: "pandas and matplotlib from pip", by: "cmd/millrace/environments_test.go TestPandasIsBuiltOnceForAllShards"},
	{page: "recipes.md", heading: "One after the other, without files", prints: []string{"checked"}},

	{page: "python.md", language: "python", by: "clients/python/tests/test_release.py test_the_programs_of_the_page_run"},
	{page: "r.md", heading: "R", needs: (*reader).haveR, prints: []string{`name +lines\n1 +reads +3\n`}},
	{page: "snakemake.md", heading: "Snakemake", begins: "export", by: "clients/snakemake/tests/test_snakemake.py test_the_lines_of_the_pages_report_the_workflow_of_the_pages"},

	{page: "pipelines.md", heading: "Launching pipelines", needs: (*reader).havePipeline, prints: []string{`completed run_`}},
	{page: "pipelines.md", heading: "What the operator does", reason: "It installs Snakemake from a package index. clients/snakemake/tests/test_launch.py gives the server such a folder."},
	{page: "reported-runs.md", heading: "Nextflow", by: "cmd/millrace/nextflow_test.go TestARealNextflowReportsWhereTheDocumentationSays"},
	{page: "reported-runs.md", heading: "Reporting from a program", prints: []string{`^5 completed 1 of 2 done\n+align succeeded\n`}},
	{page: "mcp.md", heading: "Connecting", prints: []string{`^HTTP/1.1 401 `, `(?i)www-authenticate: Bearer .*/\.well-known/oauth-protected-resource/mcp`}},

	{page: "coming-from.md", heading: "The same workflow", begins: "process", by: "cmd/millrace/nextflow_test.go TestARealNextflowExecutesThePipelineOfThePage"},
	{page: "coming-from.md", heading: "The same workflow", begins: "rule", by: "clients/snakemake/tests/test_snakemake.py test_the_lines_of_the_pages_report_the_workflow_of_the_pages"},
	{page: "coming-from.md", heading: "The same workflow", begins: "{", prints: []string{`total: 5\n`}},
	{page: "definition.md", heading: "Expressions", prints: []string{`n: [23]\n`}},
	{page: "operating/offline.md", heading: "5. Clients", begins: "pip download", reason: "It fetches packages of others from a package index."},
	{page: "operating/offline.md", language: "sh", by: "cmd/millrace/offline_test.go TestAMachineWithoutNetworkExecutesABundle"},
	{page: "operating/lab.md", heading: "How large", reason: "Each test starts a server of its own, at a free port."},
	{page: "operating/lab.md", language: "json", by: "cmd/millrace/nginx_test.go TestNginxPassesOverAServerThatRestarts"},
	{page: "operating/lab.md", language: "nginx", by: "cmd/millrace/nginx_test.go TestNginxPassesOverAServerThatRestarts"},
	{page: "operating/lab.md", heading: "Several servers behind nginx", begins: "systemctl", reason: "The tests have no systemd. The one of nginx restarts the servers."},
	{page: "source.md", heading: "Code from Git", needs: (*reader).haveScripts, prints: []string{`counts: counted\n`}},
}

// standIns are programs in the place of those that cannot run here.
var standIns = map[string]string{
	// It belongs to another company. The address that it is given asks who calls.
	"claude": `curl -s -D - -o /dev/null -X POST "${@: -1}"`,
	// It would build the whole product and then serve until it is ended.
	"make": `PATH=$OUTSIDE exec make -n -C "$REPOSITORY" "$@"`,
	// It would install from the internet. What it is told to install is what the server offers, where … is any text.
	"pip": `shift; offered=$(millrace clients)
for each in "$@"; do [[ $offered == *"'"${each//…/*}"'"* ]] || { echo "the server does not offer $each"; exit 1; }; done`,
}

// example is a fenced part of a page.
type example struct {
	page, heading, language, text string
	line                          int // of its fence
}

func (e example) String() string {
	return fmt.Sprintf("%s:%d", path.Join("docs", e.page), e.line)
}

// examplesOf are the examples of a page, in its order.
func examplesOf(t *testing.T, page string) (list []example) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	heading, inside, at := "", false, 0
	for line := range strings.Lines(string(text)) {
		at++
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !inside:
			list = append(list, example{page: page, heading: heading, language: language, line: at})
			inside = true
		case fence:
			inside = false
		case inside:
			list[len(list)-1].text += line
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "# "))
		}
	}
	if len(list) == 0 {
		t.Fatalf("docs/%s has no examples", page)
	}
	return list
}

// exampleOf is the text of the example of a page that begins so.
func exampleOf(t *testing.T, page, begins string) string {
	t.Helper()
	list := examplesOf(t, page)
	at := slices.IndexFunc(list, func(e example) bool { return strings.HasPrefix(e.text, begins) })
	if at < 0 {
		t.Fatalf("docs/%s has no example that begins with %q", page, begins)
	}
	return list[at].text
}

// examplesToExecute are those of all pages. One that two pages have word for word is
// executed once.
func examplesToExecute(t *testing.T) (list []example) {
	t.Helper()
	for _, page := range pages {
		for _, e := range examplesOf(t, page) {
			if !slices.ContainsFunc(list, func(other example) bool { return other.text == e.text }) {
				list = append(list, e)
			}
		}
	}
	return list
}

func (n note) isOf(e example) bool {
	return n.page == e.page && (n.heading == e.heading || n.language == e.language) && strings.HasPrefix(e.text, n.begins)
}

// noteOf is what there is to know of an example, which may be nothing.
func noteOf(e example) note {
	if at := slices.IndexFunc(notes, func(n note) bool { return n.isOf(e) }); at >= 0 {
		return notes[at]
	}
	return note{}
}

// runners execute the examples in a language.
var runners = map[string]func(*reader, example) (printed string){
	"sh": (*reader).typeLines, "json": (*reader).send, "r": (*reader).runR,
}

// Each example of the pages is executed here or by the test that its note names, or
// the note has a reason; and each note is about an example.
func TestEveryExampleOfThePagesHasATest(t *testing.T) {
	t.Parallel()
	examples := examplesToExecute(t)
	for _, e := range examples {
		if n := noteOf(e); runners[e.language] == nil && n.by == "" && n.reason == "" {
			t.Errorf("%s: nothing executes this example in %q: write a test for it, and name it in the notes of this file", e, e.language)
		}
	}
	for _, n := range notes {
		if !slices.ContainsFunc(examples, n.isOf) {
			t.Errorf("docs/%s has no example under %q in %q that begins with %q", n.page, n.heading, n.language, n.begins)
		}
		if n.by == "" {
			continue
		}
		file, name, _ := strings.Cut(n.by, " ")
		text, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil || !regexp.MustCompile(`(?m)^(func|def) `+name+`\(`).Match(text) || !strings.Contains(string(text), n.page) {
			t.Errorf("%s has no test %s that reads %s: %v", file, name, n.page, err)
		}
	}
}

// The examples of the pages do what the pages say, in their order. All pages share a
// server, at which each has a reader with a folder and a team.
func TestEveryExampleOfThePages(t *testing.T) {
	t.Parallel()
	engine := standIn(t, "nextflow", `grep -q '"threads": *8' "$PARAMS_FILE" && mkdir results`)
	s := start(t, "--data", t.TempDir(), "--runs-per-minute", "10000", "--fetch-allow-private", "--nextflow", engine)
	examples := examplesToExecute(t)
	for _, page := range pages {
		t.Run(path.Base(page), func(t *testing.T) {
			t.Parallel()
			mine := *s
			mine.t = t
			r := mine.reader(page)
			for _, e := range examples {
				if n := noteOf(e); e.page == page && n.by == "" {
					t.Run(fmt.Sprint("line ", e.line), func(t *testing.T) {
						r := *r
						mine := *r.server
						mine.t, r.server = t, &mine
						r.execute(e, n)
					})
				}
			}
		})
	}
}

// reader is somebody who follows a page.
type reader struct {
	*server
	folder      string
	environment []string
	token       string // for programs, which may do less than people
	cookie      string
	here        map[string]string // what an address or a name of the page is in the test
}

// reader makes somebody who follows a page. In the tutorial they sign up themselves.
func (s *server) reader(page string) *reader {
	s.t.Helper()
	_, cookie, _ := s.signUp(strings.ToLower(strings.TrimSuffix(path.Base(page), ".md")))
	made := s.want(201, "POST", "/auth/api-tokens", `{"name":"test"}`, "Cookie", cookie)
	r := &reader{server: s, folder: s.t.TempDir(), token: made["token"].(string), cookie: cookie, here: map[string]string{"https://millrace.example.org": s.base}}
	programs := s.t.TempDir()
	for name, lines := range standIns {
		r.write(filepath.Join(programs, name), "#!/bin/bash -eu\n"+lines+"\n", 0o755)
	}
	r.write(filepath.Join(programs, "millrace"), fmt.Sprintf("#!/bin/sh\nBE_MILLRACE=1 exec %q \"$@\"\n", os.Args[0]), 0o755)
	r.environment = []string{"HOME=" + r.folder, "MILLRACE_SERVER=" + s.base, "OUTSIDE=" + os.Getenv("PATH"), "PATH=" + programs + ":" + os.Getenv("PATH"), "REPOSITORY=" + absolute(s.t, "../..")}
	if page != "tutorial.md" {
		r.environment = append(r.environment, "MILLRACE_TOKEN="+r.token)
	}
	return r
}

func (r *reader) write(file, text string, mode os.FileMode) {
	r.t.Helper()
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		r.t.Fatal(err)
	}
}

// fill puts what is here in the place of what is on the page.
func (r *reader) fill(text string) string {
	for there, here := range r.here {
		text = strings.ReplaceAll(text, there, here)
	}
	return text
}

// execute executes an example and compares what it prints with its note.
func (r *reader) execute(e example, n note) {
	r.t.Helper()
	if n.needs != nil {
		n.needs(r)
	}
	if n.reason != "" && e.language != "json" {
		return
	}
	printed := runners[e.language](r, e)
	for _, want := range n.prints {
		if !regexp.MustCompile(want).MatchString(printed) {
			r.t.Errorf("%s misses %s:\n%s", e, want, printed)
		}
	}
}

// typeLines types the lines in a shell, which knows the variables of those before.
func (r *reader) typeLines(e example) string {
	r.t.Helper()
	const load = "! test -e ~/.variables || . ~/.variables\n"
	const save = "trap 'for name in $(compgen -v | grep ^[a-z]*$); do declare -p \"$name\"; done > ~/.variables' EXIT\n"
	return r.program(e, "bash", "-euo", "pipefail", "-c", load+save+r.fill(e.text))
}

// runR runs a program in R, which shows the table that it made.
func (r *reader) runR(e example) string {
	r.t.Helper()
	return r.program(e, "Rscript", "-e", r.fill(e.text)+"print(table)\n")
}

func (r *reader) program(e example, name string, args ...string) string {
	r.t.Helper()
	c := exec.CommandContext(r.t.Context(), name, args...)
	c.Dir, c.Env = r.folder, r.environment
	c.Stdin = strings.NewReader("correct horse\n") // the password, which is asked for
	out, err := c.CombinedOutput()
	if status := c.ProcessState.ExitCode(); status != noteOf(e).status {
		r.t.Errorf("%s: %v, status %d\n%s", e, err, status, out)
	}
	return string(out)
}

// send sends JSON to the server: the events of a reported run, or a definition, which
// the reader also has as file.json.
func (r *reader) send(e example) string {
	r.t.Helper()
	if strings.HasPrefix(e.text, `{"events"`) {
		return r.report(e)
	}
	text := r.fill(e.text)
	r.write(filepath.Join(r.folder, "file.json"), text, 0o644)
	g, problems := graph.Parse([]byte(text))
	if len(problems) == 0 {
		problems = g.Incomplete()
	}
	if len(problems) > 0 {
		r.t.Fatalf("%s: %v", e, problems)
	}
	if noteOf(e).reason != "" {
		return ""
	}
	w := r.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":%q,"definition":%s}`, e.heading, text), "Cookie", r.cookie)
	given := map[string][]string{}
	for _, in := range g.Inputs {
		if keys := r.upload(in.Name); keys != nil {
			given[in.Name] = keys
		}
	}
	body, err := json.Marshal(map[string]any{"workflowId": w["id"], "inputs": given})
	if err != nil {
		r.t.Fatal(err)
	}
	id := r.run(r.token, string(body))
	ended := r.ended(r.token, id)
	if ended["status"] != "completed" {
		r.t.Errorf("%s: %v: %v", e, ended["status"], ended["errorMessage"])
	}
	printed := fmt.Sprint(ended["logs"])
	for port, o := range r.outputsOf(r.token, id) {
		if o["directory"] == nil {
			printed += fmt.Sprintf("%s: %s", port, download(r.t, o["url"].(string)))
		}
	}
	return printed
}

// upload gives the server the files of an input, whose names begin with the input's.
func (r *reader) upload(input string) (keys []string) {
	r.t.Helper()
	for i, text := range map[string][]string{"reads": {"a\nb\n", "c\nd\ne\n"}, "table": {"x\ny\nz\n"}}[input] {
		url, key := r.presign(r.token, fmt.Sprintf("%s %d.txt", input, i), int64(len(text)))
		if got := put(r.t, url, strings.NewReader(text), int64(len(text))); got != 200 {
			r.t.Fatal(got)
		}
		keys = append(keys, key)
	}
	return keys
}

// report reports a run with the events of an example, and says what the server knows then.
func (r *reader) report(e example) string {
	r.t.Helper()
	id := r.want(201, "POST", "/api/reported-runs", `{"key":"one","engine":"make","project":"lab"}`, "Cookie", r.cookie)["runId"].(string)
	response := r.want(200, "POST", "/api/reported-runs/"+id+"/events", e.text, "Cookie", r.cookie)
	run := r.want(200, "GET", "/api/runs/"+id, "", "Cookie", r.cookie)
	printed := fmt.Sprintln(response["lastSeq"], run["status"], run["logs"])
	for _, n := range run["nodes"].([]any) {
		printed += fmt.Sprintln(n.(map[string]any)["name"], n.(map[string]any)["status"])
	}
	return printed
}

// haveSecret stores the secret of a recipe.
func (r *reader) haveSecret() {
	r.t.Helper()
	r.want(200, "PUT", "/api/secrets/SRA_TOKEN", `{"value":"twenty characters..."}`, "Cookie", r.cookie)
}

// haveScripts makes the repository whose files the steps of some pages use.
func (r *reader) haveScripts() {
	r.t.Helper()
	repository := gittest.New(r.t)
	repository.Write("scripts/count.sh", "echo $(wc -l < \"$1\") lines")
	repository.Write("scripts/count.py", "print('counted')")
	repository.Commit()
	repository.Git("tag", "v1.2")
	address := repository.Serve()
	r.here["https://git.example.org/lab/analysis.git"], r.here["https://github.com/you/analysis.git"] = address, address
}

// havePipeline makes the repository of a pipeline, whose address ends as on the page.
func (r *reader) havePipeline() {
	r.t.Helper()
	repository := gittest.New(r.t)
	repository.Write("main.nf", "workflow { }")
	repository.Write("nextflow_schema.json", `{"$defs": {"size": {"title": "Size", "properties": {"threads": {"type": "integer", "default": 2}}}}, "allOf": [{"$ref": "#/$defs/size"}]}`)
	repository.Commit()
	repository.Git("tag", "v1.2")
	if err := os.Symlink(repository.Dir, filepath.Join(filepath.Dir(repository.Dir), "rnaseq.git")); err != nil {
		r.t.Fatal(err)
	}
	r.here["https://github.com/you/rnaseq.git"] = strings.TrimSuffix(repository.Serve(), path.Base(repository.Dir)) + "rnaseq.git"
}

// haveBucket puts reads into a bucket and makes the connection of a recipe to it.
func (r *reader) haveBucket() {
	r.t.Helper()
	client, bucket := openBucket(r.t, bucketAddress(r.t))
	below := "pages-" + rand.Text() + "/"
	for _, name := range []string{"a.fq.gz", "b.fq.gz"} {
		if _, err := client.PutObject(r.t.Context(), bucket.Host, below+"run7/"+name, strings.NewReader(name+"\n"), int64(len(name)+1), minio.PutObjectOptions{}); err != nil {
			r.t.Fatal(err)
		}
	}
	q := bucket.Query()
	r.want(201, "POST", "/api/connections", fmt.Sprintf(`{"name":"Lab bucket","type":"s3","endpoint":%q,"region":%q,"bucket":%q,"accessKey":%q,"secretKey":%q}`,
		q.Get("endpoint"), q.Get("region"), bucket.Host, q.Get("access-key"), q.Get("secret-key")), "Cookie", r.cookie)
	r.here["s3://lab/"] = "s3://" + bucket.Host + "/" + below
}

// haveR makes the workflow and the file that the program in R uses, where there is R.
func (r *reader) haveR() {
	r.t.Helper()
	if err := exec.Command("Rscript", "-e", "library(httr2); library(jsonlite)").Run(); err != nil {
		r.t.Skip("R with httr2 and jsonlite is not installed")
	}
	r.write(filepath.Join(r.folder, "reads.csv"), "a\nb\nc\n", 0o644)
	r.here["wf_…"] = r.workflow(r.token, `{
		"parameters": {"minQuality": {"type": "integer"}}, "inputs": {"reads": {"type": "files"}},
		"nodes": [{
			"id": "count", "inputs": {"reads": {"from": "inputs.reads"}}, "outputs": {"table": {"path": "table.csv"}},
			"command": "test $PARAM_minQuality = 25; echo name,lines > table.csv; echo reads,$(wc -l < $INPUT_reads) >> table.csv"
		}]
	}`)
}

// The task on the page prints all that it is given, which is what the page
// lists.
func TestTheEnvironmentOfACommandIsTheOneOfThePage(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir())
	token, cookie, _ := s.signUp("ada")
	s.want(200, "PUT", "/api/secrets/KEY", `{"value":"a long secret"}`, "Cookie", cookie)
	url, key := s.presign(token, "my reads.fq", 4)
	if got := put(t, url, strings.NewReader("ACGT"), 4); got != 200 {
		t.Fatal(got)
	}
	definition := strings.Replace(examplesOf(t, "environment.md")[0].text, `"id": "show",`, `"id": "show", "secrets": ["KEY"], "env": {"MINE": "PARAMS_FILE EVENTS_FILE", "RUN_ID": "mine"},`, 1)
	id := s.run(token, fmt.Sprintf(`{"workflowId":%q,"inputs":{"reads":[%q]}}`, s.workflow(token, definition), key))
	if r := s.endedFor(cookie, id); r["status"] != "completed" {
		t.Fatalf("%v\n%s", r["errorMessage"], r["logs"])
	}
	// Of one item alone: those of two may be mixed.
	log, _ := s.want(200, "GET", "/api/runs/"+id+"/logs?nodeId=show&shard=1", "", "Cookie", cookie)["text"].(string)
	page, err := os.ReadFile("../../docs/environment.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []*regexp.Regexp
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+(?:<[a-z]+>)?(?:_LIST)?)` \\|").FindAllStringSubmatch(string(page), -1) {
		name := regexp.MustCompile(`<[a-z]+>`).ReplaceAllString(row[1], `[A-Za-z]\w*`)
		listed = append(listed, regexp.MustCompile("^"+name+"$"))
	}
	seen := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^([A-Za-z_]+)=(.*)$`).FindAllStringSubmatch(log, -1) {
		seen[line[1]] = line[2]
	}
	ownToTheShell := []string{"PWD", "SHLVL", "OLDPWD", "_", "MINE"}
	for name := range seen {
		if !slices.ContainsFunc(listed, func(r *regexp.Regexp) bool { return r.MatchString(name) }) && !slices.Contains(ownToTheShell, name) {
			t.Errorf("%s=%s is not on the page", name, seen[name])
		}
	}
	for _, name := range listed {
		if name.String() == "^CUDA_VISIBLE_DEVICES$" || name.String() == "^SOURCE_DIR$" || name.String() == `^PARAM_[A-Za-z]\w*$` {
			continue // there is no GPU and no code from Git; the parameters are looked at below
		}
		found := false
		for have := range seen {
			found = found || name.MatchString(have)
		}
		if !found {
			t.Errorf("%s is not there:\n%s", name, log)
		}
	}
	for name, want := range map[string]string{
		"PARAM_minQuality": "20", "PARAM_tags": `["a","b"]`, "SECRET_KEY": "***", "ATTEMPT": "1", "RUN_ID": id, "NODE_ID": "show",
		"ITEM": "y z", "ITEM_INDEX": "1", "VCPU": "0.5", "RAM_GB": "1", "HOME": "/tmp", "TMPDIR": "/tmp", "USER": "task",
	} {
		if seen[name] != want {
			t.Errorf("%s is %q, want %q", name, seen[name], want)
		}
	}
	if !strings.HasSuffix(seen["INPUT_reads"], "/my_reads.fq") || strings.Contains(seen["INPUT_reads"], " ") {
		t.Errorf("INPUT_reads is %q", seen["INPUT_reads"])
	}
}
