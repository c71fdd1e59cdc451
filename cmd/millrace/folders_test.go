package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/folders"
)

const folderWorkflow = `{"nodes":[
	{"id":"make","cache":true,"outputs":{"dir":{"path":"results","directory":true}},
	 "command":"mkdir -p results/1/2/3/4 results/none; echo five > results/1/2/3/4/5.txt; ln -s 2/3 results/1/three; printf '#!/bin/sh\\necho ran\\n' > 'results/run it.sh'; chmod +x results/*.sh"},
	{"id":"read","outputs":{"list":{"path":"list"}},
	 "command":"cd \"$INPUT_dir\"; (find . | LC_ALL=C sort; cat 1/three/4/5.txt; './run it.sh') > \"$OLDPWD/list\""}],
	"edges":[{"id":"e","source":"make","sourceHandle":"dir","target":"read","targetHandle":"dir"}]}`

const folderRead = ".\n./1\n./1/2\n./1/2/3\n./1/2/3/4\n./1/2/3/4/5.txt\n./1/three\n./none\n./run it.sh\nfive\nran\n"

func download(t *testing.T, address string) []byte {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d, %v: %s", resp.StatusCode, err, text)
	}
	return text
}

// outputsOf are a run's, by port.
func (s *server) outputsOf(token, id string) map[string]map[string]any {
	byPort := map[string]map[string]any{}
	for _, o := range s.want(200, "GET", "/api/runs/"+id+"/outputs", "", "Authorization", bearer(token))["data"].([]any) {
		one := o.(map[string]any)
		byPort[one["port"].(string)] = one
	}
	return byPort
}

// A folder is kept with all that is in it, given to the next step, listed once,
// reused, taken as an input, downloaded, and deleted.
func TestAFolderGoesThroughTheSystem(t *testing.T) {
	eachStorage(t, func(t *testing.T, args []string, disk bool) {
		data := t.TempDir()
		s := start(t, append(args, "--data", data)...)
		token, _, _ := s.signUp("ada")
		as := []string{"Authorization", bearer(token)}
		w := s.workflow(token, folderWorkflow)
		var key, file string
		for i := range 2 {
			id := s.run(token, `{"workflowId":"`+w+`"}`)
			if r := s.ended(token, id); r["status"] != "completed" {
				t.Fatalf("%v: %v", r["status"], r["errorMessage"])
			}
			if nodes := s.want(200, "GET", "/api/runs/"+id, "", as...)["nodes"].([]any); nodes[0].(map[string]any)["cached"] != (i == 1) {
				t.Errorf("run %d: %v", i, nodes[0])
			}
			out := s.outputsOf(token, id)
			if got := string(download(t, out["list"]["url"].(string))); got != folderRead {
				t.Errorf("run %d: the next step found:\n%s", i, got)
			}
			s.checkFolder(out["dir"])
			key, file = out["dir"]["key"].(string), out["list"]["key"].(string)
		}
		if list := s.files(token); len(list) != 4 {
			t.Errorf("%d files are listed", len(list))
		} else {
			s.checkFolder(list[indexOf(list, key)])
		}
		s.exportsFolder(token, key)
		s.takesFolders(token, key, file)
		for _, f := range s.files(token) {
			text, err := json.Marshal(map[string]any{"key": f["key"], "source": f["source"]})
			if err != nil {
				t.Fatal(err)
			}
			s.want(200, "POST", "/api/files/delete", string(text), as...)
		}
		if storage := s.want(200, "GET", "/api/billing/credits", "", as...)["storage"].(map[string]any); storage["usedBytes"] != 0.0 {
			t.Errorf("deleted, and still counted: %v", storage)
		}
		if disk {
			var left []string
			if err := filepath.WalkDir(filepath.Join(data, "objects", "objects"), func(name string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					left = append(left, name)
				}
				return err
			}); err != nil || len(left) > 0 {
				t.Errorf("deleted, and still there: %v, %v", left, err)
			}
		}
	})
}

func indexOf(list []map[string]any, key string) int {
	for i, f := range list {
		if f["key"] == key {
			return i
		}
	}
	return 0
}

