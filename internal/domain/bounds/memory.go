package bounds

import (
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Memory is what the server has left of its own. Work that grows with what a
// user sent asks before it begins, so that too much at once is refused rather
// than the end of the server. A nil one has no end.
type Memory struct {
	limit int64
	used  func() int64 // bytes that are in use for good

	mu       sync.Mutex
	reserved int64
}

// NewMemory makes one of so many bytes.
func NewMemory(limit int64, used func() int64) *Memory { return &Memory{limit: limit, used: used} }

// What reading JSON takes up, as measured on definitions of many small values,
// of which there are only so many.
const (
	perByte   = 80
	allValues = 160 << 20
	small     = 1 << 20 // too little to ask for
)

// tryAgain is when it is worth asking again.
const tryAgain = 10 * time.Second

// Reserve sets memory aside for reading so much JSON, until release is called.
// If it is not there, that is fault.KindUnavailable. What is small always is
// there, so that people can look at their runs and cancel them.
func (m *Memory) Reserve(json int) (release func(), err error) {
	need := min(int64(json)*perByte, 4*int64(json)+allValues)
	if m == nil || need <= small {
		return func() {}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used()+m.reserved+need > m.limit {
		refused := fault.Unavailable("the server's memory is nearly used up; try again in a moment").WithCode("memory_low")
		refused.RetryAfter = tryAgain
		return nil, refused
	}
	m.reserved += need
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reserved -= need
	}), nil
}
