package disk

import (
	"maps"
	"os"
	"sync"
)

// durable remembers folders whose names, up to the root, have been synced. A
// folder that was removed and made again is another one.
type durable struct {
	mu      sync.Mutex
	folders map[string]os.FileInfo
}

// maxDurable bounds what is remembered; what is forgotten is synced again.
const maxDurable = 10_000

func (d *durable) has(dir string, info os.FileInfo) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.folders[dir]
	return known != nil && os.SameFile(known, info)
}

func (d *durable) add(synced map[string]os.FileInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.folders == nil || len(d.folders) >= maxDurable {
		d.folders = map[string]os.FileInfo{}
	}
	maps.Copy(d.folders, synced)
}

func (d *durable) forget(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.folders, dir)
}
