package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const copied = "cp+sha256sum"

var folderRows = []row{
	{"made", "s", "made, and given to the next step: s", 2},
	{"reused", "s", "reused by another run: s", 2},
	{"deleted", "s", "deleted: s", 2},
}

var folderGoals = []goal{
	{"made", "s", copied, false, 3, "hashed, kept and given to the next step: at most 3 × cp -a and sha256sum"},
	{"reused", "s", copied, false, 3, "found and given to the next step of another run: at most 3 × the same"},
	{"deleted", "s", copied, false, 3, "deleted: at most 3 × the same"},
}

var folderPeers = []peer{{name: us, command: program("millrace")}}

// makeFolder makes n files of 4 kB below five levels of folders, with a link in each
// folder of the second level.
const makeFolder = `for ((i = 0; i < %[1]d; i++)); do
	d=results/a$((i / 10000))/b$((i / 1000 %% 10))/c$((i / 100 %% 10))/d$((i / 10 %% 10))
	if ((i %% 10 == 0)); then mkdir -p $d; fi
	printf '%%4000d\n' $i > $d/f$i
	if ((i %% 1000 == 0)); then ln -s c0/d0/f$i results/a$((i / 10000))/b$((i / 1000 %% 10))/first; fi
done
`

// measureFolders has a step make a folder and the next one read it, and beside that
// copies and hashes the same folder. What a command takes to make it does not
// count: it notes when it ends, and the next one when it begins.
func measureFolders(s settings, _ []peer, r *results) error {
	store, err := filepath.Abs(filepath.Join(s.out, "files"))
	if err != nil {
		return err
	}
	s.store = store
	if err := errors.Join(os.RemoveAll(s.store), os.Mkdir(s.store, 0o700)); err != nil {
		return err
	}
	defer os.RemoveAll(s.store)
	proc, err := start(s, peer{name: us + "-folders", readyPath: millrace.readyPath, prepare: generousFolders, command: taskServer("none")})
	if err != nil {
		return err
	}
	defer proc.stop()
	d, err := signUp(proc, "folders")
	if err != nil {
		return err
	}
	if err := d.shell(s, "mkdir source && cd source\n"+fmt.Sprintf(makeFolder, s.files)); err != nil {
		return err
	}
	for round := range s.rounds {
		ms, err := d.folderRound(s, round)
		if err != nil {
			return fmt.Errorf("%w (log: %s)", err, proc.log)
		}
		theirs, err := d.copyAndHash(s)
		if err != nil {
			return err
		}
		for op, took := range ms {
			for name, seconds := range map[string]float64{us: took.Seconds(), copied: theirs.Seconds()} {
				if err := r.keep(measurement{"s": seconds}.add("name", name).add("op", op).add("round", round)); err != nil {
					return err
				}
			}
		}
		fmt.Fprintf(os.Stderr, "folders made %.2f s, reused %.2f s, deleted %.2f s, cp and sha256sum %.2f s\n", ms["made"].Seconds(), ms["reused"].Seconds(), ms["deleted"].Seconds(), theirs.Seconds())
	}
	return nil
}

func generousFolders(_, dir string) error {
	return os.WriteFile(filepath.Join(dir, "plans.json"), []byte(`{"plans": {"free": {"monthlyCredits": 1000000, "storageGb": 1000}}}`), 0o600)
}

func (d destination) shell(s settings, script string) error {
	c := exec.Command("bash", "-ec", script)
	c.Dir = s.store
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (d destination) copyAndHash(s settings) (time.Duration, error) {
	syscall.Sync()
	begun := time.Now()
	err := d.shell(s, "cp -a source copy; find copy -type f -print0 | xargs -0 sha256sum > sums")
	took := time.Since(begun)
	return took, errors.Join(err, os.RemoveAll(filepath.Join(s.store, "copy")))
}

// folderRound makes a folder, reuses it, and deletes it.
func (d destination) folderRound(s settings, round int) (map[string]time.Duration, error) {
	node := func(id string, more map[string]any, command string) map[string]any {
		more["id"], more["command"] = id, command
		return more
	}
	folder := map[string]any{"dir": map[string]any{"path": "results", "directory": true}}
	note := func(name string) string { return fmt.Sprintf("date +%%s%%N > %s/%s", s.store, name) }
	definition := map[string]any{
		"nodes": []any{
			node("make", map[string]any{"cache": true, "outputs": folder}, fmt.Sprintf(makeFolder, s.files)+note("last")+fmt.Sprintf(" # %d", round)),
			node("read", map[string]any{"cache": false}, note("first")+"; test -L \"$INPUT_dir/a0/b0/first\""),
		},
		"edges": []any{map[string]any{"id": "e", "source": "make", "sourceHandle": "dir", "target": "read", "targetHandle": "dir"}},
	}
	var made struct{ Data struct{ ID string } }
	if err := d.client.post(d.base+"/api/workflows", map[string]any{"name": "folders", "definition": definition}, &made); err != nil {
		return nil, err
	}
	result := map[string]time.Duration{}
	for _, op := range []string{"made", "reused"} {
		syscall.Sync()
		begun := time.Now()
		if err := d.runFolder(made.Data.ID); err != nil {
			return nil, err
		}
		first, err := stamp(filepath.Join(s.store, "first"))
		if err != nil {
			return nil, err
		}
		if op == "made" {
			if begun, err = stamp(filepath.Join(s.store, "last")); err != nil {
				return nil, err
			}
		}
		result[op] = first.Sub(begun)
	}
	begun := time.Now()
	err := d.deleteAll()
	result["deleted"] = time.Since(begun)
	return result, err
}

func (d destination) runFolder(workflow string) error {
	var answer struct{ Data struct{ RunID string } }
	if err := d.client.post(d.base+"/api/runs", map[string]any{"workflowId": workflow}, &answer); err != nil {
		return err
	}
	return awaitRun(d.base+"/api/runs/"+answer.Data.RunID+"/stream", d.client.auth)
}

// deleteAll deletes what is listed, and waits until no byte of it is there.
func (d destination) deleteAll() error {
	var listed struct {
		Data []struct{ Key, Source string }
	}
	if err := d.client.get(d.base+"/api/files", &listed); err != nil {
		return err
	}
	for _, f := range listed.Data {
		if err := d.client.post(d.base+"/api/files/delete", map[string]any{"key": f.Key, "source": f.Source}, nil); err != nil {
			return err
		}
	}
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		left, err := bytesBelow(filepath.Join(d.dir, "data"), "objects")
		if err != nil || left == 0 {
			return err
		}
		if time.Since(begun) > time.Minute {
			return fmt.Errorf("%d bytes of what was deleted are still there in %s", left, d.dir)
		}
	}
}

// bytesBelow counts what is in folders of a name, but for the smallest: logs.
func bytesBelow(root, name string) (total int64, err error) {
	err = filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil && info.Mode().IsRegular() && info.Size() > 1<<20 && strings.Contains(path, "/"+name+"/") {
			total += info.Size()
		}
		return err
	})
	return total, err
}
