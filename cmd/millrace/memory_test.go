package main

import (
	"testing"
	"testing/fstest"
)

func TestTheServerKnowsItsMemory(t *testing.T) {
	t.Parallel()
	const machine = "MemFree: 1 kB\nMemTotal:       8388608 kB\n" // 8 GB
	for name, tt := range map[string]struct {
		files map[string]string
		mb    int64
	}{
		"nobody says":                {nil, 0},
		"a machine":                  {map[string]string{"proc/meminfo": machine}, 4096},
		"a cgroup without a limit":   {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 4096},
		"version 2":                  {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1610612736\n"}, 1152},
		"version 2, above it":        {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1073741824\n"}, 768},
		"version 1":                  {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "5:cpu:/\n4:memory:/a\n0::/\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1073741824\n"}, 768},
		"version 1 without a limit":  {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, 4096},
		"in a container":             {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/docker/abc\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n"}, 768},
		"a cgroup above the machine": {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1099511627776\n"}, 4096},
	} {
		root := fstest.MapFS{}
		for path, text := range tt.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := ownMemory(root) >> 20; got != tt.mb {
			t.Errorf("%s: %d MB, want %d", name, got, tt.mb)
		}
	}
}
