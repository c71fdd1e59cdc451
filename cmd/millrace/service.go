package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// listen returns the socket that the service manager has opened, or opens one. With a
// socket of the manager's, clients wait while the server restarts, and are not refused.
func listen(address string) (net.Listener, error) {
	given, err := activation.Listeners()
	if err != nil {
		return nil, err
	}
	if len(given) > 1 {
		return nil, fmt.Errorf("the service manager hands over %d sockets: one is enough", len(given))
	}
	if len(given) == 1 && given[0] != nil {
		return given[0], nil
	}
	return net.Listen("tcp", address)
}

// tellServiceManager says that we are ready, from then on that we are alive, as often as is
// asked for, and when ctx ends that we stop. That nobody hears it, such as a unit
// that is gone but whose variables were inherited, is no reason to stop.
func tellServiceManager(ctx context.Context, log *slog.Logger, alive func(context.Context) bool) {
	say := func(state string) bool {
		sent, err := daemon.SdNotify(false, state)
		if err != nil {
			log.Warn("the service manager does not hear us", slog.String("state", state), slog.Any("error", err))
		}
		return sent && err == nil
	}
	if !say(daemon.SdNotifyReady) {
		return
	}
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("cannot tell how often the service manager wants to hear from us", slog.Any("error", err))
	}
	var due <-chan time.Time
	if interval > 0 {
		ticker := time.NewTicker(interval / 3)
		defer ticker.Stop()
		due = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			say(daemon.SdNotifyStopping)
			return
		case <-due:
			if alive(ctx) {
				say(daemon.SdNotifyWatchdog)
			}
		}
	}
}

// alwaysAlive is for those whom nobody can ask.
func alwaysAlive(context.Context) bool { return true }

// answersAt asks a handler whether it is alive. It asks in a goroutine of its own,
// since one that hangs would never say so.
func answersAt(h http.Handler, path string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		if err != nil {
			return false
		}
		done := make(chan int, 1)
		go func() {
			w := &answer{header: http.Header{}}
			h.ServeHTTP(w, r)
			done <- w.status
		}()
		select {
		case status := <-done:
			return status == http.StatusOK
		case <-ctx.Done():
			return false
		}
	}
}

// answer keeps only the status.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return len(p), nil
}
