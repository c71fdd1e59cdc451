package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/runs/crate/cratetest"
	"github.com/millrace/millrace/internal/sizetest"
)

// expectation is what an example says of its own outcome.
type expectation struct {
	Status       string              `json:"status"`
	ErrorCode    string              `json:"errorCode"`
	ErrorMessage string              `json:"errorMessage"`
	Parameters   map[string]any      `json:"parameters"`
	Inputs       map[string][]string `json:"inputs"` // names of files in inputs/
	Nodes        map[string]string   `json:"nodes"`
	Attempts     map[string]float64  `json:"attempts"`
	Outputs      map[string]struct {
		Contains string `json:"contains"`
	} `json:"outputs"`
	Logs []string `json:"logs"`
}

// Every example is run by the real program, in its sandbox, as somebody would
// who has just installed it.
func TestTheExamples(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--runs-per-minute", "1000")
	_, cookie, _ := s.signUp("ada")
	folders, err := filepath.Glob("../../examples/*/workflow.json")
	if err != nil || len(folders) < 8 {
		t.Fatalf("%d examples, %v", len(folders), err)
	}
	ids := map[string]string{}
	for _, path := range folders {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			s := *s
			s.t = t
			ids[filepath.Base(dir)] = s.example(cookie, dir)
		})
	}
	if !sizetest.All() {
		return
	}
	t.Run("crates", func(t *testing.T) {
		top, profiles := t.TempDir(), map[string]string{}
		for name, id := range ids {
			folder := filepath.Join(top, name)
			s.unpackCrate(t, cookie, id, folder)
			profiles[folder] = cratetest.Provenance
		}
		cratetest.Validate(t, profiles)
	})
}

// unpackCrate unpacks the RO-Crate of a run into a folder.
func (s *server) unpackCrate(t *testing.T, cookie, id, folder string) {
	t.Helper()
	resp := s.send("GET", "/api/runs/"+id+"/crate", "", "Cookie", cookie)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	// A file stands for a link of the same name, which the crate describes no more than other
	// contents of a folder.
	for _, f := range z.File {
		at := filepath.Join(folder, filepath.FromSlash(f.Name))
		if strings.HasSuffix(f.Name, "/") {
			at = filepath.Join(at, "file")
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		in.Close()
		if err == nil {
			err = os.WriteFile(at, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// example runs one and returns its run.
func (s *server) example(cookie, dir string) (id string) {
	var want expectation
	if err := json.Unmarshal(s.file(dir, "expect.json"), &want); err != nil {
		s.t.Fatal(err)
	}
	token := s.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	w := s.want(201, "POST", "/api/workflows", string(s.file(dir, "workflow.json")), "Cookie", cookie)
	if problems := w["problems"].([]any); len(problems) > 0 {
		s.t.Errorf("%v", problems)
	}
	inputs := map[string]any{}
	for name, list := range want.Inputs {
		var keys []string
		for _, file := range list {
			text := s.file(dir, filepath.Join("inputs", file))
			url, key := s.presign(token, file, int64(len(text)))
			if got := put(s.t, url, bytes.NewReader(text), int64(len(text))); got != 200 {
				s.t.Fatal(got)
			}
			keys = append(keys, key)
		}
		inputs[name] = keys
	}
	body, err := json.Marshal(map[string]any{"workflowId": w["id"], "parameters": want.Parameters, "inputs": inputs})
	if err != nil {
		s.t.Fatal(err)
	}
	id = s.want(202, "POST", "/api/runs", string(body), "Cookie", cookie)["runId"].(string)
	s.compare(s.endedFor(cookie, id), want)
	s.outputsAre(cookie, id, want)
	return id
}

func (s *server) file(dir, name string) []byte {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

func (s *server) compare(r map[string]any, want expectation) {
	s.t.Helper()
	code, _ := r["errorCode"].(string)
	message, _ := r["errorMessage"].(string)
	if r["status"] != want.Status || code != want.ErrorCode || message != want.ErrorMessage {
		s.t.Errorf("%v, %v: %v\n%v", r["status"], r["errorCode"], r["errorMessage"], r["logs"])
	}
	states := map[string]string{}
	for _, raw := range r["nodes"].([]any) {
		n := raw.(map[string]any)
		id := n["id"].(string)
		states[id] = n["status"].(string)
		if attempts, ok := want.Attempts[id]; ok && n["attempt"] != attempts {
			s.t.Errorf("%s took %v attempts, want %v", id, n["attempt"], attempts)
		}
	}
	for id, state := range want.Nodes {
		if states[id] != state {
			s.t.Errorf("%s is %s, want %s", id, states[id], state)
		}
	}
	for _, text := range want.Logs {
		if !strings.Contains(r["logs"].(string), text) {
			s.t.Errorf("the log misses %q:\n%v", text, r["logs"])
		}
	}
}

func (s *server) outputsAre(cookie, id string, want expectation) {
	s.t.Helper()
	found := map[string]string{}
	for _, raw := range s.want(200, "GET", "/api/runs/"+id+"/outputs", "", "Cookie", cookie)["data"].([]any) {
		o := raw.(map[string]any)
		resp, err := http.Get(o["url"].(string))
		if err != nil {
			s.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			s.t.Fatal(err)
		}
		found[o["name"].(string)] = string(text)
	}
	for name, o := range want.Outputs {
		if text, ok := found[name]; !ok || !strings.Contains(text, o.Contains) {
			s.t.Errorf("%s is %.300q, want it to contain %q", name, text, o.Contains)
		}
	}
}
