package store

import (
	"context"
	"testing"
)

// Servers on one PostgreSQL hear each other, those of runs and those of rooms apart;
// a file of SQLite has one server.
func TestServersHearEachOther(t *testing.T) {
	t.Parallel()
	if db := openLedger(t, databases.SQLite(t)); db.Bridge() != nil || db.RunsBridge() != nil {
		t.Error("there is a bridge to nobody")
	}
	url := databases.Postgres(t)
	here, there := openLedger(t, url), openLedger(t, url)
	ctx, stop := context.WithCancel(t.Context())
	heard, ready, ended := make(chan string, 10), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- here.RunsBridge().Listen(ctx, func(message string) { heard <- message }, func() { close(ready) })
	}()
	<-ready
	must(t, there.Bridge().Send(t.Context(), "of a room"))
	for _, message := range []string{"first", "", "ünd 'quoted'", "last"} {
		must(t, there.RunsBridge().Send(t.Context(), message))
		if got := <-heard; got != message {
			t.Errorf("%q, want %q", got, message)
		}
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("who was stopped says nothing")
	}
	// The connection that listened is not given to anybody else.
	for range 5 {
		must(t, here.Ping(t.Context()))
	}
	must(t, there.RunsBridge().Send(t.Context(), "to nobody"))
	if len(heard) != 0 {
		t.Errorf("%q", <-heard)
	}
}
