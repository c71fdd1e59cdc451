package connections_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/remote"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

const secret = "wJalrXUtnFEMI-K7MDENG"

// bench is the room on a real database, with a bucket that answers as it is told.
type bench struct {
	*connections.Service
	t      *testing.T
	db     *store.DB
	clock  *storetest.Clock
	ada    access.Caller
	bucket string

	mu     sync.Mutex
	answer http.HandlerFunc
	asked  []string // prefixes
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := &bench{t: t, db: db, clock: storetest.NewClock(), ada: storetest.Owner(t, db, "ada")}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b.mu.Lock()
			b.asked = append(b.asked, r.URL.Query().Get("prefix"))
			answer := b.answer
			b.mu.Unlock()
			if answer != nil {
				answer(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, `<ListBucketResult><Name>lab</Name><Contents><Key>reads/a.fq</Key><Size>7</Size></Contents></ListBucketResult>`)
		}))
		t.Cleanup(server.Close)
		b.bucket = server.URL
		b.Service = connections.NewService(db, remote.New(true), connections.Rules{PlainHTTP: true}, b.clock.Now)
		test(t, b)
	})
}

func (b *bench) says(answer http.HandlerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

// denies is a bucket that repeats what it was sent.
func denies(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprintf(w, `<Error><Code>AccessDenied</Code><Message>%s %s</Message></Error>`, r.Header.Get("Authorization"), secret)
}

func (b *bench) lab() connections.New {
	return connections.New{
		Name: "lab", Type: connections.S3, Settings: connections.Settings{Endpoint: b.bucket, Bucket: "lab", Prefix: "reads", HostKey: "a lie"},
		Credentials: connections.Credentials{AccessKey: "AKIA", SecretKey: secret},
	}
}

func (b *bench) create(in connections.New) connections.Connection {
	b.t.Helper()
	c, err := b.Create(b.t.Context(), b.ada, in)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func TestWhoMayDoWhatWithConnections(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.create(b.lab())
		const no = fault.KindForbidden
		for role, may := range map[access.Role]struct{ see, use, manage fault.Kind }{
			access.Owner: {}, access.Admin: {}, access.Member: {"", "", no}, access.Viewer: {no, no, no}, access.GuestEditor: {no, no, no},
		} {
			as := b.ada
			as.Role = role
			_, err := b.Connections(t.Context(), as)
			storetest.Refused(t, string(role)+" sees them", err, may.see)
			storetest.Refused(t, string(role)+" knows one", b.Known(t.Context(), as, c.ID), may.use)
			_, err = b.Test(t.Context(), as, c.ID)
			storetest.Refused(t, string(role)+" tests one", err, may.use)
			_, err = b.Objects(t.Context(), as, c.ID, "", "")
			storetest.Refused(t, string(role)+" looks into one", err, may.use)
			made, err := b.Create(t.Context(), as, b.lab())
			storetest.Refused(t, string(role)+" makes one", err, may.manage)
			if err == nil {
				storetest.Refused(t, string(role)+" deletes one", b.Delete(t.Context(), as, made.ID), "")
			} else {
				storetest.Refused(t, string(role)+" deletes one", b.Delete(t.Context(), as, c.ID), no)
			}
		}
		// Of another team there is nothing.
		eve := storetest.Owner(t, b.db, "eve")
		storetest.Refused(t, "known to others", b.Known(t.Context(), eve, c.ID), fault.KindNotFound)
		_, err := b.Test(t.Context(), eve, c.ID)
		storetest.Refused(t, "tested by others", err, fault.KindNotFound)
		_, err = b.Objects(t.Context(), eve, c.ID, "reads/", "")
		storetest.Refused(t, "looked into by others", err, fault.KindNotFound)
		storetest.Refused(t, "deleted by others", b.Delete(t.Context(), eve, c.ID), fault.KindNotFound)
		storetest.Refused(t, "deleted", b.Delete(t.Context(), b.ada, c.ID), "")
		storetest.Refused(t, "deleted twice", b.Delete(t.Context(), b.ada, c.ID), fault.KindNotFound)
		_, err = b.Test(t.Context(), b.ada, c.ID)
		storetest.Refused(t, "tested when it is gone", err, fault.KindNotFound)
	})
}

