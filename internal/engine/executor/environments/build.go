package environments

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
	"github.com/millrace/millrace/internal/environments"
	"github.com/millrace/millrace/internal/panics"
)

// build is one that is under way, and what people see of it.
type build struct {
	store  *Store
	team   ids.Team
	record environments.Build
	before string // the log of the step before
	saved  time.Time
	unseen bool // nothing of it is kept

	unfetched atomic.Pointer[string] // why the index could not answer; nil: it could
}

// build does one step of building what was asked for. A step that fails is the
// author's, or the index's, to mend: fault.KindUnavailable. Other errors are
// ours.
func (s *Store) build(ctx context.Context, team ids.Team, spec environment.Spec, do func(*build) error) error {
	b := &build{store: s, team: team}
	var err error
	b.record, err = s.Records.EnvironmentBuild(ctx, team, spec.Key())
	if err != nil && !fault.Is(err, fault.KindNotFound) {
		return err
	}
	if b.record.State == environments.Building {
		b.before = b.record.Log
	}
	b.record.Key, b.record.Spec, b.record.State, b.record.Error, b.record.Log = spec.Key(), spec.Canonical(), environments.Building, "", b.before
	if err := b.save(ctx); err != nil {
		return err
	}
	if problem := s.ProblemWith(spec); problem != "" {
		err = fault.Unavailable("%s", problem).WithCode("environment_failed")
	} else {
		err = panics.Catch(func() error { return do(b) })
	}
	if err != nil {
		b.record.State, b.record.Error = environments.Failed, err.Error()
		if ctx.Err() != nil || fault.KindOf(err) == fault.KindInternal {
			b.record.State, b.record.Error = environments.Waiting, ""
		}
	}
	return errors.Join(err, b.save(context.WithoutCancel(ctx)))
}

func (b *build) save(ctx context.Context) error {
	if b.unseen {
		return nil
	}
	b.record.UpdatedAt = b.store.Now()
	b.saved = b.record.UpdatedAt
	lock, err := b.store.Records.SaveEnvironmentBuild(ctx, b.team, b.record)
	if err == nil {
		b.record.Lock = lock
	}
	return err
}

// saveEvery is how far what people see of a log may be behind it.
const saveEvery = time.Second

// follow keeps the end of a log, for those who watch.
func (b *build) follow(ctx context.Context) func(io.Reader) {
	return func(r io.Reader) {
		text, err := io.ReadAll(r) // bounded by the driver
		if err != nil {
			return
		}
		log := b.before + strings.ToValidUTF8(strings.ReplaceAll(string(text), "\x00", ""), "�")
		if cut := len(log) - environments.MaxLog; cut > 0 {
			log = strings.ToValidUTF8(log[cut:], "")
		}
		changed := log != b.record.Log
		if b.record.Log = log; changed && b.store.Now().Sub(b.saved) >= saveEvery {
			if err := b.save(ctx); err != nil {
				b.store.Log.WarnContext(ctx, "cannot keep the log of a build", "error", err)
			}
		}
	}
}

// say adds a line of our own to the log.
func (b *build) say(ctx context.Context, line string) {
	b.before += line + "\n"
	b.record.Log = b.before
	if err := b.save(ctx); err != nil {
		b.store.Log.WarnContext(ctx, "cannot keep the log of a build", "error", err)
	}
}

// What lies in the folders of a build.
const (
	wishesFile  = "requirements.in"
	lockFile    = "lock.txt"
	pythonFile  = "python.txt"
	buildFolder = "environment"
)

