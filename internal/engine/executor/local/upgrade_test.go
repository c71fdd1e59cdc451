package local_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/local"
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

// The server measures the attempts of an earlier shim, which cannot freeze them. The
// largest is stopped, ends as evicted, and leaves no files.
func TestAnOutdatedShimsAttemptIsEvicted(t *testing.T) {
	t.Parallel()
	spec := executor.Spec{Key: executor.Key{Run: "run_old", Node: "n", Attempt: 1}, Fence: "old"}
	id := spec.Key.Folder()
	for name, before := range map[string]bool{"by a server": false, "at a start": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, conn, orders := t.TempDir(), make(chan net.Conn, 1), make(chan shim.Order, 10)
			work := filepath.Join(folder, id, "work")
			if err := os.MkdirAll(work, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(work, "large"), make([]byte, 3_000_000), 0o600); err != nil {
				t.Fatal(err)
			}
			go serveOutdated(t, filepath.Join(folder, ".shim"), spec, conn, orders)
			<-conn // it listens
			var tasks executor.Freezer = local.LeftBehind{Folder: folder}
			var b drivertest.Fixture
			if before {
				keepRecord(t, folder, id)
			} else {
				b = drivertest.Fixture{Subject: bare(t, folder), Folder: folder}
				tasks = b.Driver.(executor.Freezer)
			}
			sizes, err := tasks.Freeze(t.Context())
			if err == nil || len(sizes) != 1 || sizes[0].ID != id || sizes[0].Bytes < 3_000_000 || sizes[0].Files != 1 {
				t.Fatalf("%+v, %v", sizes, err)
			}
			if before { // the link was one of its own
				return
			}
			evicted := make(chan error, 1)
			go func() { evicted <- tasks.Evict(t.Context(), id) }()
			if o := <-orders; o.Stop == nil || o.Stop.ID != id {
				t.Errorf("it is told %+v", o)
			}
			say(t, <-conn, shim.Report{Record: &shim.Record{ID: id, Fence: "old", Exit: &shim.Exit{Fence: "old", Code: 143, Stopped: true}}})
			if err := <-evicted; err != nil {
				t.Error(err)
			}
			if seen, _ := b.Find(t, executor.Handle{Driver: local.Name, Key: spec.Key, Fence: "old", ID: id}); seen.Reason != executor.Evicted {
				t.Errorf("it ended as %s", seen.Reason)
			}
			if _, err := os.Stat(work); !os.IsNotExist(err) {
				t.Errorf("its files: %v", err)
			}
		})
	}
}

// keepRecord writes down that an attempt runs, as a shim does.
func keepRecord(t *testing.T, folder, id string) {
	t.Helper()
	text, err := json.Marshal(shim.Record{ID: id, Fence: "old"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, ".shim", "journal"), append(text, '\n'), 0o600); err != nil {
		t.Fatal(err)
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
