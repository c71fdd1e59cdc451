package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const redraw = 100 * time.Millisecond

// bar is the bottom line of a terminal that shows how far something is.
// Without a terminal it shows nothing.
type bar struct {
	World
	fd    int
	on    bool
	line  string
	drawn time.Time
}

func newBar(w World) *bar {
	fd, on := terminal(w.Err)
	return &bar{World: w, fd: fd, on: on && w.Env("TERM") != "dumb"}
}

// show draws the line anew, though not more often than an eye can follow.
func (b *bar) show(line string) {
	b.line = line
	if now := b.Now(); b.on && now.Sub(b.drawn) >= redraw {
		b.drawn = now
		b.draw()
	}
}

func (b *bar) draw() {
	width, _, err := term.GetSize(b.fd)
	if err != nil || width <= 0 {
		width = 80
	}
	line := []rune(b.line)
	fmt.Fprintf(b.Err, "\r\x1b[K%s", string(line[:min(len(line), width-1)]))
}

// above prints results while the bar stays at the bottom.
func (b *bar) above(print func()) {
	b.clear()
	print()
	if b.on && b.line != "" {
		b.draw()
	}
}

func (b *bar) clear() {
	if b.on && b.line != "" {
		fmt.Fprint(b.Err, "\r\x1b[K")
	}
}

// close leaves no trace.
func (b *bar) close() {
	b.clear()
	b.line = ""
}

// gauge is a picture of a share from 0 to 1.
func gauge(share float64) string {
	const width = 20
	full := int(min(max(share, 0), 1) * width)
	return strings.Repeat("━", full) + strings.Repeat("╌", width-full)
}

// transfer shows bytes on their way. It is an io.Writer, to stand in a tee.
type transfer struct {
	bar    *bar
	name   string
	done   int64
	total  int64
	began  time.Time
	before int64 // done when it began
}

func (w World) transfer(name string, done, total int64) *transfer {
	return &transfer{bar: newBar(w), name: clean(name), done: done, total: total, began: w.Now(), before: done}
}

func (t *transfer) Write(p []byte) (int, error) {
	t.done += int64(len(p))
	share := 1.0
	if t.total > 0 {
		share = float64(t.done) / float64(t.total)
	}
	speed := ""
	if seconds := t.bar.Now().Sub(t.began).Seconds(); seconds > 0.5 {
		speed = "  " + size(int64(float64(t.done-t.before)/seconds)) + "/s"
	}
	name := t.name
	if utf8.RuneCountInString(name) > 18 {
		name = string([]rune(name)[:17]) + "…"
	}
	t.bar.show(fmt.Sprintf("%-18s %s %3.0f %%  %s of %s%s", name, gauge(share), 100*share, size(t.done), size(t.total), speed))
	return len(p), nil
}

var _ io.Writer = (*transfer)(nil)
