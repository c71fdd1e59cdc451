package disk

import (
	"os"
	"syscall"
)

// beginWriting is a hint: Sync tells what went wrong.
func beginWriting(f *os.File, offset, size int64) {
	const syncFileRangeWrite = 2 // SYNC_FILE_RANGE_WRITE
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { _ = syscall.SyncFileRange(int(fd), offset, size, syncFileRangeWrite) })
}
