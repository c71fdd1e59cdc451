package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/alecthomas/kong"
)

// reloader reads what can change while a server runs again when it is told to by SIGHUP:
// the certificate, and the settings that are named in reloadable.
type reloader struct {
	asked       chan os.Signal
	level       slog.LevelVar
	certificate atomic.Pointer[tls.Certificate]

	given map[string]any // the settings in force, by name
	read  func() (map[string]any, error)
	log   *slog.Logger
}

// reloadable are the settings that take effect without a restart. Those of the certificate
// do so only where there was one and is one: whether TLS is served is decided at the start.
var reloadable = []string{"log-level", "tls-cert", "tls-key"}

// newReloader has the process heed SIGHUP from now on, and makes its logger.
func newReloader(w console, s *settings) *reloader {
	r := &reloader{asked: make(chan os.Signal, 1), given: w.given, read: w.readAgain}
	signal.Notify(r.asked, syscall.SIGHUP)
	r.setLevel()
	r.log = s.Logger(w.errOut, &r.level)
	return r
}

// Run reloads whenever it is asked to, until ctx ends. SIGHUP is heeded even then: left to
// itself it would end a process that drains.
func (r *reloader) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.asked:
			r.reload(ctx)
		}
	}
}

func (r *reloader) reload(ctx context.Context) {
	var changed, restart []string
	if next, err := r.read(); err != nil {
		r.log.ErrorContext(ctx, "cannot read the settings again: they stay as they are", slog.Any("error", err))
	} else {
		changed, restart = r.apply(next)
	}
	if err := r.loadCertificate(); err != nil {
		r.log.ErrorContext(ctx, "cannot reload the certificate: it stays as it is", slog.Any("error", err))
	}
	r.log.InfoContext(ctx, "reloaded", slog.Any("settings", changed), slog.Bool("certificate", r.certificate.Load() != nil))
	if len(restart) > 0 {
		r.log.WarnContext(ctx, "these settings have changed and need a restart", slog.Any("settings", restart))
	}
}

// apply puts settings in force, as far as they can change, and names those that have.
func (r *reloader) apply(next map[string]any) (changed, restart []string) {
	fixed := (textOf(r.given, "tls-cert") == "") != (textOf(next, "tls-cert") == "")
	for _, name := range slices.Sorted(maps.Keys(next)) {
		switch {
		case reflect.DeepEqual(r.given[name], next[name]):
		case fixed && strings.HasPrefix(name, "tls-"):
			restart = append(restart, name)
		case slices.Contains(reloadable, name):
			r.given[name] = next[name]
			changed = append(changed, name)
		default:
			restart = append(restart, name)
		}
	}
	r.setLevel()
	return changed, restart
}

func (r *reloader) text(name string) string { return textOf(r.given, name) }

func textOf(settings map[string]any, name string) string {
	text, _ := settings[name].(string)
	return text
}

func (r *reloader) setLevel() {
	var level slog.Level
	_ = level.UnmarshalText([]byte(r.text("log-level"))) // one of the flag's own words
	r.level.Set(level)
}

// loadCertificate reads the certificate that TLS is ended with, if there is one.
func (r *reloader) loadCertificate() error {
	if r.text("tls-cert") == "" {
		return nil
	}
	certificate, err := tls.LoadX509KeyPair(r.text("tls-cert"), r.text("tls-key"))
	if err == nil {
		r.certificate.Store(&certificate)
	}
	return err
}

// tlsConfig serves the certificate as it was last loaded.
func (r *reloader) tlsConfig() *tls.Config {
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.certificate.Load(), nil }}
}

// flagValues are the settings of a command line, by name.
func flagValues(parsed *kong.Context) map[string]any {
	values := map[string]any{}
	for _, flag := range parsed.Flags() {
		values[flag.Name] = parsed.FlagValue(flag)
	}
	return values
}
