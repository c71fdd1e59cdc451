package operator

import (
	"context"
	"time"
)

// FailureStore keeps the newest failures.
type FailureStore interface {
	RecordFailure(ctx context.Context, f Failure) error
}

// Recorder writes down which requests failed, beside those requests.
type Recorder struct {
	store FailureStore
	host  string
	now   func() time.Time
	news  chan Failure
}

// waiting is how many failures wait to be written; what is more is in the log
// alone.
const waiting = 100

// NewRecorder makes one for a server.
func NewRecorder(store FailureStore, host string, now func() time.Time) *Recorder {
	return &Recorder{store: store, host: host, now: now, news: make(chan Failure, waiting)}
}

// Record notes a failure and never waits.
func (r *Recorder) Record(requestID, route, code string) {
	select {
	case r.news <- Failure{At: r.now(), RequestID: requestID, Route: route, Code: code, Host: r.host}:
	default:
	}
}

// Run writes failures until ctx ends. One that cannot be written, as while the
// database is away, is in the log.
func (r *Recorder) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-r.news:
			_ = r.store.RecordFailure(ctx, f)
		}
	}
}
