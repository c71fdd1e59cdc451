package environments

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/oneshot"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/relay"
	"github.com/millrace/millrace/internal/engine/executor/treecache"
)

// step is one thing that a tool does in a sandbox.
type step struct {
	files  map[string]string // that it reads
	env    map[string]string
	script string            // our own words alone; what people wrote is in files and env
	lock   *environment.Lock // that it installs; nil: it may have anything that the index has
	// stage puts more where the sandbox finds it; nil: there is no more.
	stage func(ctx context.Context, inputs string) error
	tool  string // a folder that is shown as an environment; then there is no network at all
}

const (
	uvProgram   = "uv"
	shimProgram = "relay"
	indexSocket = "index"

	indexURL = "http://" + relay.Address + "/simple/"
)

// uvSettings keep uv to what it was given: no settings of the machine, no
// interpreters from elsewhere, no index but ours.
var uvSettings = map[string]string{
	"UV_NO_CONFIG": "1", "UV_NO_ENV_FILE": "1", "UV_PYTHON_DOWNLOADS": "never", "UV_PYTHON_PREFERENCE": "only-system",
	"UV_DEFAULT_INDEX": indexURL, "UV_INDEX_STRATEGY": "first-index", "UV_LINK_MODE": "hardlink", "UV_HTTP_TIMEOUT": "120",
	"UV_NO_PROGRESS": "1", "NO_COLOR": "1", "LC_ALL": "C.UTF-8",
}

// run runs a step in a sandbox that reaches the index and nothing else, and
// hands over its working folder.
func (b *build) run(ctx context.Context, st step, done func(work string) error) error {
	if err := b.awaitSpace(ctx); err != nil {
		return err
	}
	s := b.store
	ctx, cancel := treecache.WhileSpace(ctx, s.Disk)
	defer cancel()
	var stop func()
	command := oneshot.Command{
		Prepare: func(spec *executor.Spec, seen executor.Places) (err error) {
			spec.MemoryBytes, spec.DiskBytes, spec.LogBytes = buildBytes, 2*s.MaxOne, 256<<10 // the cache counts, too
			spec.Timeout, spec.AbandonAfter = s.Time, s.Time+10*oneshot.Grace
			spec.Env = maps.Clone(uvSettings)
			maps.Copy(spec.Env, st.env)
			maps.Copy(spec.Env, s.added.env)
			spec.Env["INPUTS"], spec.Env["UV"] = seen.Inputs, path.Join(seen.Inputs, uvProgram)
			spec.Env["UV_CACHE_DIR"] = path.Join(seen.Work, ".cache")
			if err := errors.Join(stageFiles(spec.Places().Inputs, st.files), stageFiles(spec.Places().Inputs, s.added.files)); err != nil {
				return err
			}
			spec.Command = "set -eu\n" + st.script
			if spec.Environment = st.tool; st.stage != nil {
				limited, cancel := context.WithTimeout(ctx, s.Time)
				defer cancel()
				if err := st.stage(limited, spec.Places().Inputs); err != nil {
					return err
				}
			}
			if st.tool != "" {
				return nil
			}
			packages, err := s.packagesFor(ctx, st.lock, func(why string) { b.unfetched.Store(&why) })
			if err != nil {
				return err
			}
			program, err := s.stagePrograms(spec.Places().Inputs)
			if err != nil {
				return err
			}
			relaying := program.Relay(path.Join(seen.Inputs, shimProgram), path.Join(seen.Inputs, indexSocket))
			spec.Env["RELAY"] = strings.Join(relaying, " ") // without spaces, all our own
			stop, err = servePackages(spec.Places().Inputs, packages)
			return err
		},
		Log: b.follow(ctx),
	}
	err := s.runner.Run(ctx, command, func(spec executor.Spec, end executor.Status) error {
		if err := b.outcome(end); err != nil {
			return err
		}
		return done(spec.Work())
	})
	if stop != nil {
		stop()
	}
	if err != nil && errors.Is(context.Cause(ctx), treecache.ErrNoSpace) {
		return treecache.ErrNoSpace // rather than what it looked like from inside
	}
	return err
}

// awaitSpace waits until a build may take more of the disk.
func (b *build) awaitSpace(ctx context.Context) error {
	if b.store.Disk != nil && b.store.Disk.Low() {
		b.say(ctx, "Waiting for space on the server's disk")
	}
	return treecache.AwaitSpace(ctx, b.store.Disk)
}

// stageFiles puts the files of a step where its sandbox finds them.
func stageFiles(inputs string, files map[string]string) (err error) {
	for name, text := range files {
		file := filepath.Join(inputs, name)
		err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600), os.Chmod(file, 0o644)) //nolint:gosec // another user reads it
	}
	return err
}

// stagePrograms puts what speaks to the index where a sandbox finds it.
func (s *Store) stagePrograms(inputs string) (shim.Program, error) {
	uv, err := s.uv()
	if err != nil {
		return nil, err
	}
	program, err := local.FindShim("", s.Builds)
	if err != nil {
		return nil, err
	}
	return program, errors.Join(copyProgram(uv, filepath.Join(inputs, uvProgram)), copyProgram(program[0], filepath.Join(inputs, shimProgram)))
}

// copyProgram copies what is to be executed. Nothing is started meanwhile: until
// a new process executes its own program it has our open files, and a program that
// anybody can write to cannot be executed.
func copyProgram(from, to string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return copyFile(from, to, 0o755)
}

// servePackages answers on a socket in a folder, until stop. The path of the folder may
// be too long for the address of a socket.
func servePackages(folder string, packages http.Handler) (stop func(), err error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + indexSocket})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)                                                   // it goes with its folder
	if err := os.Chmod(filepath.Join(folder, indexSocket), 0o666); err != nil { //nolint:gosec // the sandbox's user connects to it
		return nil, errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: packages, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: nil}
	go func() { _ = server.Serve(l) }()
	return func() { _ = server.Close() }, nil
}
