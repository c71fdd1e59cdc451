package bounds

import (
	"sync"
	"sync/atomic"
	"testing"
)

// However many ask at once, no more is promised than there is, and all of it is
// there again afterwards.
func TestMemoryIsPromisedOnce(t *testing.T) {
	t.Parallel()
	const one = 4 << 20 // of JSON: 176 MB
	need := int64(4*one + allValues)
	m := NewMemory(3*need, func() int64 { return 0 })
	var wg sync.WaitGroup
	var held, most, refused atomic.Int64
	start := make(chan struct{})
	for range 16 {
		wg.Go(func() {
			<-start
			for range 200 {
				release, err := m.Reserve(one)
				if err != nil {
					refused.Add(1)
					continue
				}
				n := held.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				held.Add(-1)
				release()
			}
		})
	}
	close(start)
	wg.Wait()
	if most.Load() > 3 || m.reserved != 0 {
		t.Errorf("%d were promised at once, %d bytes are still", most.Load(), m.reserved)
	}
	var all []func()
	for range 3 {
		release, err := m.Reserve(one)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, release)
	}
	if _, err := m.Reserve(one); err == nil {
		t.Error("a fourth is promised")
	}
	for _, release := range all {
		release()
		release()
	}
	if m.reserved != 0 {
		t.Errorf("%d bytes are left", m.reserved)
	}
}

// What is small is always there, also where nothing is left, and what it takes
// is counted by the byte until there are as many values as there can be.
func TestWhatReadingTakes(t *testing.T) {
	t.Parallel()
	full := NewMemory(0, func() int64 { return 1 << 40 })
	for bytes, ok := range map[int]bool{0: true, small / perByte: true, small/perByte + 1: false, 1 << 30: false} {
		release, err := full.Reserve(bytes)
		if (err == nil) != ok {
			t.Errorf("%d bytes: %v", bytes, err)
		}
		if err == nil {
			release()
		}
	}
	for bytes, need := range map[int]int64{100_000: 8_000_000, 1 << 20: 80 << 20, 4 << 20: 16<<20 + allValues} {
		exact, short := NewMemory(need, func() int64 { return 0 }), NewMemory(need-1, func() int64 { return 0 })
		if _, err := exact.Reserve(bytes); err != nil {
			t.Errorf("%d bytes do not fit into %d", bytes, need)
		}
		if _, err := short.Reserve(bytes); err == nil {
			t.Errorf("%d bytes fit into %d", bytes, need-1)
		}
	}
}
