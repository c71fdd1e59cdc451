package local

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// filter is the program by which the kernel refuses a task the system calls
// that no computation needs, and behind which holes of the kernel are found
// again and again. It knows what it refuses; calls that came to the kernel
// after lastCall do not exist for a task. docs/decisions/0039 says why for
// each.
func filter() []byte {
	p := bpf{}
	p.load(offsetArch)
	p.skipIf(unix.BPF_JEQ, thisArch)
	p.ret(unix.SECCOMP_RET_KILL_PROCESS) // a program of another architecture
	p.load(offsetCall)
	p.when(unix.BPF_JGT, lastCall, noSuchCall)
	for _, call := range append(refused, refusedHere...) {
		p.when(unix.BPF_JEQ, call, notPermitted)
	}
	for _, call := range absent {
		p.when(unix.BPF_JEQ, call, noSuchCall)
	}
	p.when(unix.BPF_JEQ, unix.SYS_FALLOCATE, notSupported)
	p.call(unix.SYS_CLONE, func() {
		p.load(argument(0))
		p.when(unix.BPF_JSET, namespaces, notPermitted)
		p.keep(unix.CLONE_THREAD | ofThreads)
		for _, flags := range []uint32{0, unix.CLONE_FILES, unix.CLONE_FS} {
			p.when(unix.BPF_JEQ, unix.CLONE_THREAD|flags, notPermitted)
		}
	})
	p.call(unix.SYS_CLOSE_RANGE, func() { p.load(argument(2)); p.when(unix.BPF_JSET, unix.CLOSE_RANGE_UNSHARE, notPermitted) })
	p.call(unix.SYS_IOCTL, func() {
		p.load(argument(1))
		p.when(unix.BPF_JEQ, unix.TIOCSTI, notPermitted)
		p.when(unix.BPF_JEQ, unix.TIOCLINUX, notPermitted)
		for _, request := range reserving {
			p.when(unix.BPF_JEQ, request, notSupported)
		}
	})
	p.call(unix.SYS_PERSONALITY, func() { p.only(argument(0), personalities, notPermitted) })
	for _, call := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		p.call(call, func() {
			p.only(argument(0), families, noSuchFamily)
			p.load(argument(0))
			p.ifEqual(unix.AF_NETLINK, func() { p.only(argument(2), []uint32{unix.NETLINK_ROUTE}, noSuchFamily) })
		})
	}
	p.ret(unix.SECCOMP_RET_ALLOW)
	return p.bytes()
}

const (
	notPermitted = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	noSuchCall   = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	notSupported = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
	noSuchFamily = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)

	namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

	// ofThreads is what threads have in common: through one of them the shim sees the
	// deleted files that any of them has open.
	ofThreads = unix.CLONE_FILES | unix.CLONE_FS

	lastCall = 462 // mseal, of Linux 6.10
)

// refused are answered with EPERM.
var refused = []uint32{
	// Keys of the kernel belong to users, not to sandboxes.
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	// Looking into, and into the memory of, other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_PROCESS_MADVISE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	// Programs and pages of the kernel's own.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	// Mounts, and sandboxes inside the sandbox.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT,
	// Files by anything but their path, and watching those of others.
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	// The machine as a whole.
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE,
}

// absent are answered with ENOSYS: libraries then take the older way. Of
// clone3 a filter could not see the flags.
var absent = []uint32{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}

// reserving are the requests of ioctl that reserve space as fallocate does:
// FS_IOC_RESVSP, FS_IOC_RESVSP64 and FS_IOC_ZERO_RANGE, and XFS_IOC_ALLOCSP and
// XFS_IOC_ALLOCSP64 of kernels before 5.17; and FS_IOC_FSSETXATTR, by
// which a file is given extents so large that one byte takes gigabytes. A task could
// take the whole disk with them before the shim next looks at it. Refused with
// EOPNOTSUPP, as on a file system that cannot do it, the C library writes
// instead.
var reserving = []uint32{0x40305828, 0x4030582a, 0x40305839, 0x4030580a, 0x40305824, 0x401c5820}

// families are those of sockets that programs use.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// personalities are the usual one, that of 32 bits, each also for a kernel that
// calls itself 2.6, and the question.
var personalities = []uint32{0, 8, 0x20000, 0x20008, 0xffffffff}

// Where the kernel shows a filter what was called.
const (
	offsetCall = 0
	offsetArch = 4
)

// argument is the lower half of an argument, on a machine that keeps it first.
func argument(n uint32) uint32 { return 16 + 8*n }

// bpf is a filter while it is put together.
type bpf []unix.SockFilter

func (p *bpf) add(code uint16, yes, no uint8, k uint32) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
}

func (p *bpf) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }
func (p *bpf) ret(action uint32)  { p.add(unix.BPF_RET|unix.BPF_K, 0, 0, action) }

// keep clears all bits of what is loaded but these.
func (p *bpf) keep(bits uint32) { p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0, 0, bits) }

// skipIf leaves out the next instruction.
func (p *bpf) skipIf(test uint16, k uint32) { p.add(unix.BPF_JMP|unix.BPF_K|test, 1, 0, k) }

// when ends with an action if what is loaded passes a test.
func (p *bpf) when(test uint16, k, action uint32) {
	p.add(unix.BPF_JMP|unix.BPF_K|test, 0, 1, k)
	p.ret(action)
}

// ifEqual goes through a block only where what is loaded equals k.
func (p *bpf) ifEqual(k uint32, block func()) {
	at := len(*p)
	p.add(unix.BPF_JMP|unix.BPF_K|unix.BPF_JEQ, 0, 0, k)
	block()
	(*p)[at].Jf = uint8(len(*p) - at - 1)
}

// call is a block for one system call, after which its number is loaded again.
func (p *bpf) call(number uint32, block func()) {
	p.ifEqual(number, func() {
		block()
		p.load(offsetCall)
	})
}

// only refuses any value that is not in a list.
func (p *bpf) only(offset uint32, values []uint32, otherwise uint32) {
	p.load(offset)
	for i, value := range values {
		p.add(unix.BPF_JMP|unix.BPF_K|unix.BPF_JEQ, uint8(len(values)-i), 0, value)
	}
	p.ret(otherwise)
}

func (p bpf) bytes() []byte {
	var text []byte
	for _, i := range p {
		text = binary.NativeEndian.AppendUint16(text, i.Code)
		text = append(text, i.Jt, i.Jf)
		text = binary.NativeEndian.AppendUint32(text, i.K)
	}
	return text
}
