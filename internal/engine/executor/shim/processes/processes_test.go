package processes_test

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/waittest"
)

// vforks are the instructions of a program that calls vfork and ends after its child,
// which only waits for signals.
var vforks = []byte{
	0xb8, 58, 0, 0, 0, // mov eax, SYS_vfork
	0x0f, 0x05, // syscall
	0x85, 0xc0, // test eax, eax
	0x74, 9, // jz child
	0x31, 0xff, // xor edi, edi
	0xb8, 60, 0, 0, 0, // mov eax, SYS_exit
	0x0f, 0x05, // syscall
	0xb8, 34, 0, 0, 0, // child: mov eax, SYS_pause
	0x0f, 0x05, // syscall
	0xeb, 0xf7, // jmp child
}

// program is a file with a program of these instructions.
func program(t *testing.T, instructions []byte) (path string) {
	t.Helper()
	const address, headers = 0x400000, 64 + 56
	size := uint64(headers + len(instructions))
	var text bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
			Entry: address + headers, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
		},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: address, Filesz: size, Memsz: size, Align: 4096},
		instructions,
	} {
		if err := binary.Write(&text, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(t.TempDir(), "program")
	// What this process had open for writing, a parallel test could have open still.
	write := exec.Command("sh", "-c", `cat > "$0" && chmod +x "$0"`, path)
	write.Stdin = &text
	if err := write.Run(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A process that waits in vfork for a child that is stopped has stopped itself, though
// the kernel stops it only when the child has gone on.
func TestStoppedSeesWhoWaitsInVfork(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the program is one for amd64")
	}
	parent := exec.Command(program(t, vforks))
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := parent.Process.Pid
	var children []int
	t.Cleanup(func() {
		processes.Signal(processes.Tree(pid), syscall.SIGKILL)
		_ = parent.Wait()
	})
	if !waittest.Until(func() bool { children = processes.Children(pid); return len(children) == 1 }) {
		t.Fatal("it has no child")
	}
	if processes.Stopped(pid) {
		t.Error("its child runs")
	}
	for _, pid := range []int{pid, children[0]} {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if !waittest.Until(func() bool { return processes.Stopped(children[0]) }) {
		t.Fatal("its child does not stop")
	}
	if !processes.Stopped(pid) {
		t.Error("it does not count as stopped")
	}
	if err := syscall.Kill(children[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !waittest.Until(func() bool { return gone(children[0]) && processes.Stopped(pid) }) {
		t.Error("it does not stop when it waits no more")
	}
}

// family is a shell with a shell below it that has two children, each of which
// has said that it is there. It ends with the test.
func family(t *testing.T) (first *exec.Cmd, below []int) {
	t.Helper()
	first = exec.Command("sh", "-c", `sh -c 'sleep 1000 & echo $!; sleep 1000 & echo $!; echo $$; wait'; echo ended; sleep 1000`)
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 3 {
		lines.Scan()
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		below = append(below, pid)
	}
	t.Cleanup(func() {
		for _, pid := range append(processes.Tree(first.Process.Pid), below...) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = first.Wait()
	})
	return first, below
}

// gone reports whether a process is none any more, or has only to be waited for.
func gone(pid int) bool {
	text, err := os.ReadFile(processes.Folder(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true
	}
	_, after, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(after, "Z")
}

func TestATreeIsAllThatIsBelowAProcess(t *testing.T) {
	t.Parallel()
	first, below := family(t)
	tree := processes.Tree(first.Process.Pid)
	want := append([]int{first.Process.Pid}, below...)
	slices.Sort(tree)
	slices.Sort(want)
	if !slices.Equal(tree, want) {
		t.Errorf("%v, want %v", tree, want)
	}
	if children := processes.Children(first.Process.Pid); !slices.Equal(children, below[2:]) {
		t.Errorf("%v, want %v", children, below[2:])
	}
	if children := processes.Children(1 << 30); children != nil {
		t.Errorf("nobody has children: %v", children)
	}
}

func TestASignalReachesTheWholeTreeButThoseThatAreSpared(t *testing.T) {
	t.Parallel()
	for spared := range 4 {
		first, below := family(t)
		levels := [][]int{{first.Process.Pid}, below[2:], below[:2]}
		processes.Signal(processes.Below(first.Process.Pid, spared), syscall.SIGKILL)
		for depth, level := range levels {
			for _, pid := range level {
				if depth >= spared && !waittest.Until(func() bool { return gone(pid) }) {
					t.Errorf("%d spared: %d at level %d lives", spared, pid, depth)
				}
			}
		}
		if spared > 0 && gone(first.Process.Pid) {
			t.Errorf("%d spared: the first has gone", spared)
		}
	}
}
