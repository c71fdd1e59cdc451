package tool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
)

const (
	inputFile  = "file"
	outFile    = "out"
	stderrFile = "said"
)

// stageAll puts the files where the program will find them, and nothing else.
func stageAll(files map[string]string, folder string) error {
	for name, file := range files {
		if err := stage(file, folder, name); err != nil {
			return err
		}
	}
	return nil
}

// stage makes the file readable in a folder that is there. The folders above are
// closed to others.
func stage(file, folder, name string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	to := filepath.Join(folder, name)
	if err := os.Link(file, to); err != nil {
		if err := copyFile(file, to); err != nil {
			return err
		}
	}
	return os.Chmod(to, 0o644|info.Mode()&0o111)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// script sets the limits that are a process's own, and becomes the program. At
// the end of its time the program gets a signal that differs from the one of a
// program that ran out of memory; it cannot start another.
func script(inputs string, l Limits, files map[string]string, argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		if name, ok := strings.CutPrefix(a, "{"); ok && files[strings.TrimSuffix(name, "}")] != "" {
			a = path.Join(inputs, strings.TrimSuffix(name, "}"))
		}
		words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	seconds, alone := int(l.CPU.Seconds()), "ulimit -u 1 2>/dev/null || ulimit -p 1 2>/dev/null\n"
	if l.Threads {
		alone = ""
	}
	return fmt.Sprintf("ulimit -c 0; ulimit -St %d && ulimit -Ht %d || exit 126\n", seconds, seconds+1) + alone +
		fmt.Sprintf("exec %s >%s 2>%s </dev/null", strings.Join(words, " "), outFile, stderrFile)
}

// readOutput reads what the program left, as far as it is wanted.
func readOutput(work string, read func(io.Reader) error) (complaint string, err error) {
	if f, err := outputs.Open(work, outFile); err == nil { // else whatever stands there instead is not what was printed
		err := read(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	f, err := outputs.Open(work, stderrFile)
	if err != nil {
		return "", nil //nolint:nilerr // the same
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxStderr))
	return string(text), err
}
