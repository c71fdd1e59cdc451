package local_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// A shim of an earlier build finishes what it has. What comes later waits for
// it, and is started by a shim that understands the order.
func TestAnOutdatedShimStartsNothing(t *testing.T) {
	t.Parallel()
	var old net.Conn
	spec := executor.Spec{Key: executor.Key{Run: "run_old", Node: "n", Attempt: 1}, Fence: "old"}
	orders := make(chan shim.Order, 10)
	b := drivertest.NewFixture(t, func(t testing.TB, folder string) drivertest.Subject {
		conn := make(chan net.Conn, 1)
		go serveOutdated(t, filepath.Join(folder, ".shim"), spec, conn, orders)
		<-conn // it listens
		s := bare(t, folder)
		old = <-conn
		return s
	})
	h := b.Submit(t, b.Spec(t, "echo new"))
	if seen, _ := b.Find(t, h); seen.Phase != executor.Pending {
		t.Fatalf("beside an outdated shim's attempt it is %s", seen.Phase)
	}
	say(t, old, shim.Report{Record: &shim.Record{ID: spec.Key.Folder(), Fence: "old", Exit: &shim.Exit{Fence: "old"}}})
	if seen := b.End(t, h); seen.Reason != executor.ExitedZero || b.Log(t, h, 0) != "new\n" {
		t.Errorf("then: %s", seen.Reason)
	}
	for o := range orders {
		if o.Start != nil {
			t.Errorf("the outdated shim was told to start %s", o.Start.ID)
		}
	}
}

// serveOutdated is a shim that says no version. One attempt of it runs.
func serveOutdated(t testing.TB, folder string, spec executor.Spec, conn chan net.Conn, orders chan shim.Order) {
	defer close(orders)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Error(err)
	}
	socket := filepath.Join(folder, "socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	conn <- nil
	if err != nil {
		t.Error(err)
		return
	}
	c, err := listener.Accept()
	listener.Close()
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	about, _ := json.Marshal(map[string]any{"spec": spec})
	say(t, c, shim.Report{Record: &shim.Record{ID: spec.Key.Folder(), Fence: "old", Metadata: about}})
	say(t, c, shim.Report{Ready: true})
	conn <- c
	for decoder := json.NewDecoder(c); ; {
		var o shim.Order
		if decoder.Decode(&o) != nil || o.Leave {
			return
		}
		orders <- o
	}
}

func say(t testing.TB, c net.Conn, r shim.Report) {
	text, err := json.Marshal(r)
	if err == nil {
		_, err = c.Write(append(text, '\n'))
	}
	if err != nil {
		t.Error(err)
	}
}
