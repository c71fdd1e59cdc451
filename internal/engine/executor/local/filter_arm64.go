package local

import "golang.org/x/sys/unix"

const thisArch = unix.AUDIT_ARCH_AARCH64

// refusedHere are calls that not every architecture has.
var refusedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}
