package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// client is one that listens. A plain connection keeps thousands of them cheap.
type client struct {
	at       *url.URL
	leaves   bool
	answered chan error
	failed   error

	last string // Last-Event-ID
	log  int64  // how far the log was told; -1: not at all yet
	line int64  // the last number in it

	mu    sync.Mutex
	heard []heard
	count map[string]int
}

// heard is that somebody heard of everything up to an event.
type heard struct {
	seq int64
	at  time.Time
}

const (
	patience = 20 * time.Second        // until the answer
	stay     = 1500 * time.Millisecond // of one that leaves
	away     = 700 * time.Millisecond
)

// listen follows the stream; one that leaves does so again and again.
func (c *client) listen() {
	c.count, c.log = map[string]int{}, -1
	for {
		if err := c.follow(); err != nil {
			select {
			case c.answered <- err:
			default:
			}
		}
		if !c.leaves {
			c.add("errors")
			return
		}
		time.Sleep(away)
		c.add("came back")
	}
}

func (c *client) add(what string) {
	c.mu.Lock()
	c.count[what]++
	c.mu.Unlock()
}

// follow listens once, until the time to leave or the end of the stream.
func (c *client) follow() error {
	conn, err := net.Dial("tcp", c.at.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	ask := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n", c.at.RequestURI(), c.at.Host)
	if *header != "" {
		ask += *header + "\r\n"
	}
	if c.last != "" {
		ask += "Last-Event-ID: " + c.last + "\r\n"
	}
	if _, err := conn.Write([]byte(ask + "\r\n")); err != nil {
		return err
	}
	r := bufio.NewReaderSize(conn, 4<<10)
	status, err := r.ReadString('\n')
	if err != nil || !strings.Contains(status, " 200 ") {
		return fmt.Errorf("the stream was answered %q, %w", status, err)
	}
	select {
	case c.answered <- nil:
	default: // it came back
	}
	until := time.Time{}
	if c.leaves {
		until = time.Now().Add(stay)
	}
	_ = conn.SetReadDeadline(until)
	return c.read(r)
}

// read takes in one frame after the other.
func (c *client) read(r *bufio.Reader) error {
	back := c.last != ""
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if id, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			c.last = string(bytes.TrimSpace(id))
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		switch {
		case !ok:
		case bytes.Contains(data, []byte(`"type":"progress"`)):
			c.progress(data)
		case bytes.Contains(data, []byte(`"type":"snapshot"`)):
			if c.log >= 0 && !back {
				c.add("caught up")
			}
			if c.log < 0 || !back {
				c.log, c.line = place(c.last), -1
			}
			back = false
		}
	}
}

// progress checks that a frame goes on where the one before it ended.
func (c *client) progress(data []byte) {
	now := time.Now()
	seq := number(data, `"seq":`)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count["frames"]++
	newest := int64(-1)
	if n := len(c.heard); n > 0 {
		newest = c.heard[n-1].seq
	}
	if seq > newest {
		c.heard = append(c.heard, heard{seq, now})
	} else if seq < newest {
		c.count["repeated"]++
	}
	from := number(data, `"logOffset":`)
	if from < 0 { // it has no log
		return
	}
	if from < c.log {
		c.count["repeated"]++
	} else if from > c.log {
		c.count["lost"]++
	}
	c.log = place(c.last)
	if c.leaves {
		c.text(data, from)
	}
}

// text checks the log itself, in which every task says its number.
func (c *client) text(data []byte, from int64) {
	var m struct{ Logs string }
	if err := json.Unmarshal(data, &m); err != nil || from+int64(len(m.Logs)) != c.log {
		c.count["lost"]++
		return
	}
	for word := range strings.FieldsSeq(m.Logs) {
		n, err := strconv.ParseInt(word, 10, 64)
		if c.line >= 0 && n > c.line+1 || err != nil {
			c.count["lost"]++
		} else if n <= c.line {
			c.count["repeated"]++
		}
		c.line = n
	}
}

// place is the offset of the log in an id.
func place(id string) int64 {
	_, log, _ := strings.Cut(id, ":")
	n, _ := strconv.ParseInt(log, 10, 64)
	return n
}

// number is the one after a name, or -1.
func number(data []byte, name string) int64 {
	_, rest, ok := bytes.Cut(data, []byte(name))
	if !ok {
		return -1
	}
	digits := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseInt(string(rest[:max(0, digits)]), 10, 64)
	if err != nil {
		return -1
	}
	return n
}
