package drivertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/sizetest"
)

// RunReal holds a driver to the promises that only real processes can keep.
func RunReal(t *testing.T, make Maker) {
	for name, promise := range map[string]func(*testing.T, *Fixture){
		"a task that needs too much memory is told apart": memory,
		"what a task uses is known while it runs":         usage,
		"thousands of outputs are hashed":                 manyOutputs,
		"a large output is hashed":                        largeOutput,
		"a large input arrives whole":                     largeInput,
		"a task that nobody renews ends":                  abandoned,
		"a renewed task goes on":                          renewed,
		"a program that is not there is named":            noProgram,
		"a command may be longer than a command line":     longCommand,
		"a long log keeps its beginning and its end":      func(t *testing.T, b *Fixture) { longLog(t, b, make) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			promise(t, NewFixture(t, make))
		})
	}
}

// longLog prints more than is kept, with a secret in between, while one driver leaves
// and the next comes.
func longLog(t *testing.T, b *Fixture, make Maker) {
	const value, lines, kept = "correct-horse-battery-staple", 40_000, 256 << 10
	s := b.Spec(t, fmt.Sprintf(`i=0; while [ $i -lt %[1]d ]; do echo "line $i $SECRET_A"; i=$((i+1)); done
while [ ! -e go ]; do sleep 0.01; done; echo the end; exit 3`, lines))
	s.LogBytes, s.Env, s.Secrets = kept, map[string]string{"SECRET_A": value}, []string{value}
	var whole strings.Builder
	for i := range lines {
		fmt.Fprintf(&whole, "line %d ***\n", i)
	}
	whole.WriteString("the end\n")
	h := b.Submit(t, s)
	Eventually(t, func() bool { return len(b.Log(t, h, 0)) >= kept/2 }, func() string { return b.Log(t, h, 0) })
	b.Leave()
	b.Subject = make(t, b.Folder)
	b.LetGo(t, s)
	seen := b.End(t, h)
	b.want(t, seen, executor.ExitedNonZero)
	if seen.Exit.LogBytes != int64(whole.Len()) {
		t.Errorf("the record counts %d bytes of %d", seen.Exit.LogBytes, whole.Len())
	}
	search(t, b.Folder, "horse-battery")
	head := b.Log(t, h, 0)
	if len(head) < kept/2 || !strings.HasPrefix(whole.String(), head) {
		t.Fatalf("the beginning has %d bytes", len(head))
	}
	for _, offset := range []int64{int64(len(head)), int64(len(head)) + 1000, int64(whole.Len()) - 100} {
		log, err := b.Logs(t.Context(), h, offset)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(log)
		if err := errors.Join(err, log.Close()); err != nil || log.Offset < offset || log.Size != int64(whole.Len()) || whole.String()[log.Offset:] != string(text) {
			t.Errorf("from %d: %d bytes from %d of %d, %v", offset, len(text), log.Offset, log.Size, err)
		}
		if total := len(head) + len(text); total > kept {
			t.Errorf("%d bytes are kept", total)
		}
	}
}

func memory(t *testing.T, b *Fixture) {
	s := b.Spec(t, `held=$(head -c 120000000 /dev/zero | tr '\0' x); sleep 60; echo ${#held}`)
	s.MemoryBytes = 100 << 20
	b.want(t, b.Do(t, s), executor.OutOfMemory)
}

func usage(t *testing.T, b *Fixture) {
	meter, ok := b.Driver.(executor.Meter)
	if !ok {
		t.Fatal("the driver measures nothing")
	}
	s := b.Spec(t, "while [ ! -e go ]; do :; done")
	h := b.Submit(t, s)
	Eventually(t, func() bool {
		u, err := meter.Usage(t.Context(), h)
		return err == nil && u.CPU > 0 && u.Memory > 0
	}, func() string { return "nothing was measured" })
	b.LetGo(t, s)
	seen := b.End(t, h)
	b.want(t, seen, executor.ExitedZero)
	if seen.Exit.MaxRSS == 0 || seen.Exit.CPUTime == 0 {
		t.Errorf("the record knows of %d bytes and %s", seen.Exit.MaxRSS, seen.Exit.CPUTime)
	}
}

func manyOutputs(t *testing.T, b *Fixture) {
	count := sizetest.Pick(1000, 5000)
	s := b.Spec(t, fmt.Sprintf("mkdir p; cd p; for i in {1..%d}; do echo $i > $i.txt; done", count))
	s.Outputs = []executor.OutputPattern{{Port: "all", Path: "p/*.txt", Many: true}}
	seen := b.Do(t, s)
	b.want(t, seen, executor.ExitedZero)
	if n := len(seen.Exit.Outputs); n != count {
		t.Fatalf("%d outputs", n)
	}
	for _, o := range seen.Exit.Outputs {
		if number := strings.TrimSuffix(strings.TrimPrefix(o.Path, "p/"), ".txt"); o.SHA256 != sum(number+"\n") {
			t.Fatalf("%s has another hash", o.Path)
		}
	}
}

