package local

import (
	"bytes"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
)

// box is what stands around a command.
type box struct {
	sandbox            Sandbox
	program            string // bubblewrap
	etc                string // what is shown as /etc
	stage              string // where the shim of a root server binds what the task may see; empty for a plain user
	firstUID           uint32
	noNestedNamespaces bool // the sandbox can forbid namespaces inside
	shim               shim.Program
	filter             []byte
}

const (
	workdir = shim.WorkPath
	inputs  = "/inputs"

	environmentFolder = "/environment"

	// commandFile is where a command is that has to be a file, without a sandbox.
	commandFile = "command"
)

func newBox(c Config, folder string, s shim.Program, idle bool) (box, error) {
	if c.Sandbox == None {
		return box{sandbox: None}, nil
	}
	b := box{sandbox: Bubblewrap, program: c.Program, shim: s, filter: filter()}
	var err error
	if b.program == "" {
		b.program = "bwrap"
	}
	if b.program, err = exec.LookPath(b.program); err != nil {
		return b, err
	}
	help, err := exec.Command(b.program, "--help").CombinedOutput()
	if err != nil {
		return b, err
	}
	b.noNestedNamespaces = bytes.Contains(help, []byte("--disable-userns"))
	if b.etc, err = sharedEtc(folder, idle); err != nil {
		return b, err
	}
	if os.Geteuid() != 0 {
		return b, nil
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(folder))
	b.firstUID = firstUser + sum.Sum32()%50_000*userBlock
	b.stage, err = findStage(folder)
	return b, err
}

// findStage is a folder that every system has and that may be hidden from the
// task's own mount namespace.
func findStage(folder string) (string, error) {
	for _, dir := range []string{"/mnt", "/media", "/srv", "/home"} {
		info, err := os.Lstat(dir)
		if err == nil && info.IsDir() && !strings.HasPrefix(folder+"/", dir+"/") {
			return dir, nil
		}
	}
	return "", errors.New("none of /mnt, /media, /srv and /home is free to be used as a mount point")
}

func (b box) isSandbox() bool { return b.sandbox == Bubblewrap }

func (b box) taskPlaces() executor.Places {
	if b.isSandbox() {
		return executor.Places{Work: workdir, Inputs: inputs, Temp: "/tmp", Environment: environmentFolder}
	}
	return executor.Places{}
}

// fill says what is run, and as whom.
func (b box) fill(l *shim.Launch, s executor.Spec, slot int, devices []int) error {
	env := environment(s, devices)
	if !b.isSandbox() {
		return b.bare(l, s, env)
	}
	if b.stage != "" {
		l.User = b.user(slot)
		if err := handOver(s.Dir, int(l.User)); err != nil {
			return err
		}
	}
	v := view{box: b, spec: s, launch: l}
	l.Dir, l.Env, l.Argv = "/", shim.OwnEnv, append([]string{b.program, "--args", strconv.Itoa(shim.OptionsFD), "--"}, b.shim.Init(*l)...)
	l.Sandbox = &shim.Sandbox{Options: v.options(devices), Filter: b.filter}
	l.Sandbox.Command, l.Sandbox.Script = sandboxedCommand(s, env)
	l.Sandbox.Env = command.Variables(env)
	return nil
}

// user is whose processes those of a slot are, where the server is root.
func (b box) user(slot int) uint32 { return b.firstUID + uint32(slot)%userBlock }

// bare runs the command as the server's own user, without a sandbox.
func (b box) bare(l *shim.Launch, s executor.Spec, env map[string]string) error {
	temp := s.Places().Temp
	for _, name := range []string{"HOME", "TMPDIR"} {
		if s.Env[name] == "" {
			env[name] = temp
		}
	}
	argv, err := bareCommand(s, env)
	if err != nil {
		return err
	}
	l.Argv, l.Env, l.Dir = argv, command.Variables(env), s.Work()
	l.NotEnforced = append(l.NotEnforced, "isolation")
	if !s.Network {
		l.NotEnforced = append(l.NotEnforced, "network")
	}
	return nil
}

func bareCommand(s executor.Spec, env map[string]string) ([]string, error) {
	if argv, ok := program(s, env); ok {
		env["PWD"] = s.Work() // as a shell does
		return argv, nil
	}
	file := filepath.Join(s.Dir, commandFile)
	argv, script := command.Line(s, file)
	if script {
		if err := os.WriteFile(file, []byte(s.Command), 0o600); err != nil {
			return nil, err
		}
	}
	var err error
	argv[0], err = lookPath(argv[0], s, env)
	return argv, err
}

// sandboxedCommand is what the first process of a sandbox starts, and what it
// has to put into a file for it.
func sandboxedCommand(s executor.Spec, env map[string]string) (argv []string, script string) {
	if argv, ok := program(s, env); ok && s.Root == "" && sameInSandbox(argv[0], env["PATH"]) {
		env["PWD"] = workdir // as a shell does
		return argv, ""
	}
	argv, isScript := command.Line(s, shim.ScriptPath)
	if isScript {
		script = s.Command
	}
	return argv, script
}

// lookPath searches the command's path from where it works, not the server's.
func lookPath(name string, s executor.Spec, env map[string]string) (string, error) {
	return firstprocess.LookPath(name, []string{"PATH=" + env["PATH"]}, s.Work())
}

// environment is all that the command gets.
func environment(s executor.Spec, devices []int) map[string]string {
	env := command.Environment(s)
	if _, given := s.Env["CUDA_VISIBLE_DEVICES"]; s.GPU > 0 && !given {
		list := make([]string, len(devices))
		for i, device := range devices {
			list[i] = strconv.Itoa(device)
		}
		env["CUDA_VISIBLE_DEVICES"] = strings.Join(list, ",")
	}
	return env
}

// handOver makes the task's user the owner of what it may change. Files with a
// second name belong to somebody else, such as the object store.
func handOver(dir string, user int) error {
	for _, folder := range []string{shim.WorkFolder, shim.TempFolder} {
		err := filepath.WalkDir(filepath.Join(dir, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if stat, ok := info.Sys().(*syscall.Stat_t); ok && !d.IsDir() && stat.Nlink > 1 {
				return nil
			}
			return os.Lchown(path, user, user)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
