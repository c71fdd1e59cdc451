package bounds

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

func TestMemoryThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	var used int64
	m := NewMemory(300<<20, func() int64 { return used })
	const mb = 1 << 20
	first, err := m.Reserve(8 * mb)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Reserve(8 * mb); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("twice as much as there is: %v", err)
	} else if e := err.(*fault.Error); e.RetryAfter < time.Second || e.Code != "memory_low" {
		t.Errorf("%+v", e)
	}
	if _, err := m.Reserve(1_000); err != nil {
		t.Errorf("something small: %v", err)
	}
	first()
	first()
	again, err := m.Reserve(8 * mb)
	if err != nil {
		t.Fatalf("after the first was done: %v", err)
	}
	again()
	used = 200 << 20
	if _, err := m.Reserve(2 * mb); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("with most of it in use: %v", err)
	}
	if _, err := (*Memory)(nil).Reserve(100 * mb); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}
