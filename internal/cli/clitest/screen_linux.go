package clitest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is many times what anything takes on a busy machine.
const patience = 5 * time.Minute

// Screen is a real terminal of 24 rows and 40 columns with a person before it: what they
// type goes in at one end, and what they see comes out of it.
type Screen struct {
	File *os.File // the program's end

	t       *testing.T
	keys    *os.File
	mu      sync.Mutex
	changed sync.Cond // whenever there is more to see
	seen    bytes.Buffer
}

// NewScreen opens one for as long as a test lasts.
func NewScreen(t *testing.T) *Screen {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here: ", err)
	}
	t.Cleanup(func() { keys.Close() })
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}); err != nil {
		t.Fatal(err)
	}
	s := &Screen{t: t, File: terminal, keys: keys}
	s.changed.L = &s.mu
	go func() { _, _ = io.Copy(s, keys) }() // until the terminal is closed
	t.Cleanup(func() { terminal.Close() })
	return s
}

// Write is what the person sees.
func (s *Screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	return s.seen.Write(text)
}

// Sees waits until the terminal shows a text, and gives all that it shows.
func (s *Screen) Sees(text string) string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	late := false
	end := time.AfterFunc(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.changed.Broadcast()
	})
	defer end.Stop()
	for !strings.Contains(s.seen.String(), text) {
		if late {
			s.t.Fatalf("no %q in %q", text, s.seen.String())
		}
		s.changed.Wait()
	}
	return s.seen.String()
}

// Types is what the person types.
func (s *Screen) Types(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keys, text); err != nil {
		s.t.Fatal(err)
	}
}

// UseScreen gives d a real terminal.
func (d *Terminal) UseScreen(t *testing.T) *Screen {
	t.Helper()
	s := NewScreen(t)
	d.In, d.Out, d.Err = s.File, s.File, s.File
	return s
}
