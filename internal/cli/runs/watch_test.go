package runs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/clitest"
)

func TestFetchedBytesAreShown(t *testing.T) {
	t.Parallel()
	const want = " 25 %  fetching inputs: 3.0 GB of 12.0 GB"
	if got := fetchingLine(api.Fetching{FetchedBytes: 3 << 30, TotalBytes: 12 << 30}); !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// copying is a run that has completed, whose outputs are copied from one look to the next.
func copying(t *testing.T, looks ...string) string {
	t.Helper()
	at := 0
	return clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/stream") {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: 0:0\ndata: {\"type\":\"done\",\"runId\":\"run_1\",\"status\":\"completed\"}\n\n")
			return
		}
		clitest.Answer(w, 200, `{"id":"run_1","status":"completed","creditsUsed":0,"nodes":[],"outputTo":{"url":"s3://lab/x/",`+looks[at]+`}}`)
		at = min(at+1, len(looks)-1)
	})
}

func TestWatchingWaitsForTheCopyOfTheOutputs(t *testing.T) {
	t.Parallel()
	const (
		waits   = `"state":"waiting","message":null`
		copies  = `"state":"copying","message":null,"copiedBytes":1,"bytes":4`
		trouble = `"state":"copying","message":"the bucket is away"`
		done    = `"state":"completed","message":null`
		failed  = `"state":"failed","message":"the bucket is gone"`
	)
	for name, tt := range map[string]struct {
		looks  []string
		prints string
		fails  string
		pauses int
	}{
		"that is there":        {[]string{done}, "copied to s3://lab/x/\n", "", 0},
		"that takes a while":   {[]string{waits, copies, copies, done}, "copied to s3://lab/x/\n", "", 3},
		"that is tried again":  {[]string{trouble, trouble, copies, trouble, done}, "Copying to s3://lab/x/ failed and is tried again: the bucket is away\n", "", 4},
		"that fails":           {[]string{copies, failed}, "", "the outputs were not copied to s3://lab/x/: the bucket is gone", 1},
		"that never was to be": {[]string{`"state":"skipped","message":null`}, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := clitest.New(t)
			err := watch(d.Session(t, copying(t, tt.looks...)), "run_1", false)
			if (err == nil) != (tt.fails == "") || err != nil && err.Error() != tt.fails || len(d.Slept) != tt.pauses {
				t.Errorf("%v after %d pauses", err, len(d.Slept))
			}
			if tt.prints != "" && strings.Count(d.Printed.String(), tt.prints) != 1 || strings.Contains(d.Printed.String(), "tried again") != strings.Contains(tt.prints, "tried again") {
				t.Errorf("it prints %q", d.Printed)
			}
		})
	}
	t.Run("until the person leaves", func(t *testing.T) {
		t.Parallel()
		d := clitest.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		d.Ctx = ctx
		s := d.Session(t, copying(t, copies))
		s.Sleep = func(context.Context, time.Duration) error { cancel(); return ctx.Err() }
		if err := watch(s, "run_1", false); err != (Left{"run_1"}) {
			t.Errorf("got %v", err)
		}
	})
}

// Why a run failed is printed with the step that failed, and at the end of all. Its own
// event would be a third time.
func TestWhyARunFailedIsNotRepeated(t *testing.T) {
	t.Parallel()
	const why = "Step boom exited with status 3"
	b := &broadcast{events: 2}
	failed := clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/events"):
			clitest.Answer(w, 200, `{"success":true,"data":{"events":[
				{"seq":1,"type":"node.failed","at":"2026-03-02T09:15:00.000Z","message":"`+why+`","data":{"log":"no"}},
				{"seq":2,"type":"run.failed","at":"2026-03-02T09:15:00.000Z","message":"`+why+`","data":{}}],"lastSeq":2,"hasMore":false}}`)
		case strings.HasSuffix(r.URL.Path, "/stream"):
			b.connections = []func(io.Writer){func(w io.Writer) {
				fmt.Fprint(w, "id: 2:0\ndata: {\"type\":\"snapshot\",\"runId\":\"run_1\",\"status\":\"failed\",\"seq\":2}\n\nid: 2:0\ndata: {\"type\":\"done\",\"runId\":\"run_1\",\"status\":\"failed\"}\n\n")
			}}
			b.ServeHTTP(w, r)
		default:
			clitest.Answer(w, 200, `{"id":"run_1","status":"failed","errorMessage":"`+why+`","creditsUsed":0,"nodes":[]}`)
		}
	})
	d := clitest.New(t)
	err := watch(d.Session(t, failed), "run_1", false)
	if err == nil || err.Error() != "run_1 failed: "+why {
		t.Errorf("got %v", err)
	}
	if n := strings.Count(d.Printed.String(), why); n != 1 {
		t.Errorf("it prints the reason %d times: %s", n, d.Printed)
	}
}
