package main

import (
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/bounds"
)

// limitMemory keeps the server within what its machine or cgroup has: the
// garbage collector works harder before the kernel would end the process, and
// large work is refused before that. GOMEMLIMIT has the last word.
func limitMemory(log *slog.Logger) *bounds.Memory {
	limit := debug.SetMemoryLimit(-1)
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit = ownMemory(os.DirFS("/")); limit > 0 {
			debug.SetMemoryLimit(limit)
		}
	}
	if limit <= 0 || limit == math.MaxInt64 {
		return nil
	}
	log.Debug("the server keeps to its memory", slog.Int64("bytes", limit))
	return bounds.NewMemory(limit/4*3, liveHeap)
}

// liveHeap is what the last collection found in use.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// ownMemory is the server's part of the memory that is there: three quarters of
// its cgroup's, and half of the machine's, where tasks run beside it. 0: nobody
// says how much there is.
func ownMemory(root fs.FS) int64 {
	limit := machineMemory(root) / 2
	if group := cgroupMemory(root); group > 0 && (limit == 0 || group/4*3 < limit) {
		limit = group / 4 * 3
	}
	return limit
}

func machineMemory(root fs.FS) int64 {
	text, _ := fs.ReadFile(root, "proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			kb, _ := strconv.ParseInt(fields[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// cgroupMemory is the least that our cgroup or one above it allows, of version
// 2 or 1; 0: none has a limit. In a container the path is the host's, and only
// the top can be read.
func cgroupMemory(root fs.FS) (least int64) {
	text, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		top, file := "", ""
		switch {
		case fields[1] == "":
			top, file = "sys/fs/cgroup", "memory.max"
		case fields[1] == "memory":
			top, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			text, _ := fs.ReadFile(root, path.Join(top, group, file))
			limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && limit > 0 && limit < 1<<60 && (least == 0 || limit < least) { // version 1 writes a huge number for none
				least = limit
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}
