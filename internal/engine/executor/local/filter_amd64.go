package local

import "golang.org/x/sys/unix"

const thisArch = unix.AUDIT_ARCH_X86_64

// refusedHere are calls that only this architecture has: ports of the machine,
// segments, and what no kernel has any more. The numbers of x32 programs are
// beyond lastCall.
var refusedHere = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_USELIB, unix.SYS_USTAT,
	unix.SYS_SYSFS, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE, unix.SYS_QUERY_MODULE, unix.SYS_GET_KERNEL_SYMS,
}