// checkFolder holds a row against what the folder is.
func (s *server) checkFolder(row map[string]any) {
	s.t.Helper()
	dir, _ := row["directory"].(map[string]any)
	if dir == nil || dir["files"] != 2.0 || dir["bytes"] != 24.0 || row["name"] != "results" {
		s.t.Fatalf("%v", row)
	}
	text := download(s.t, row["url"].(string))
	m, err := folders.Parse(text)
	if err != nil || folders.Hash(text) != row["sha256"] || float64(len(text)) != row["size"] || len(m.Entries) != 4 {
		s.t.Errorf("%v: %s", err, text)
	}
	if data := download(s.t, dir["dataUrl"].(string)); len(data) != 24 {
		s.t.Errorf("the bytes of its files are %q", data)
	}
	address := dir["archiveUrl"].(string)
	data := download(s.t, address)
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
		if f.Name == "results/1/three" && f.Mode()&fs.ModeSymlink == 0 || f.Name == "results/run it.sh" && f.Mode()&0o100 == 0 {
			s.t.Errorf("%s: %s", f.Name, f.Mode())
		}
	}
	sort.Strings(names)
	if got := strings.Join(names, " "); got != "results/ results/1/2/3/4/5.txt results/1/three results/none/ results/run it.sh" {
		s.t.Errorf("in the archive: %s", got)
	}
	token, _, _ := strings.Cut(strings.TrimPrefix(address, s.base+"/archives/"), "/")
	for path, status := range map[string]int{"/archives/" + token + "x/results.zip": 403, "/reports/" + token + "/results": 403, "/archives/" + strings.Repeat("A", 3) + "." + token + "/results.zip": 403} {
		if got, _, _ := s.call("GET", path, ""); got != status {
			s.t.Errorf("%s: %d", path[:20], got)
		}
	}
}

// exportsFolder finds a folder in the export of its team, as it is listed.
func (s *server) exportsFolder(token, key string) {
	s.t.Helper()
	var rows []map[string]any
	for _, f := range s.want(200, "GET", "/api/account/data", "", "Authorization", bearer(token))["files"].([]any) {
		if one := f.(map[string]any); one["key"] == key {
			rows = append(rows, one)
		}
	}
	if len(rows) != 1 {
		s.t.Fatalf("%d rows of the folder are exported", len(rows))
	}
	s.checkFolder(rows[0])
}

// takesFolders starts runs with a folder and a file as their input.
func (s *server) takesFolders(token, folder, file string) {
	s.t.Helper()
	for kind, given := range map[string]map[string]int{"directory": {folder: 202, file: 400}, "file": {folder: 400, file: 202}, "files": {folder: 400, file: 202}} {
		w := s.workflow(token, `{"inputs":{"ref":{"type":"`+kind+`"}},"nodes":[{"id":"a","command":"ls -d \"$INPUT_in\"","inputs":{"in":{"from":"inputs.ref"}}}]}`)
		for key, status := range given {
			body := s.want(status, "POST", "/api/runs", `{"workflowId":"`+w+`","inputs":{"ref":"`+key+`"}}`, "Authorization", bearer(token))
			if status == 400 {
				continue
			}
			id := body["runId"].(string)
			if r := s.ended(token, id); r["status"] != "completed" {
				s.t.Errorf("%s: %v", kind, r["errorMessage"])
			}
		}
	}
}

func TestAFolderThatCannotBeKeptFailsItsNode(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir())
	token, _, _ := s.signUp("ada")
	for name, tt := range map[string]struct{ command, says string }{
		"a link outside":         {`mkdir results; ln -s /etc/passwd results/l`, "leads out of the folder"},
		"a link by way of links": {`mkdir -p results/a; ln -s . results/d; ln -s ../d/../.. results/a/l`, "leads out of the folder"},
		"a pipe":                 {`mkdir results; mkfifo results/p`, "neither a file"},
		"a name":                 {`mkdir results; touch \"results/a$(printf '\\\\nb')\"`, "control character"},
		"nothing":                {`true`, "did not produce results"},
	} {
		w := s.workflow(token, `{"nodes":[{"id":"a","command":"`+tt.command+`","outputs":{"o":{"path":"results","directory":true}}}]}`)
		id := s.run(token, `{"workflowId":"`+w+`"}`)
		if r := s.ended(token, id); r["status"] != "failed" || !strings.Contains(r["errorMessage"].(string), tt.says) {
			t.Errorf("%s: %v: %v", name, r["status"], r["errorMessage"])
		}
	}
}
