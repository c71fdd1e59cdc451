package transfer

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/cli/screen"
)

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