// large is the size of a large file of zeros, and its SHA-256: 2 GB, where a
// number of 32 bits ends, in make test-all.
func large() (size int64, hash string) {
	size = int64(sizetest.Pick(100, 2048)) << 20
	h, zeros := sha256.New(), make([]byte, 1<<20)
	for range size >> 20 {
		h.Write(zeros)
	}
	return size, hex.EncodeToString(h.Sum(nil))
}

func largeOutput(t *testing.T, b *Fixture) {
	if testing.Short() {
		t.Skip("it hashes hundreds of MB")
	}
	size, hash := large()
	s := b.Spec(t, fmt.Sprintf("truncate -s %d large", size))
	s.Outputs = []executor.OutputPattern{{Port: "large", Path: "large"}}
	seen := b.Do(t, s)
	b.want(t, seen, executor.ExitedZero)
	if o := seen.Exit.Outputs[0]; o.Size != size || o.SHA256 != hash {
		t.Errorf("it is %+v", o)
	}
}

// largeInput is read where the command finds it, and cannot have been cut short.
func largeInput(t *testing.T, b *Fixture) {
	if testing.Short() {
		t.Skip("it moves hundreds of MB")
	}
	size, hash := large()
	caps, err := b.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := b.Spec(t, "")
	s.Staged, s.Inputs = true, []executor.Input{{Path: "reads/0/large", Object: "large"}}
	inputs := caps.TaskPlaces.Inputs
	if inputs == "" {
		inputs = s.Places().Inputs
	}
	s.Command = fmt.Sprintf(`sha256sum < "%s/reads/0/large"`, inputs)
	fetch := func(_ context.Context, _, file string) error {
		return errors.Join(os.WriteFile(file, nil, 0o644), os.Truncate(file, size))
	}
	if b.Stage != nil {
		err = b.Stage(t, s, fetch)
	} else {
		err = folder.New(b.Folder, b.Driver).Stage(t.Context(), s, fetch)
	}
	if err != nil {
		t.Fatal(err)
	}
	h := b.Submit(t, s)
	b.want(t, b.End(t, h), executor.ExitedZero)
	if log := b.Log(t, h, 0); log != hash+"  -\n" {
		t.Errorf("it is %s", log)
	}
}

func abandoned(t *testing.T, b *Fixture) {
	if testing.Short() {
		t.Skip("it waits for a lease to end")
	}
	s := b.Spec(t, "sleep 600")
	s.AbandonAfter = 10 * time.Second
	h := b.Submit(t, s)
	var over Lease
	over.RunOut()
	b.want(t, b.Await(t, h, func(seen executor.Status) bool {
		if err := b.Renew(t.Context(), executor.Renewal{Handle: h, Permit: &over}); err != nil {
			t.Fatal(err)
		}
		return seen.Phase.Final()
	}), executor.Abandoned)
}

func renewed(t *testing.T, b *Fixture) {
	if testing.Short() {
		t.Skip("it outlasts a lease")
	}
	s := b.Spec(t, "sleep 20")
	s.AbandonAfter = 10 * time.Second
	h := b.Submit(t, s)
	b.want(t, b.Await(t, h, func(seen executor.Status) bool {
		if err := b.Renew(t.Context(), executor.Renewal{Handle: h, Permit: executor.NoRun}); err != nil {
			t.Fatal(err)
		}
		return seen.Phase.Final()
	}), executor.ExitedZero)
}

func noProgram(t *testing.T, b *Fixture) {
	s := b.Spec(t, "1 + 1")
	s.Interpreter = "no-such-interpreter"
	seen := b.Do(t, s)
	b.want(t, seen, executor.StartFailed)
	if !seen.Exit.NoProgram || seen.Detail == "" {
		t.Errorf("it says %q, %+v", seen.Detail, seen.Exit)
	}
}

func longCommand(t *testing.T, b *Fixture) {
	s := b.Spec(t, fmt.Sprintf("echo begin\n# %s\necho end", strings.Repeat("long ", 100_000)))
	h := b.Submit(t, s)
	b.want(t, b.End(t, h), executor.ExitedZero)
	if log := b.Log(t, h, 0); log != "begin\nend\n" {
		t.Errorf("the log is %q", log)
	}
}

// StageIn puts the inputs of attempts where a server keeps objects.
func StageIn(objects interface {
	Upload(ctx context.Context, key string, r io.Reader, size int64) error
},
) func(t *testing.T, s executor.Spec, fetch executor.Fetch) error {
	return func(t *testing.T, s executor.Spec, fetch executor.Fetch) error {
		for _, in := range s.Inputs {
			file := filepath.Join(t.TempDir(), "input")
			if err := fetch(t.Context(), in.Object, file); err != nil {
				return err
			}
			f, err := os.Open(file)
			if err != nil {
				return err
			}
			defer f.Close()
			info, err := f.Stat()
			if err == nil {
				err = objects.Upload(t.Context(), in.Object, f, info.Size())
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}
