package screen

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/term"
)

const redraw = 100 * time.Millisecond

// Bar is the bottom line of a terminal that shows how far something is.
// Without a terminal it shows nothing.
type Bar struct {
	Console
	fd    int
	on    bool
	line  string
	drawn time.Time
}

// NewBar makes one that shows nothing yet.
func NewBar(w Console) *Bar {
	fd, on := terminal(w.Err)
	return &Bar{Console: w, fd: fd, on: on && w.Env("TERM") != "dumb"}
}

// Due tells whether Show would draw: not more often than an eye can follow.
func (b *Bar) Due() bool { return b.on && b.Now().Sub(b.drawn) >= redraw }

// Show draws the line anew when it is due.
func (b *Bar) Show(line string) {
	b.line = line
	if b.Due() {
		b.drawn = b.Now()
		b.draw()
	}
}

func (b *Bar) draw() {
	width, _, err := term.GetSize(b.fd)
	if err != nil || width <= 0 {
		width = 80
	}
	fmt.Fprintf(b.Err, "\r\x1b[K%s", Cut(b.line, width-1)) // the last column would wrap
}

// Above prints results while the bar stays at the bottom.
func (b *Bar) Above(print func()) {
	b.clear()
	print()
	if b.on && b.line != "" {
		b.draw()
	}
}

func (b *Bar) clear() {
	if b.on && b.line != "" {
		fmt.Fprint(b.Err, "\r\x1b[K")
	}
}

// Close leaves no trace.
func (b *Bar) Close() {
	b.clear()
	b.line = ""
}

// Gauge is a picture of a share from 0 to 1.
func Gauge(share float64) string {
	const width = 20
	full := int(min(max(share, 0), 1) * width)
	return strings.Repeat("━", full) + strings.Repeat("╌", width-full)
}
