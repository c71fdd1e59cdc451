package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func fileCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "fenja")
	dir := t.TempDir()
	for name, text := range map[string]string{"a.csv": "a\n", "b.csv": "bb\n", "empty.csv": "", "two words é.csv": "c\n", "script.sh": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.kept["DIR"] = dir
	p.types(
		typed{command: "files upload ${DIR}/a.csv ${DIR}/script.sh", status: 1, prints: `\Ateams/\S+/a.csv\n\z`, tells: `script.sh: `},
		typed{command: "files upload ${DIR}/b.csv ${DIR}/script.sh --json", status: 1, prints: `(?s)\A\[.*"name": "b.csv"`, tells: `script.sh: `}, // what has arrived is said
		typed{command: "files upload ${DIR}/empty.csv '${DIR}/two words é.csv' --content-type text/plain", prints: "^teams/\\S+/empty.csv$\n^teams/\\S+/two words é.csv$"},
		typed{command: "files upload ${DIR}", status: 1, tells: `"script.sh" in the folder: programs and scripts cannot be uploaded`},
		typed{command: "files upload ${DIR}/gone ${DIR}/a.csv", status: 1, tells: `gone: no such file`},
		typed{command: "files upload", status: 1, tells: `expected "<file> ..."`},
		typed{command: "files", prints: "^a.csv +upload +2 B +just now +teams/\n^b.csv +upload +3 B \n^empty.csv +upload +0 B \n^two words é.csv +upload "},
		typed{command: "files --json --source upload", prints: `"contentType": "text/plain"`},
		typed{command: "files -n 1", prints: `(?s)\ANAME[^\n]*\n[^\n]*\n\z`},
		typed{command: "files -n 0", status: 1, tells: `--limit must be at least 1`},
		typed{command: "files --source elsewhere", status: 1, tells: `--source must be one of "upload","output","all"`},

		typed{command: "files download a.csv --to ${DIR}/back", prints: `\A${DIR}/back/a.csv\n\z`},
		typed{command: "files download empty.csv --to ${DIR}/back --json", prints: `"name": "empty.csv"`},
		typed{command: "files download gone.csv --to ${DIR}/back", status: 1, tells: `the team has no file "gone.csv": see millrace files ls`},
		typed{command: "files download a.csv --to ${DIR}/a.csv", status: 1, tells: `not a directory`},
	)
	if err := os.WriteFile(filepath.Join(dir, "back/a.csv"), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.types(
		typed{command: "files download a.csv --to ${DIR}/back", status: 1, tells: `a.csv already exists and differs: replace it with --force`},
		typed{command: "files download a.csv --to ${DIR}/back --force", prints: `back/a.csv`},
		typed{command: "files rm a.csv gone.csv b.csv", status: 1, prints: `\Adeleted teams/\S+/a.csv\n\z`, tells: `no file "gone.csv"`},
		typed{command: "files rm b.csv b.csv --json", status: 1, prints: `"key": "teams/\S+/b.csv"`, tells: `no file "b.csv"`},
		typed{command: "files", prints: `(?s)\ANAME[^\n]*\n[^\n]*\n[^\n]*\n\z`},

		typed{command: "files uploads"},
		typed{command: "api POST files/uploads -t filename=open.csv -t contentType=text/csv -f size=4", prints: `"uploadId":"up_`},
		typed{command: "files uploads", prints: `^up_\S+ +open.csv +4 B +fenja +just now +in `},
		typed{command: "files uploads rm up_nothing", status: 1, tells: `up_nothing: `},
	)
	for name, want := range map[string]string{"a.csv": "a\n", "empty.csv": ""} {
		if got, err := os.ReadFile(filepath.Join(dir, "back", name)); err != nil || string(got) != want {
			t.Errorf("%s came back as %q, %v", name, got, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "back", ".*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// Outputs whose names are also those of folders that the others go to.
func outputCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "olga")
	p.ran(`{"nodes":[{"id":"a","command":"mkdir p q dir; echo 1 > p/x; echo 2 > q/x; echo 3 > a; echo 4 > dir/f; echo 5 > n.csv",
		"outputs":{"o":{"path":"*/x","many":true},"a":{"path":"a"},"dir":{"path":"dir","directory":true},"n":{"path":"n.csv"}}}]}`, "RUN", "")
	dir := t.TempDir()
	p.kept["DIR"] = dir
	p.types(
		typed{command: "runs outputs", prints: "^NAME +STEP +PORT +SIZE +SHA-256$\n^n.csv +a +n +2 B +[0-9a-f]{64}$"}, // of the newest
		typed{command: "runs outputs ${RUN} --json", prints: "\"port\": \"dir\"\n\"nodeId\": \"a\""},
		typed{command: "runs outputs download ${RUN} --to ${DIR}/all", prints: "^${DIR}/all/a/o/x$\n^${DIR}/all/a/o/2-x$\n^${DIR}/all/2-a$\n^${DIR}/all/dir$\n^${DIR}/all/n.csv$"},
		typed{command: "runs outputs download ${RUN} --to ${DIR}/some --name '*.csv' --json", prints: `(?s)\A\[\n  \{[^{]*"name": "n.csv"[^{]*\}\n\]\n\z`},
		typed{command: "runs outputs download ${RUN} --to ${DIR}/none --name '*.bam'", prints: ``},
		typed{command: "runs outputs download ${RUN} --to ${DIR}/none --name '[a'", status: 1, tells: `--name \[a is not a valid pattern`},
		typed{command: "runs outputs download run_nothing --to ${DIR}/none", status: 1, tells: `see millrace runs list`},
		typed{command: "runs outputs run_nothing", status: 1, tells: `see millrace runs list`},
		typed{command: "files --source output", prints: `^n.csv +output +2 B `},
		typed{command: "files download dir --to ${DIR}/one", prints: `^${DIR}/one/dir$`},
		typed{command: "files download dir --to ${DIR}/one", prints: `^${DIR}/one/dir$`},
		typed{command: "runs outputs download ${RUN} --to ${DIR}/all", prints: "^${DIR}/all/dir$\n^${DIR}/all/n.csv$"},
		typed{command: "files download dir --to ${DIR}/one --force", prints: `dir$`},
	)
	for name, want := range map[string]string{"all/2-a": "3\n", "all/n.csv": "5\n", "some/n.csv": "5\n", "all/dir/f": "4\n", "one/dir/f": "4\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	both := ""
	for _, name := range []string{"all/a/o/x", "all/a/o/2-x"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		both += string(got)
	}
	if both != "1\n2\n" && both != "2\n1\n" {
		t.Errorf("the two of one name are %q", both)
	}
}

// A folder from disk goes through a run and comes back as a folder.
func folderCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "freya")
	dir := t.TempDir()
	p.kept["DIR"] = dir
	for name, text := range map[string]string{"reads/a.txt": "a\n", "reads/sub/b.txt": "bb\n", "reads/sub/deep/é.txt": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.kept["FILE"] = written(t, "copies.json", `{"inputs":{"reads":{"type":"directory"}},"nodes":[
		{"id":"a","inputs":{"in":{"from":"inputs.reads"}},"command":"cp -R \"$INPUT_in\" out; echo c > out/c.txt","outputs":{"out":{"path":"out","directory":true}}}]}`)
	p.types(
		typed{command: "run ${FILE} -i reads=${DIR}/reads --watch", prints: `completed`},
		typed{command: "runs outputs", prints: `^out +a +out +7 B `}, // of its files
		typed{command: "files", prints: `^reads +upload +5 B .*\n.*^out +output +7 B `},
		typed{command: "runs outputs download --to ${DIR}/back", prints: `^${DIR}/back/out$`},
		typed{command: "files download reads --to ${DIR}/back", prints: `^${DIR}/back/reads$`},
		typed{command: "run ${FILE} -i reads=${DIR}/reads/a.txt", status: 1, tells: `-i reads: ${DIR}/reads/a.txt is a file, and this input takes a folder`},
	)
	for name, want := range map[string]string{"out/a.txt": "a\n", "out/sub/b.txt": "bb\n", "out/sub/deep/é.txt": "", "out/c.txt": "c\n", "reads/sub/b.txt": "bb\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, "back", name)); err != nil || string(got) != want {
			t.Errorf("%s came back as %q, %v", name, got, err)
		}
	}
}

// What a step that failed left behind, and what it was given.
func keptCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "kai")
	dir := t.TempDir()
	p.kept["DIR"] = dir
	p.kept["FILE"] = written(t, "breaks.json", `{"nodes":[{"id":"a","retries":{"max":1,"backoffSeconds":0},"command":"mkdir -p sub; echo $ATTEMPT > sub/half.txt; echo why >&2; exit 7"}]}`)
	p.types(
		typed{command: "run ${FILE} --watch", status: 1, prints: "exited with status 7\n\\| why", tells: `^millrace: run_[0-9a-f]+ failed: `},
		typed{command: "runs list --json", prints: `"status": "failed"`},
	)
	p.kept["RUN"] = p.printed(`"id": "(run_[0-9a-f]+)"`)
	p.types(
		// Folders are kept when their attempts are released, after the end of the run.
		typed{command: "runs kept ${RUN}", prints: "^STEP +ATTEMPT +ENTRIES +SIZE +KEPT UNTIL$\n^a +2 +\\d+ .* 20\\d\\d-", soon: true},
		typed{command: "runs kept ${RUN} --json", prints: "\"nodeId\": \"a\"\n\"attempt\": 2"},
		typed{command: "runs kept ${RUN} a", prints: "^PATH +KIND +SIZE +KEPT$\n^sub/half.txt +file +\\d+ B +yes$"},
		typed{command: "runs kept ${RUN} a --json", prints: `"path": "sub/half.txt"`},
		typed{command: "runs kept ${RUN} a --to ${DIR}/left", prints: `^${DIR}/left/sub/half.txt$`},
		typed{command: "runs kept ${RUN} a --to ${DIR}/json --json", prints: `(?s)\A\[.*"path": "sub/half.txt".*\]\s\z`},
		typed{command: "runs kept ${RUN} a --to ${DIR}/left", status: 1, tells: `half.txt already exists: replace it with --force`}, // its hash is not known
		typed{command: "runs kept ${RUN} a --to ${DIR}/left --force", prints: `half.txt`},
		typed{command: "runs kept ${RUN} b", status: 1, tells: `no folder of step b is kept: see millrace runs kept ${RUN}$`},
		typed{command: "runs kept ${RUN} a --shard 5", status: 1, tells: `no folder of this attempt is kept, but of a: see millrace runs kept ${RUN}$`},
		typed{command: "runs kept ${RUN} a --attempt 9", status: 1, tells: `^millrace: `},
		typed{command: "runs kept run_nothing", status: 1, tells: `see millrace runs list`},

		typed{command: "runs reproduce ${RUN} a --to ${DIR}/again", prints: `^${DIR}/again/run.sh$`},
		typed{command: "runs reproduce ${RUN} a --to ${DIR}/again --json", prints: `"interpreter": "bash"`},
		typed{command: "runs reproduce ${RUN} nobody --to ${DIR}/no", status: 1, tells: `^millrace: `},
		typed{command: "runs reproduce ${RUN} a --shard 3 --to ${DIR}/no", status: 1, tells: `^millrace: `},
		typed{command: "runs reproduce ${RUN} a", status: 1, tells: `missing flags: --to`},
		typed{command: "runs environment ${RUN} a --lock", status: 1, tells: `^millrace: `},
		typed{command: "logs ${RUN} --node a --shard 0", prints: `^why$`},
		typed{command: "logs ${RUN} --node nobody", status: 1, tells: `the run has no step "nobody": "millrace runs view ${RUN}" lists them`},
		typed{command: "logs ${RUN} --shard 1", status: 1, tells: `--shard needs --node`},
		typed{command: "logs ${RUN} --follow --json", status: 1, tells: `--json and --follow can't be combined`},
		typed{command: "logs ${RUN} --follow", prints: `^why$`}, // it has ended
		typed{command: "runs events ${RUN} --json", prints: `"type": "node.failed"`},
		typed{command: "runs events ${RUN} --after 100000", prints: `\ASEQ +TIME +TYPE +STEP +MESSAGE\n\z`},
		typed{command: "runs items ${RUN} a", prints: `^a/0 +– +failed +2 +.* 7 +0$`}, // one that is not scattered has one
		typed{command: "runs items ${RUN} a --limit=-1", status: 1, tells: `--limit must be at least 0`},
	)
	if got, err := os.ReadFile(filepath.Join(dir, "left/sub/half.txt")); err != nil || strings.TrimSpace(string(got)) != "2" {
		t.Errorf("%q was left, %v", got, err)
	}
}