// A connection that does not work is kept, and says why without a word of the
// other side's.
func TestAConnectionSaysHowItWent(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		good := b.create(b.lab())
		if !good.Test.OK || good.Test.Message != "it works" || good.Prefix != "reads/" || good.HostKey != "" || good.Hint != "DENG" || good.CreatorName != "ada" {
			t.Errorf("%+v", good)
		}
		b.says(denies)
		bad := b.create(b.lab())
		list, err := b.Connections(t.Context(), b.ada)
		if err != nil || len(list) != 2 || list[0].ID != bad.ID || list[0].Test.OK || list[0].Test.Message == "" {
			t.Fatalf("%+v, %v", list, err)
		}
		if text := fmt.Sprintf("%+v %+v", bad, list); strings.Contains(text, secret) || strings.Contains(text, "AKIA") {
			t.Errorf("it shows %s", text)
		}
		b.says(nil)
		again, err := b.Test(t.Context(), b.ada, bad.ID)
		if err != nil || !again.OK || !again.At.After(bad.Test.At) {
			t.Errorf("%+v, %v", again, err)
		}
		if list, err = b.Connections(t.Context(), b.ada); err != nil || !list[0].Test.OK || list[0].Prefix != "reads/" {
			t.Errorf("it is not noted: %+v, %v", list, err)
		}
		// Whoever leaves while the other side is asked leaves nothing behind.
		ctx, leave := context.WithCancel(t.Context())
		b.says(func(_ http.ResponseWriter, r *http.Request) {
			leave()
			<-r.Context().Done()
		})
		if _, err := b.Create(ctx, b.ada, b.lab()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if list, err = b.Connections(t.Context(), b.ada); err != nil || len(list) != 2 {
			t.Errorf("%d connections, %v", len(list), err)
		}
		_, err = b.Create(t.Context(), b.ada, connections.New{Type: connections.S3})
		if e, ok := errors.AsType[*fault.Error](err); !ok || len(e.Details) != 2 {
			t.Errorf("got %v", err)
		}
	})
}

func TestABucketIsSeenBelowItsPrefix(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.create(b.lab())
		b.asked = nil
		for prefix, want := range map[string]fault.Kind{"": "", "reads/": "", "reads/2026/": "", "reads": fault.KindForbidden, "other/": fault.KindForbidden, "reads-of-others/": fault.KindForbidden} {
			list, err := b.Objects(t.Context(), b.ada, c.ID, prefix, "")
			storetest.Refused(t, prefix, err, want)
			if want == "" && (len(list.Objects) != 1 || list.Objects[0].URL != "s3://lab/reads/a.fq" || list.Objects[0].Name != "a.fq") {
				t.Errorf("%q: %+v", prefix, list)
			}
		}
		for _, prefix := range b.asked {
			if !strings.HasPrefix(prefix, "reads/") {
				t.Errorf("the bucket was asked for %q", prefix)
			}
		}
		b.says(denies)
		_, err := b.Objects(t.Context(), b.ada, c.ID, "", "")
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || e.Code != "connection_failed" || !strings.HasPrefix(e.Message, "lab: ") || strings.Contains(e.Message, secret) {
			t.Errorf("got %v", err)
		}
		host := b.create(connections.New{Name: "web", Type: connections.HTTPS, Settings: connections.Settings{Host: "127.0.0.1:1"}, Credentials: connections.Credentials{Token: "t"}})
		_, err = b.Objects(t.Context(), b.ada, host.ID, "", "")
		storetest.Refused(t, "the objects of a host", err, fault.KindInvalid)
	})
}

// Of many who make the last one at once, one has it.
func TestTheLastConnectionIsMadeOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for i := range connections.MaxConnections - 1 {
			c := connections.Connection{ID: ids.NewConnection(), Team: b.ada.Team, Name: fmt.Sprint(i), Type: connections.HTTPS, CreatedBy: b.ada.User}
			if _, err := b.db.AddConnection(t.Context(), c, connections.Credentials{}, connections.MaxConnections); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		made := 0
		for range 4 {
			wg.Go(func() {
				_, err := b.Create(t.Context(), b.ada, b.lab())
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					made++
				} else if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "too_many_connections" {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if list, err := b.Connections(t.Context(), b.ada); err != nil || made != 1 || len(list) != connections.MaxConnections {
			t.Errorf("%d were made, there are %d, %v", made, len(list), err)
		}
	})
}
