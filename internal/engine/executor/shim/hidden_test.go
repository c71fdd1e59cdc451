package shim

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/waittest"
)

// gone is a file of a megabyte in a working folder that has no name any more.
func gone(t *testing.T, d *disk) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(d.folders[0], "gone"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	return f
}

func watched(t *testing.T) *disk {
	t.Helper()
	f := Folder(t.TempDir())
	if err := os.Mkdir(f.path(WorkFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	return newDisk(f, 100<<20)
}

// This process plays the command; the tests take turns, since each would see
// what the other hides.
func TestAFileIsCountedOrKnownToBeHidden(t *testing.T) {
	t.Run("in a message", func(t *testing.T) {
		d := watched(t)
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(ends[0])
		f := gone(t, d)
		if err := unix.Sendmsg(ends[0], []byte("x"), unix.UnixRights(int(f.Fd())), nil, 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if _, hidden := d.count(tree{top: os.Getpid()}); !hidden && d.used.bytes < 1<<20 {
			t.Errorf("%d bytes and nothing hidden", d.used.bytes)
		}
		unix.Close(ends[1])
		if _, hidden := d.count(tree{top: os.Getpid()}); hidden {
			t.Error("something is hidden when the message is gone")
		}
	})
	t.Run("in memory", func(t *testing.T) {
		d := watched(t)
		f := gone(t, d)
		memory, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if _, hidden := d.count(tree{top: os.Getpid()}); !hidden && d.used.bytes < 1<<20 {
			t.Errorf("%d bytes and nothing hidden", d.used.bytes)
		}
		if err := unix.Munmap(memory); err != nil {
			t.Fatal(err)
		}
		if _, hidden := d.count(tree{top: os.Getpid()}); hidden || d.used.bytes >= 1<<20 {
			t.Errorf("%d bytes, hidden: %t, when it is gone", d.used.bytes, hidden)
		}
	})
}

// holds has this program hold something in the folder where it is started that has no
// name any more, in one of several ways, until its input ends.
const holds = "MILLRACE_TEST_HOLDS"

func init() {
	if os.Getenv(holds) != "" {
		runtime.LockOSThread() // so that hold runs in the first thread
	}
}

func hold(way string) {
	err := unix.Mkdir("gone", 0o700)
	switch way {
	case "its folder":
		err = errors.Join(err, os.Chdir("gone"), os.Remove("../gone"))
	default:
		var fd int
		fd, err = unix.Open("gone/file", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		err = errors.Join(err, unix.Ftruncate(fd, 1), os.RemoveAll("gone"))
	}
	if way == "a closed process" {
		err = errors.Join(err, unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	}
	if err != nil {
		panic(err)
	}
	go func() {
		if way == "a process without its first thread" && !waittest.Until(func() bool {
			_, err := os.Readlink("/proc/" + strconv.Itoa(os.Getpid()) + "/exe")
			return err != nil
		}) {
			panic("it does not end")
		}
		_, _ = os.Stdout.WriteString("up")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if way == "a process without its first thread" {
		_, _, _ = syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
	select {}
}

// What a process holds is seen however it holds it, by root and by a plain user.
func TestWhatAProcessHoldsIsCountedOrKnownToBeHidden(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"an open file", "its folder", "a closed process", "a process without its first thread"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			d := watched(t)
			c := exec.Command("/proc/self/exe")
			c.Env, c.Dir = []string{holds + "=" + way}, d.folders[0]
			if _, hidden := d.count(tree{top: up(t, c)}); !hidden && d.used.files != 1 {
				t.Errorf("%d files, and nothing hidden", d.used.files)
			}
		})
	}
	t.Run("its program", func(t *testing.T) {
		t.Parallel()
		d := watched(t)
		c := exec.Command(unmapped(t, d.folders[0]))
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		if err := os.Remove(c.Path); err != nil {
			t.Fatal(err)
		}
		if d.count(tree{top: c.Process.Pid}); d.used.files != 1 {
			t.Errorf("%d files", d.used.files)
		}
	})
	if os.Getuid() == 0 {
		t.Run("by a plain user", func(t *testing.T) {
			t.Parallel()
			c := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()[:strings.Index(t.Name(), "/")]+"$")
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			c.Env = append(os.Environ(), "TMPDIR=/tmp") // ours may be closed to others
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// unmapped is a program in a folder of which nothing is in the memory of its process: all of
// that is its interpreter's, which only waits for signals.
func unmapped(t *testing.T, folder string) (path string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the program is one for amd64")
	}
	const address, headers = 0x400000, 64 + 56
	pauses := []byte{
		0xb8, 34, 0, 0, 0, // mov eax, SYS_pause
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to the first
	}
	write := func(path string, part elf.Prog64, text []byte) string {
		var program bytes.Buffer
		for _, part := range []any{
			elf.Header64{
				Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
				Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
				Entry: address + headers, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
			}, part, text,
		} {
			if err := binary.Write(&program, binary.LittleEndian, part); err != nil {
				t.Fatal(err)
			}
		}
		// What this process had open for writing, a parallel test could have open still.
		c := exec.Command("sh", "-c", `cat > "$0" && chmod +x "$0"`, path)
		c.Stdin = &program
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	size := uint64(headers + len(pauses))
	interpreter := write(filepath.Join(t.TempDir(), "interpreter"), elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: address, Filesz: size, Memsz: size, Align: 4096}, pauses)
	name := append([]byte(interpreter), 0)
	return write(filepath.Join(folder, "program"), elf.Prog64{Type: uint32(elf.PT_INTERP), Off: headers, Filesz: uint64(len(name)), Align: 1}, name)
}

// A folder that has another name whenever it is looked for.
func TestAFolderThatIsAlwaysRenamedIsCountedOrKnownToBeHidden(t *testing.T) {
	t.Parallel()
	d := watched(t)
	path := func(name string) string { return filepath.Join(d.folders[0], name) }
	for i := range 900 {
		if err := os.WriteFile(path("e"+strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(path("d0"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("d0/large"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	over, renamed := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for i := 0; err == nil; i++ {
			select {
			case <-over:
				renamed <- nil
				return
			default:
				err = os.Rename(path("d"+strconv.Itoa(i)), path("d"+strconv.Itoa(i+1)))
			}
		}
		renamed <- err
	}()
	d.first.bytes = d.left.bytes + 2*d.most // it seems that the disk has lost that much
	for range 100 {
		if _, hidden := d.count(tree{}); !hidden && d.used.bytes < 1<<20 {
			t.Errorf("%d bytes and nothing hidden", d.used.bytes)
			break
		}
	}
	close(over)
	if err := <-renamed; err != nil {
		t.Fatal(err)
	}
}

func TestHidingForLongWhileTheDiskShrinksIsTooMuch(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1000, 0)
	after := func(d time.Duration) time.Time { return begin.Add(d) }
	for name, tt := range map[string]struct {
		lost  int64
		looks map[time.Duration]bool // whether something was hidden then
		want  bool
	}{
		"for long":                {200, map[time.Duration]bool{0: true, longHidden: true}, true},
		"for a moment":            {200, map[time.Duration]bool{longHidden: true}, false},
		"but the disk has room":   {100, map[time.Duration]bool{0: true, longHidden: true}, false},
		"now and then":            {200, map[time.Duration]bool{0: true, longHidden / 2: false, longHidden: true}, false},
		"nothing, and others did": {200, map[time.Duration]bool{0: false, longHidden: false}, false},
	} {
		d := &disk{most: 100, first: space{bytes: 1000}, left: space{bytes: 1000 - tt.lost}}
		var got bool
		for _, at := range []time.Duration{0, longHidden / 2, longHidden} {
			if hidden, looked := tt.looks[at]; looked {
				got = d.hides(after(at), hidden)
			}
		}
		if got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
