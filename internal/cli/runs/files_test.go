package runs

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// output is one of a run as the API lists it; its bytes lie at an address by its name.
func output(node, name, text, expires string) string {
	return fmt.Sprintf(`{"key":"k/%s/%s","name":%q,"nodeId":%q,"port":"o","size":%d,"sha256":%q,"url":"SERVER/%s/%s","expiresAt":%q}`,
		node, name, name, node, len(text), sum(text), node, name, expires)
}

const (
	later  = "2099-01-01T00:00:00.000Z"
	before = "2020-01-01T00:00:00.000Z"
)

// archive is a zip archive with one file.
func archive(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	if _, err := z.Create("a.txt"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// files are those below a folder, with what is hidden.
func files(t *testing.T, folder string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			rel, _ := filepath.Rel(folder, path)
			all = append(all, rel)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestOutputsAreDownloadedAsTheyAreNamed(t *testing.T) {
	t.Parallel()
	manifest := fmt.Sprintf(`{"version":1,"entries":[{"path":"in/it.svg","size":2,"sha256":%q}]}`, sum("ds"))
	folder := fmt.Sprintf(`{"key":"k/d","name":"plots","nodeId":"b","port":"d","size":1,"sha256":%q,"url":"SERVER/manifest","expiresAt":%q,"directory":{"archiveUrl":"x","dataUrl":"SERVER/data","bytes":2,"files":1}}`, sum(manifest), later)
	older := strings.Replace(folder, `"dataUrl":"SERVER/data",`, "", 1)
	list := func(next string, outputs ...string) string {
		return `{"success":true,"data":[` + strings.Join(outputs, ",") + `],"page":{"hasMore":true,"nextCursor":` + next + `}}`
	}
	run := func(answers map[string]string) map[string]string {
		for path, text := range map[string]string{"GET /a/x.csv": "ax", "GET /b/x.csv": "bx", "GET /b/y.txt": "by", "GET /manifest": manifest, "GET /data": "ds"} {
			if answers[path] == "" {
				answers[path] = text
			}
		}
		return answers
	}
	three := func() map[string]string {
		return run(map[string]string{
			"GET /api/runs/run_1/outputs?limit=500":           list(`"c1"`, output("a", "x.csv", "ax", later), output("b", "x.csv", "bx", later)),
			"GET /api/runs/run_1/outputs?cursor=c1&limit=500": list(`null`, output("b", "y.txt", "by", later), folder),
		})
	}
	for name, tt := range map[string]struct {
		answers map[string]string
		flags   string
		there   string
		tells   string
	}{
		"all of them":           {three(), "", "a/o/x.csv b/o/x.csv plots/in/it.svg y.txt", ""},
		"those of a name":       {three(), "--name *.csv", "a/o/x.csv b/o/x.csv", ""},
		"none of a name":        {three(), "--name *.bam", "", ""},
		"a folder by its name":  {three(), "--name plots", "plots/in/it.svg", ""},
		"by no pattern":         {three(), "--name [", "", "--name [ is not a valid pattern"},
		"none at all":           {map[string]string{"GET /api/runs/run_1/outputs": list(`null`)}, "", "", ""},
		"of no run":             {map[string]string{}, "", "", "no such run (see millrace runs list)"},
		"damaged ones are not":  {run(map[string]string{"GET /a/x.csv": "!!", "GET /api/runs/run_1/outputs": list(`null`, output("a", "x.csv", "ax", later))}), "", "", "x.csv: was damaged in transfer"},
		"a name that leads out": {run(map[string]string{"GET /api/runs/run_1/outputs": list(`null`, output("a", "../x", "ax", later))}), "", "", `".." is not a valid file name here`},
		"a damaged folder":      {run(map[string]string{"GET /data": "!!", "GET /api/runs/run_1/outputs": list(`null`, folder)}), "", "", "plots/in/it.svg: was damaged in transfer"},
		"of an older server":    {run(map[string]string{"GET /api/runs/run_1/outputs": list(`null`, older)}), "", "", "gives folders only as archives"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, to := serve(t, tt.answers), filepath.Join(t.TempDir(), "to")
			for range 2 { // and again, where they are there
				args := append([]string{"runs", "outputs", "download", "run_1", "--to", to, "--force"}, strings.Fields(tt.flags)...)
				d, status := s.types(t, args...)
				if (status == 0) != (tt.tells == "") || !strings.Contains(d.Errors.String(), tt.tells) {
					t.Errorf("%d, told %q", status, d.Errors)
				}
				if got := files(t, to); got != tt.there {
					t.Errorf("there are %q", got)
				}
				printed := strings.Fields(d.Printed.String())
				if tt.tells == "" && len(printed) != len(strings.Fields(tt.there)) {
					t.Errorf("it prints %q", printed)
				}
				for _, path := range printed {
					if _, err := os.Stat(path); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	s, to := serve(t, three()), t.TempDir()
	d, status := s.types(t, "runs", "outputs", "download", "run_1", "--to", to, "--name", "y*", "--json")
	var printed []struct{ Name string }
	if err := json.Unmarshal(d.Printed.Bytes(), &printed); status != 0 || err != nil || len(printed) != 1 || printed[0].Name != "y.txt" {
		t.Errorf("%d, as JSON: %s, %v", status, d.Printed, err)
	}
}

// An address that has expired before its turn comes is asked for again.
func TestAnExpiredAddressIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ second, tells string }{
		"and is there":   {output("a", "x", "ax", later), ""},
		"and has gone":   {output("a", "other", "ax", later), "x no longer exists"},
		"and fails":      {"", "broken"},
		"and is another": {strings.Replace(output("a", "x", "ax", later), sum("ax"), sum("zz"), 1), "was damaged in transfer"},
	} {
		lists := []string{output("a", "x", "ax", before), tt.second}
		s := serve(t, map[string]string{"GET /a/x": "ax"})
		s.Before = func(line string) {
			if strings.HasPrefix(line, "GET /api/runs/run_1/outputs") {
				s.Answers["GET /api/runs/run_1/outputs"] = `{"success":true,"data":[` + lists[0] + `],"page":{"hasMore":false}}`
				if lists[0] == "" {
					s.Answers["GET /api/runs/run_1/outputs"] = `500 {"success":false,"error":"broken","code":"internal","requestId":"r"}`
				}
				lists = lists[1:]
			}
		}
		to := t.TempDir()
		d, status := s.types(t, "runs", "outputs", "download", "run_1", "--to", to)
		if (status == 0) != (tt.tells == "") || !strings.Contains(d.Errors.String(), tt.tells) || (files(t, to) == "x") != (tt.tells == "") {
			t.Errorf("%s: %d, told %q, there are %q", name, status, d.Errors, files(t, to))
		}
	}
}

func TestWhatAFailedStepLeftIsFetched(t *testing.T) {
	t.Parallel()
	kept := func(node string, shard, attempt int) string {
		return fmt.Sprintf(`{"nodeId":%q,"shard":%d,"attempt":%d,"files":2,"bytes":2048,"expiresAt":%q,"keptAt":%q}`, node, shard, attempt, later, before)
	}
	const at = "GET /api/runs/run_1/attempts/a/"
	s := serve(t, map[string]string{
		"GET /api/runs/run_1/attempts":             data("[" + strings.Join([]string{kept("b", 0, 9), kept("a", 0, 1), kept("a", 0, 3), kept("a", 0, 2), kept("a", 1, 1)}, ",") + "]"),
		"GET /api/runs/run_2/attempts":             data("[]"),
		"GET /api/runs/run_3/attempts":             data("[" + kept("c", 4, 1) + "]"),
		"GET /api/runs":                            data(`[{"id":"run_1"}]`),
		"GET /api/runs/run_3/attempts/c/4/1/files": data(`[{"path":"one.txt","kind":"file","size":2,"url":"SERVER/err"}]`),
		at + "0/3/files":                           data(`[{"path":"err.txt","kind":"file","size":2,"url":"SERVER/err"},{"path":"sub/link","kind":"link","size":0,"url":null},{"path":"big","kind":"file","size":99,"url":null}]`),
		at + "1/1/files":                           data(`[{"path":"../err.txt","kind":"file","size":2,"url":"SERVER/err"}]`),
		at + "0/1/files":                           data(`[{"path":"err.txt","kind":"file","size":3,"url":"SERVER/err"}]`),
		"GET /err":                                 "no",
	})
	for name, tt := range map[string]struct {
		command string
		prints  string
		tells   string
		there   string
	}{
		"all that is kept":           {"run_1", "b     9        2        2.0 KB  2099-01-01", "", ""},
		"items by their IDs":         {"run_1", "\na/1   1 ", "", ""},
		"of the newest run":          {"", "b     9        2        2.0 KB  2099-01-01", "", ""},
		"nothing":                    {"run_2", "", "", ""},
		"of the newest attempt":      {"run_1 a/0", "err.txt   file  2 B   yes\nsub/link  link  0 B   –\nbig       file  99 B  –\n", "", ""},
		"of an item by its number":   {"run_1 a --shard 0", "err.txt   file  2 B   yes\n", "", ""},
		"of an item as the app says": {"run_1 a[0]", "err.txt   file  2 B   yes\n", "", ""},
		"of the only item":           {"run_3 c", "one.txt  file  2 B   yes\n", "", ""},
		"of one of several items":    {"run_1 a", "", "folders of several items are kept: name one of a/0, a/1", ""},
		"of two items":               {"run_1 a/1 --shard 0", "", "a/1 and --shard 0 are different items", ""},
		"of no item":                 {"run_1 a/x", "", `"a/x" is not the ID of a step`, ""},
		"fetched, what has bytes":    {"run_1 a/0 --to TO", "TO/err.txt\n", "", "err.txt"},
		"of an item, out of bounds":  {"run_1 a/1 --to TO", "", `".." is not a valid file name here`, ""},
		"of an attempt, cut off":     {"run_1 a/0 --attempt 1 --to TO", "", "err.txt: the storage closed the connection after 2 of 3 bytes", ".err.txt.3.part"},
		"of an attempt that is gone": {"run_1 a/0 --attempt 7", "", "no folder of this attempt is kept, but of a/0, a/1", ""},
		"of a step without any":      {"run_1 c", "", "no folder of step c is kept: see millrace runs kept run_1", ""},
		"of an item without any":     {"run_1 a --shard 2", "", "no folder of this attempt is kept, but of a/0, a/1", ""},
		"fetched, of no step":        {"run_1 --to TO", "", "--to, --shard and --attempt need the ID of a step", ""},
		"an attempt of no step":      {"run_1 --attempt 1", "", "need the ID of a step", ""},
	} {
		to := t.TempDir()
		d, status := s.types(t, append([]string{"runs", "kept"}, strings.Fields(strings.ReplaceAll(tt.command, "TO", to))...)...)
		if (status == 0) != (tt.tells == "") || !strings.Contains(d.Printed.String(), strings.ReplaceAll(tt.prints, "TO", to)) || !strings.Contains(d.Errors.String(), tt.tells) {
			t.Errorf("%s: %d, printed %q, told %q", name, status, d.Printed, d.Errors)
		}
		if got := files(t, to); got != tt.there {
			t.Errorf("%s: there are %q", name, got)
		}
	}
}

func TestACrateIsThereWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	whole := archive(t)
	for name, tt := range map[string]struct {
		answer, there string
		force         bool
		left, tells   string
	}{
		"whole":            {whole, "", false, whole, ""},
		"half":             {whole[:len(whole)/2], "", false, "", "the download of the archive was interrupted, try again"},
		"empty":            {"", "", false, "", "the download of the archive was interrupted, try again"},
		"refused":          {`403 {"success":false,"error":"not yours","code":"forbidden","requestId":"r"}`, "", false, "", "not yours"},
		"one is there":     {whole, "mine", false, "mine", "already exists: replace it with --force"},
		"one is replaced":  {whole, "mine", true, whole, ""},
		"by half of one":   {whole[:20], "mine", true, "mine", "the download of the archive was interrupted"},
		"by nothing":       {`500 {"success":false,"error":"broken","code":"internal","requestId":"r"}`, "mine", true, "mine", "broken"},
		"one has no place": {whole, "", false, "", "no such file or directory"},
	} {
		s, folder := serve(t, map[string]string{"GET /api/runs/run_1/crate": tt.answer}), t.TempDir()
		to := filepath.Join(folder, "c.zip")
		if tt.there != "" {
			if err := os.WriteFile(to, []byte(tt.there), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if name == "one has no place" {
			to = filepath.Join(folder, "none", "c.zip")
		}
		args := []string{"runs", "crate", "run_1", "--to", to}
		if tt.force {
			args = append(args, "--force")
		}
		d, status := s.types(t, args...)
		if (status == 0) != (tt.tells == "") || !strings.Contains(d.Errors.String(), tt.tells) || (d.Printed.String() == to+"\n") != (tt.tells == "") {
			t.Errorf("%s: %d, printed %q, told %q", name, status, d.Printed, d.Errors)
		}
		text, _ := os.ReadFile(to)
		if string(text) != tt.left || files(t, folder) != map[bool]string{true: "c.zip", false: ""}[tt.left != ""] {
			t.Errorf("%s: there are %q with %d bytes", name, files(t, folder), len(text))
		}
	}
}

// A step is fetched with what it was given, checked, and with what was installed for it.
func TestAStepIsFetchedToBeDoneAgain(t *testing.T) {
	t.Parallel()
	recipe := func(more string) string {
		return data(`{"attempt":2,"command":"true","interpreter":"sh","folder":"/x","image":null,"env":{},"lists":{},` + more + `}`)
	}
	file := func(path, sha256 string) string {
		return `"files":[{"path":"` + path + `","size":2,"sha256":` + sha256 + `,"url":"SERVER/x"}]`
	}
	hash := quoted(sum("ax"))
	const at = "GET /api/runs/run_1/nodes/"
	s := serve(t, map[string]string{
		at + "a/recipe?shard=0":     recipe(file("in/reads/x", hash)),
		at + "a/recipe?shard=3":     recipe(file("in/reads/three", "null")),
		at + "bad/recipe?shard=0":   recipe(file("../x", hash)),
		at + "other/recipe?shard=0": recipe(file("in/x", quoted(sum("other")))),
		at + "py/recipe?shard=0":    recipe(`"environment":true,"files":[]`),
		at + "new/recipe?shard=0":   recipe(`"environment":true,"files":[]`),
		at + "py/environment":       data(`{"nodeId":"py","state":"ready","python":"3.12","lock":"numpy==2.0\n","log":""}`),
		at + "new/environment":      data(`{"nodeId":"new","state":"building","lock":null,"log":""}`),
		"GET /x":                    "ax",
	})
	for name, tt := range map[string]struct{ args, there, tells string }{
		"with a file":                       {"a", "command in/reads/x run.sh start.sh", ""},
		"of an item, whose hash nobody has": {"a/3", "command in/reads/three run.sh start.sh", ""},
		"of an item by its number":          {"a --shard 3", "command in/reads/three run.sh start.sh", ""},
		"with software":                     {"py", "command environment.lock install.py run.sh start.sh", ""},
		"with software nobody knows yet":    {"new", "", "the packages installed for the step aren't known: its environment is building"},
		"with a file that leads out":        {"bad", "", `".." is not a valid file name here`},
		"with a file that is another":       {"other", "", "in/x: was damaged in transfer"},
		"of no step":                        {"gone", "", "no such run"},
	} {
		to := filepath.Join(t.TempDir(), "to")
		d, status := s.types(t, append([]string{"runs", "reproduce", "run_1", "--to", to}, strings.Fields(tt.args)...)...)
		if (status == 0) != (tt.tells == "") || !strings.Contains(d.Errors.String(), tt.tells) || files(t, to) != tt.there || (d.Printed.String() == to+"/run.sh\n") != (tt.tells == "") {
			t.Errorf("%s: %d, printed %q, told %q, there are %q", name, status, d.Printed, d.Errors, files(t, to))
		}
	}
	to := t.TempDir()
	if err := os.WriteFile(filepath.Join(to, "run.sh"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, status := s.types(t, "runs", "reproduce", "run_1", "py", "--to", to); status != 1 || !strings.Contains(d.Errors.String(), "run.sh already exists and differs") {
		t.Errorf("over a script of one's own: %d, %q", status, d.Errors)
	}
	if d, status := s.types(t, "runs", "reproduce", "run_1", "py", "--to", to, "--force"); status != 0 || files(t, to) != "command environment.lock install.py run.sh start.sh" {
		t.Errorf("by force: %d, %q", status, d.Errors)
	}
}
