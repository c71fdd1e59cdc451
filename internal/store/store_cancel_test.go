package store

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// watchedConn tells of its reads and deadlines, and does something after writing.
type watchedConn struct {
	net.Conn
	begun, ended chan struct{} // reads
	deadlines    chan time.Time
	written      func()
}

func (c *watchedConn) Read(b []byte) (int, error) {
	c.begun <- struct{}{}
	defer func() { c.ended <- struct{}{} }()
	return c.Conn.Read(b)
}

func (c *watchedConn) Write(b []byte) (int, error) {
	defer c.written()
	return c.Conn.Write(b)
}

func (c *watchedConn) SetDeadline(t time.Time) error {
	defer func() { c.deadlines <- t }()
	return c.Conn.SetDeadline(t)
}

// Somebody leaves when the answer has come: who has the connection next is not told
// that time is up.
func TestAStatementDoesNotEndWithTheOneBefore(t *testing.T) {
	t.Parallel()
	url := os.Getenv("MILLRACE_TEST_POSTGRES")
	if url == "" {
		t.Skip("there is no PostgreSQL")
	}
	config, err := postgresConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	c := &watchedConn{begun: make(chan struct{}, 100), ended: make(chan struct{}, 100), deadlines: make(chan time.Time, 100), written: func() {}}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c.Conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return c, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "SELECT $1::int", 1); err != nil { // which prepares it
		t.Fatal(err)
	}
	drain(c.begun)
	drain(c.ended)
	drain(c.deadlines)

	ctx, leave := context.WithCancel(t.Context())
	c.written = func() { // it takes so long that answers are read meanwhile
		c.written = func() {}
		<-c.begun
		<-c.ended
		<-c.begun
		leave()
		if deadline := <-c.deadlines; !deadline.After(time.Now()) {
			<-c.ended
		}
	}
	if _, err := conn.Exec(ctx, "SELECT $1::int", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(context.WithoutCancel(t.Context()), "SELECT $1::text", ""); err != nil {
		t.Errorf("the next statement: %v", err)
	}
}

func drain[T any](c chan T) {
	for len(c) > 0 {
		<-c
	}
}
