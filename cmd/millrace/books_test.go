package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/git/gittest"
)

// blocks are the fenced parts of a page in one language, with the heading above
// each.
func blocks(t *testing.T, page, language string) (headings, texts []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	heading, inside := "", false
	for line := range strings.Lines(string(text)) {
		switch {
		case inside && line == "```\n":
			inside = false
		case inside:
			texts[len(texts)-1] += line
		case line == "```"+language+"\n":
			headings, texts, inside = append(headings, heading), append(texts, ""), true
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "# "))
		}
	}
	if len(texts) == 0 {
		t.Fatalf("there is no %s in %s", language, page)
	}
	return headings, texts
}

// What the tutorial has people type, in its order, at the real program. Only
// starting the server is done by the test, which cannot know a free port.
func TestTheTutorial(t *testing.T) {
	t.Parallel()
	_, commands := blocks(t, "tutorial.md", "sh")
	if commands[0] != "millrace serve\n" {
		t.Fatalf("it begins with %q", commands[0])
	}
	s := start(t, "--data", t.TempDir(), "--runs-per-minute", "10000")
	home := t.TempDir()
	wrapper := fmt.Sprintf("#!/bin/sh\nBE_MILLRACE=1 exec %q \"$@\"\n", os.Args[0])
	if err := os.WriteFile(filepath.Join(home, "millrace"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	script := exec.Command("bash", "-euo", "pipefail", "-c", strings.Join(commands[1:], "echo ----\n"))
	script.Dir = home
	script.Env = []string{"PATH=" + home + ":" + os.Getenv("PATH"), "HOME=" + home, "MILLRACE_SERVER=" + s.base}
	script.Stdin = strings.NewReader("correct horse\n") // the password, which is asked for
	out, err := script.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	parts := strings.Split(string(out), "----\n")
	for i, wants := range [][]string{
		{"ada@example.org"},
		{"\nHello, Ada\n"},
		{""},
		{`\ncount/0 +\S+ +completed`, `\ncount/2 +\S+ +completed`, "16 reads in all"},
		{`count .*\(cached\)`},
		{"completed run_"},
		{"swp_", `How long\? +minLength +3`},
		{"/results#mrr_"},
		{"/join#mri_"},
		{"grace@example.org"},
	} {
		for _, want := range wants {
			if !regexp.MustCompile(want).MatchString(parts[i]) {
				t.Errorf("part %d misses %s:\n%s", i+1, want, parts[i])
			}
		}
	}
	if len(parts) != 10 {
		t.Errorf("there are %d parts", len(parts))
	}
}

// notHere are recipes that need what a machine of tests lacks, or what their own
// tests bring.
var notHere = []string{"A container image", "GPUs", "pandas and matplotlib from pip"}

// recipeLogs are what recipes print.
var recipeLogs = map[string]string{
	"One step for each file": "5\n", "One step for each value": "seed 4 is number 3", "Several files for each item": "reads has 2 files",
	"Split, map, reduce": "3\n", "Branches": "quick\n",
	"Go on without what failed": "good\nbetter", "Try again after a pause": "attempt 3", "Try again with more memory": "0.5 GB",
	"Show progress": "done", "Use a secret": "has 20 characters: ***", "One after the other, without files": "checked",
	"Reads in a bucket, and a report back into it": "2 files in the report", "Scripts from a repository": "3 lines",
}

func TestEveryRecipeWorks(t *testing.T) {
	t.Parallel()
	repository := gittest.New(t)
	repository.Write("scripts/count.sh", "echo $(wc -l < \"$1\") lines")
	repository.Commit()
	s := start(t, "--data", t.TempDir(), "--runs-per-minute", "1000", "--fetch-allow-private")
	token, cookie, _ := s.signUp("ada")
	s.want(200, "PUT", "/api/secrets/SRA_TOKEN", `{"value":"twenty characters..."}`, "Cookie", cookie)
	inputs := map[string][]string{}
	for name, texts := range map[string][]string{"reads": {"a\nb\n", "c\nd\ne\n"}, "table": {"x\ny\nz\n"}} {
		for i, text := range texts {
			url, key := s.presign(token, fmt.Sprintf("%s %d.txt", name, i), int64(len(text)))
			if got := put(t, url, strings.NewReader(text), int64(len(text))); got != 200 {
				t.Fatal(got)
			}
			inputs[name] = append(inputs[name], key)
		}
	}
	headings, texts := blocks(t, "recipes.md", "json")
	same, text := blocks(t, "coming-from.md", "json")
	headings, texts = append(headings, same...), append(texts, text...)
	served := repository.Serve()
	for i, heading := range headings {
		texts[i] = strings.Replace(texts[i], "https://git.example.org/lab/analysis.git", served, 1)
		g, wrong := graph.Parse([]byte(texts[i]))
		if len(wrong) == 0 {
			wrong = g.Incomplete()
		}
		if len(wrong) > 0 {
			t.Errorf("%s: %v", heading, wrong)
			continue
		}
		if slices.Contains(notHere, heading) {
			continue
		}
		given := map[string][]string{}
		for _, in := range g.Inputs {
			given[in.Name] = inputs[in.Name]
		}
		w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":%q,"definition":%s}`, heading, texts[i]), "Cookie", cookie)
		body, err := json.Marshal(map[string]any{"workflowId": w["id"], "inputs": given})
		if err != nil {
			t.Fatal(err)
		}
		r := s.endedFor(cookie, s.want(202, "POST", "/api/runs", string(body), "Cookie", cookie)["runId"].(string))
		if log, _ := r["logs"].(string); r["status"] != "completed" || !strings.Contains(log, recipeLogs[heading]) {
			t.Errorf("%s: %v: %v, want %q\n%s", heading, r["status"], r["errorMessage"], recipeLogs[heading], log)
		}
	}
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
	_, texts := blocks(t, "environment.md", "json")
	definition := strings.Replace(texts[0], `"id": "show",`, `"id": "show", "secrets": ["KEY"], "env": {"MINE": "PARAMS_FILE EVENTS_FILE", "RUN_ID": "mine"},`, 1)
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
