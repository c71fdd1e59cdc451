// Package socket writes to a connection as much as it takes, without waiting,
// so that who has news for many needs no goroutine for each of them.
package socket

import (
	"errors"
	"net"
	"syscall"
)

// Conn is a connection that can be tried.
type Conn struct {
	net.Conn
	raw syscall.RawConn // nil where it is more than a socket, as with TLS
}

// New makes a connection one that can be tried.
func New(conn net.Conn) Conn {
	c := Conn{Conn: conn}
	if s, ok := conn.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
	}
	return c
}

// Try writes as much as the socket takes, and returns the rest. With TLS that
// is everything, since nobody knows how much it would take.
func (c Conn) Try(text []byte) (rest []byte, err error) {
	if c.raw == nil {
		return text, nil
	}
	var n int
	var failed error
	err = c.raw.Write(func(fd uintptr) bool {
		n, failed = syscall.Write(int(fd), text)
		return true
	})
	if err == nil && failed != nil && !errors.Is(failed, syscall.EAGAIN) && !errors.Is(failed, syscall.EINTR) {
		err = failed
	}
	return text[max(0, n):], err
}
