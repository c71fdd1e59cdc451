package kernel

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A handler that its deadline ended may fail with any words, such as those of a
// transaction that was rolled back. That is a 503, while the same words in time
// are a failure of ours, and a slow route has no deadline.
func TestWhatWaitedTooLongIsAnsweredWith503(t *testing.T) {
	for name, c := range map[string]struct {
		slow, longer bool
		after        time.Duration
		want         int
	}{
		"in time":            {false, false, time.Second, http.StatusInternalServerError},
		"too late":           {false, false, time.Minute, http.StatusServiceUnavailable},
		"a slow route":       {true, false, time.Minute, http.StatusInternalServerError},
		"a request that may": {false, true, time.Minute, http.StatusInternalServerError},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{Log: slog.New(slog.DiscardHandler), Metrics: NewMetrics(prometheus.NewRegistry()), Now: time.Now, PublicURLs: []string{"http://localhost"}})
			w := httptest.NewRecorder()
			s.serve(Route{Pattern: "GET /x", Who: Anybody, Slow: c.slow, Handle: func(x *Exchange) (Answer, error) {
				if c.longer {
					x.TakeLonger()
				}
				select {
				case <-x.Context().Done():
				case <-time.After(c.after):
				}
				return Answer{}, errors.New("the transaction has ended")
			}}, w, httptest.NewRequest("GET", "/x", nil))
			if w.Code != c.want || (w.Header().Get("Retry-After") != "") != (c.want == http.StatusServiceUnavailable) {
				t.Errorf("%s: %d %v, want %d", name, w.Code, w.Header(), c.want)
			}
		})
	}
}
