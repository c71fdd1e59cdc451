// Package unpack reads what a Git host has packed. It runs as a program of its
// own, in a sandbox: a pack is a stranger's, compressed, and full of offsets. It
// writes the files of one commit as a tar archive, which whoever started it
// checks again.
package unpack

import (
	"archive/tar"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// The calls of the program, which are its first argument.
const (
	treeCall  = "git-tree"
	countCall = "git-count"
)

// Refused is the exit status of a program that has said why nobody can use what
// it was given; with any other failure it has broken.
const Refused = 3

// SubmodulesRecord holds, in the first header of the archive, which other
// repositories belong into which folders.
const SubmodulesRecord = "MILLRACE.submodules"

// Submodule is another repository in a folder of this one.
type Submodule struct {
	Path   string `json:"path"`
	URL    string `json:"url"` // empty: nobody says where it is
	Commit string `json:"commit"`
}

// Order is what to write of a pack.
type Order struct {
	Commit string   `json:"commit"`
	Path   string   `json:"path,omitempty"` // of the folder; empty: all
	Only   []string `json:"only,omitempty"` // files at the top of it; empty: all
	File   int64    `json:"file"`           // bytes of one file, at most
	Tree   int64    `json:"tree"`           // bytes of all
	Files  int      `json:"files"`          // how many files, folders and links
}

// TreeArguments are those of a program that writes a tree.
func TreeArguments(pack string, o Order) []string {
	text, _ := json.Marshal(o) // of strings and numbers
	return []string{treeCall, pack, string(text)}
}

// CountArguments are those of a program that counts commits.
func CountArguments(pack string) []string { return []string{countCall, pack} }

// IsCall reports whether the program was started to read a pack.
func IsCall(args []string) bool {
	return len(args) > 2 && (args[1] == treeCall || args[1] == countCall)
}

// Main is that program; it returns its exit status.
func Main(args []string, out, complaints io.Writer) int {
	w := bufio.NewWriterSize(out, 1<<20)
	err := run(args, w)
	if err == nil {
		err = w.Flush()
	}
	var refusal refused
	switch {
	case err == nil:
		return 0
	case errors.As(err, &refusal):
		fmt.Fprint(complaints, string(refusal))
		return Refused
	}
	fmt.Fprint(complaints, err)
	return 1
}

// refused is a sentence about a repository that nobody can use.
type refused string

func (r refused) Error() string { return string(r) }

func refusef(format string, args ...any) error { return refused(fmt.Sprintf(format, args...)) }

func run(args []string, w io.Writer) error {
	dir, name := path.Split(args[2])
	file, err := osfs.New(dir).Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if args[1] == countCall {
		var c commits
		if err := parse(file, &c); err != nil {
			return err
		}
		_, err = fmt.Fprint(w, int(c))
		return err
	}
	var o Order
	if err := json.Unmarshal([]byte(args[3]), &o); err != nil {
		return err
	}
	if err := checkSizes(file, o); err != nil {
		return err
	}
	index := &idxfile.Writer{}
	if err := parse(file, index); err != nil {
		return err
	}
	known, err := index.Index()
	if err != nil {
		return err
	}
	t := &tree{order: o, pack: packfile.NewPackfile(known, nil, file, 0), out: tar.NewWriter(w)}
	if err := t.write(); err != nil {
		return err
	}
	return t.out.Close()
}

// checkSizes refuses a pack before anything in it is unpacked as a whole.
func checkSizes(file io.ReadSeeker, o Order) error {
	s := packfile.NewScanner(file)
	_, n, err := s.Header()
	if err != nil {
		return broken(err)
	}
	if int64(n) > 2*int64(o.Files)+1 { // each file in a folder of its own
		return refusef("it has more than %d files and folders", o.Files)
	}
	for range n {
		h, err := s.NextObjectHeader()
		if err != nil {
			return broken(err)
		}
		if h.Length > o.File {
			return refusef("a file in it is larger than %d MB", o.File>>20)
		}
	}
	return nil
}

func broken(err error) error { return refusef("what its host sent cannot be read: %s", err) }

func parse(file io.ReadSeeker, o packfile.Observer) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	p, err := packfile.NewParser(packfile.NewScanner(file), o)
	if err != nil {
		return err
	}
	if _, err := p.Parse(); err != nil {
		return broken(err)
	}
	return nil
}

// commits counts them.
type commits int

func (commits) OnHeader(uint32) error { return nil }

func (c *commits) OnInflatedObjectHeader(t plumbing.ObjectType, _, _ int64) error {
	if t == plumbing.CommitObject {
		*c++
	}
	return nil
}

func (commits) OnInflatedObjectContent(plumbing.Hash, int64, uint32, []byte) error { return nil }
func (commits) OnFooter(plumbing.Hash) error                                       { return nil }

// Run is Main with the streams of the process.
func Run(args []string) int { return Main(args, os.Stdout, os.Stderr) }
