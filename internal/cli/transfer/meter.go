package transfer

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/cli/screen"
)

// Meter shows the bytes that several senders have on their way together.
type Meter struct {
	mu    sync.Mutex
	meter *meter
}

// NewMeter is one that shows nothing yet of so many bytes.
func NewMeter(w screen.Console, name string, total int64) *Meter {
	return &Meter{meter: newMeter(w, name, 0, total)}
}

// Close leaves no trace of it.
func (m *Meter) Close() { m.meter.bar.Close() }

// Above prints results while the meter stays at the bottom.
func (m *Meter) Above(print func()) { m.meter.bar.Above(print) }

func (m *Meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meter.add(n)
}

// meter shows bytes on their way. It is an io.Writer, to stand in a tee.
type meter struct {
	bar    *screen.Bar
	name   string
	done   int64
	total  int64
	began  time.Time
	before int64 // done when it began
}

func newMeter(w screen.Console, name string, done, total int64) *meter {
	return &meter{bar: screen.NewBar(w), name: screen.Clean(name), done: done, total: total, began: w.Now(), before: done}
}

func (t *meter) Write(p []byte) (int, error) {
	t.add(int64(len(p)))
	return len(p), nil
}

// add shows that so many more bytes have moved.
func (t *meter) add(n int64) {
	if t.done += n; !t.bar.Due() {
		return // writing the line costs as much as sending a few kilobytes
	}
	share := 1.0
	if t.total > 0 {
		share = float64(t.done) / float64(t.total)
	}
	speed := ""
	if seconds := t.bar.Now().Sub(t.began).Seconds(); seconds > 0.5 {
		rate := float64(t.done-t.before) / seconds
		speed = "  " + screen.Size(int64(rate)) + "/s"
		if left := float64(t.total-t.done) / rate; rate > 0 && left >= 1 {
			speed += "  " + screen.Duration(time.Duration(left)*time.Second) + " left"
		}
	}
	const room = 18
	name := t.name
	if screen.Columns(name) > room {
		name = screen.Cut(name, room-1) + "…"
	}
	name += strings.Repeat(" ", room-screen.Columns(name))
	t.bar.Show(fmt.Sprintf("%s %s %3.0f %%  %s of %s%s", name, screen.Gauge(share), 100*share, screen.Size(t.done), screen.Size(t.total), speed))
}