// resolve has a tool choose, and keeps what it chose. Of two who did so at the same
// time, the first one's choice counts for both.
func (b *build) resolve(ctx context.Context) error {
	spec, err := environment.Read(b.record.Spec)
	if err != nil {
		return err
	}
	if len(spec.Conda) > 0 {
		return b.resolveConda(ctx, spec)
	}
	step := step{
		files: map[string]string{wishesFile: strings.Join(spec.Pip, "\n") + "\n"},
		env:   b.store.pythonSettings(spec.Python, ""),
		script: findPython + `"$python" -I -S -c 'import sys; print("%d.%d" % sys.version_info[:2])' >` + pythonFile + `
$RELAY "$UV" pip compile --python "$python" --only-binary :all: --generate-hashes --no-header --no-annotate --quiet --output-file ` + lockFile + ` "$INPUTS/` + wishesFile + `"`,
	}
	return b.run(ctx, step, func(work string) error {
		python, err := readText(work, pythonFile)
		if err != nil {
			return err
		}
		text, err := readText(work, lockFile)
		if err != nil {
			return err
		}
		return b.keepLock(ctx, "# python "+strings.TrimSpace(python)+"\n"+text)
	})
}

func (b *build) keepLock(ctx context.Context, text string) error {
	lock, err := environment.ParseLock(text)
	if err != nil {
		return failure("its lock %s", err)
	}
	b.record.Lock = lock.String()
	return b.save(ctx)
}

// install makes the folder of an environment. Only files whose hashes are in the
// lock get into it. Compiling reads them with an interpreter of the machine that
// has not been told of the folder, so that nothing in it is run.
func (b *build) install(ctx context.Context, lock environment.Lock, to, prefix string) (m meta, err error) {
	step := step{
		lock:  &lock,
		files: map[string]string{lockFile: lock.String()},
		env:   b.store.pythonSettings(lock.Python, prefix),
		script: findPython + `"$UV" venv --relocatable --quiet --python "$python" ` + buildFolder + `
$RELAY "$UV" pip install --python ` + buildFolder + ` --require-hashes --no-deps --only-binary :all: --requirement "$INPUTS/` + lockFile + `"
"$python" -I -S -m compileall -q -j 0 --invalidation-mode unchecked-hash ` + buildFolder + `/lib >/dev/null 2>&1 || true` + keepPython,
	}
	m.Lock = lock.String()
	err = b.run(ctx, step, func(work string) error {
		m.Bytes, err = freeze(filepath.Join(work, buildFolder), to, b.store.MaxOne)
		return err
	})
	return m, err
}

func readText(work, name string) (string, error) {
	f, err := outputs.Open(work, name)
	if err != nil {
		return "", failure("the tool left no result")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, environment.MaxLock+1))
	return string(text), err
}

// failure is what the author, or the index, has to mend.
func failure(format string, args ...any) error {
	return fault.Unavailable("the environment cannot be built: "+format, args...).WithCode("environment_failed")
}

// outcome says why a step has failed, in the words of whoever knows.
func (b *build) outcome(end executor.Status) error {
	switch end.Reason {
	case executor.ExitedZero:
		return nil
	case executor.TimedOut:
		return failure("it was not done within %s", b.store.Time)
	case executor.OutOfDisk:
		return failure("it takes more than %d MB", b.store.MaxOne>>20)
	case executor.OutOfMemory:
		return failure("building it takes more than %d GB of memory", buildBytes>>30)
	case executor.Signaled: // what it reads is a stranger's
		return failure("the tool crashed: %s", words(strings.TrimPrefix(b.record.Log, b.before)))
	case executor.StartFailed:
		return fault.Unavailable("the sandbox did not start: %s", end.Detail).WithCode("no_sandbox")
	case executor.ExitedNonZero:
		said := words(strings.TrimPrefix(b.record.Log, b.before))
		if why := b.unfetched.Load(); why != nil && strings.Contains(said, strconv.Itoa(http.StatusBadGateway)) {
			said = *why
		}
		return failure("%s", said)
	}
	return errors.New("a build ended as " + string(end.Reason) + ": " + end.Detail)
}

const maxWords = 4 << 10

// words are what the tool complained about, from where it began to.
func words(log string) string {
	for _, mark := range []string{"  × ", "error:"} {
		if i := strings.Index(log, mark); i >= 0 {
			log = log[i:]
		}
	}
	log = strings.ReplaceAll(log, indexURL, "the package index")
	if log = strings.TrimSpace(log); len(log) > maxWords {
		log = strings.ToValidUTF8(log[:maxWords], "") + "…"
	}
	if log == "" {
		return "the tool failed without a word"
	}
	return log
}
