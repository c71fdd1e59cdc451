package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/cli/clitest"
)

// program has every kind of command and flag that completion has to tell apart.
type program struct {
	Runs struct {
		List struct {
			Status string `help:"x"`
			Secret string `hidden:""`
		} `cmd:"" default:"withargs"`
		View    struct{ Deep bool } `cmd:"" aliases:"show"`
		Outputs struct {
			Download struct {
				Name string
				Run  string `arg:"" optional:""`
			} `cmd:""`
		} `cmd:""`
		Internal struct{} `cmd:"" hidden:""`
	} `cmd:"" aliases:"run,r"`
	Rotate     struct{ Days int } `cmd:""`
	Hidden     struct{}           `cmd:"" hidden:""`
	Completion completionCommand  `cmd:""`
	Verbose    bool
}

func TestWhatMayComeNext(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"":                            "runs rotate completion",
		"''":                          "runs rotate completion",
		"r":                           "runs rotate",
		"ru":                          "runs",
		"x":                           "",
		"Ru":                          "",
		"hid":                         "", // a hidden command
		"runs ''":                     "list view outputs",
		"runs in":                     "",
		"run v":                       "view", // by another name
		"r sh":                        "",     // which is not offered itself
		"runs outputs ''":             "download",
		"runs outputs download ''":    "",
		"runs outputs download --":    "--help --verbose --name",
		"runs outputs download x --n": "--name",
		"runs show --":                "--help --verbose --deep",
		"runs --":                     "--help --verbose --status", // of the command that is meant
		"runs --s":                    "--status",                  // not the hidden one
		"runs list --":                "--help --verbose --status",
		"rotate --d":                  "--days",
		"rotate -":                    "--help --verbose --days",
		"--v":                         "--verbose",
		"--verbose ru":                "runs",
		"runs --status failed v":      "view",
		"completion ''":               "bash zsh fish",
		"completion z":                "zsh",
		"completion w":                "", // what the scripts ask with
		"hidden --":                   "--help --verbose",
	} {
		args := []string{"completion", "words", "--"}
		for word := range strings.FieldsSeq(typed) {
			args = append(args, strings.Trim(word, "'"))
		}
		d := clitest.New(t)
		status := d.Type(&program{}, "", args...)
		got, wanted := strings.Fields(d.Printed.String()), strings.Fields(want)
		slices.Sort(got)
		slices.Sort(wanted)
		if status != 0 || !slices.Equal(got, wanted) || d.Errors.Len() > 0 {
			t.Errorf("%q: %d, %q, told %q", typed, status, got, d.Errors)
		}
	}
	d := clitest.New(t)
	if status := d.Type(&program{}, "", "completion", "words"); status != 0 || !strings.HasPrefix(d.Printed.String(), "runs\n") {
		t.Errorf("nothing was typed: %d, %q", status, d.Printed)
	}
	if status := d.Type(&program{}, "", "completion", "tcsh"); status != 1 || !strings.Contains(d.Errors.String(), "must be one of") {
		t.Errorf("another shell: %d, %q", status, d.Errors)
	}
}

// The script passes on what was typed, word by word, and takes lines as they are.
func TestTheScriptForBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	d := clitest.New(t)
	if status := d.Type(&program{}, "", "completion", "bash"); status != 0 {
		t.Fatalf("%d, %q", status, d.Errors)
	}
	bin := t.TempDir()
	program := "#!/bin/sh\nprintf '<%s>' \"$@\" > " + filepath.Join(bin, "asked") + "\necho 'two words'\necho told >&2\n"
	if err := os.WriteFile(filepath.Join(bin, "millrace"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{
		`(millrace ru)`:                  `<completion><words><--><ru>`,
		`(millrace runs "")`:             `<completion><words><--><runs><>`,
		`(millrace run "a b" --na rest)`: `<completion><words><--><run><a b><--na>`, // up to where the person is
	} {
		at := "$((${#COMP_WORDS[@]}-1))"
		if strings.Contains(typed, "rest") {
			at = "$((${#COMP_WORDS[@]}-2))"
		}
		script := d.Printed.String() + "COMP_WORDS=" + typed + "; COMP_CWORD=" + at + "; _millrace; printf '[%s]' \"${COMPREPLY[@]}\"\ncomplete -p millrace\n"
		c := exec.CommandContext(t.Context(), bash, "--norc", "--noprofile", "-c", script)
		c.Env, c.Dir = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, bin
		out, err := c.CombinedOutput()
		if err != nil || string(out) != "[two words]complete -o default -F _millrace millrace\n" {
			t.Errorf("%s: %q, %v", typed, out, err)
		}
		if asked, err := os.ReadFile(filepath.Join(bin, "asked")); err != nil || string(asked) != want {
			t.Errorf("%s: it asks %s, %v", typed, asked, err)
		}
	}
}
