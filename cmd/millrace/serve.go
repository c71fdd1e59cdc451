package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/cmd/millrace/capabilities"
	"github.com/millrace/millrace/internal/store"
)

type serveCommand struct {
	settings `embed:""`
}

// Run serves until SIGTERM, then drains.
func (c *serveCommand) Run(w console) error {
	s := &c.settings
	if err := errors.Join(w.unknown, s.problems()); err != nil {
		return err
	}
	reload := newReloader(w, s)
	log := reload.log
	warnOfExposed(log, w.exposed)
	if err := reload.loadCertificate(); err != nil {
		return fmt.Errorf("cannot read the certificate: %w", err)
	}
	if err := s.MakeData(); err != nil {
		return err
	}
	release, err := s.LockData()
	if err != nil {
		return err
	}
	defer release()
	if err := s.makeRoom(w.ctx, log); err != nil {
		return err
	}
	db, err := migrated(w.ctx, s, log)
	if err != nil {
		return explainFull(err, s.Data)
	}
	err = c.serve(w, db, reload)
	return errors.Join(explainFull(err, s.Data), db.Close())
}

// migrated opens the database after bringing its schema up to date.
func migrated(ctx context.Context, s *settings, log *slog.Logger) (*store.DB, error) {
	applied, err := s.Migrate(ctx)
	if err != nil {
		return nil, err
	}
	if len(applied) > 0 {
		log.InfoContext(ctx, "migrated the database", slog.Int("steps", len(applied)))
	}
	catalog, err := s.catalog()
	if err != nil {
		return nil, err
	}
	return s.OpenStore(ctx, catalog)
}

func (c *serveCommand) serve(w console, db *store.DB, reload *reloader) error {
	log := reload.log
	l, err := listen(c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", c.Listen, err)
	}
	defer l.Close()
	if err := capabilities.KeepToOurselves(); err != nil {
		return err
	}
	origins := c.origins(l.Addr())
	if len(c.PublicURLs) == 0 && !c.private(origins) {
		log.Warn("others can reach this server, but --public-urls does not say under which address: browsers cannot sign in", slog.String("assumed", origins[0]))
	}
	h, err := build(w.ctx, &c.settings, db, log, origins)
	if err != nil {
		return err
	}
	if err := h.accounts.Keys.Rotate(w.ctx); err != nil {
		return err
	}
	if err := c.showFirstLink(w.ctx, h.accounts, log, origins[0]); err != nil {
		return err
	}
	if c.Embedded() { // nobody else can be receiving anything
		if err := h.recover(w.ctx); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(w.ctx)
	h.background(ctx, g)
	g.Go(func() error { return reload.Run(ctx) })
	if err := c.serveAdmin(ctx, w, g, h); err != nil {
		return err
	}
	srv := newServer(h.handler, log)
	srv.TLSConfig = reload.tlsConfig()
	g.Go(func() error {
		return serveHTTP(ctx, srv, l, func(l net.Listener) error {
			if c.TLSCert != "" {
				return srv.ServeTLS(l, "", "")
			}
			return srv.Serve(l)
		}, c.Drain)
	})
	g.Go(func() error { tellServiceManager(ctx, log, answersAt(h.handler, origins[0]+"/api/health")); return nil })
	fmt.Fprintf(w.out, "Millrace %s is running at %s (listening on %s)\n", version, origins[0], l.Addr())
	err = errors.Join(g.Wait(), h.tools.Close(), h.software.Close())
	if failed := h.endTraces(w.ctx); failed != nil {
		log.Warn("some traces were not sent", slog.Any("error", failed))
	}
	log.Info("stopped")
	return err
}

func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, MaxHeaderBytes: 64 << 10,
		// A route that streams or takes large bodies sets deadlines of its own.
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// serveAdmin serves metrics and profiles on their own listener, if asked.
func (s *settings) serveAdmin(ctx context.Context, w console, g *errgroup.Group, h *application) error {
	if s.AdminListen == "" {
		return nil
	}
	l, err := net.Listen("tcp", s.AdminListen)
	if err != nil {
		return fmt.Errorf("cannot listen on --admin-listen %s: %w", s.AdminListen, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(w.out, "Metrics are at http://%s/metrics\n", l.Addr())
	g.Go(func() error { return serveHTTP(ctx, srv, l, srv.Serve, time.Second) })
	return nil
}

type workerCommand struct {
	settings `embed:""`
}

// Run does the work that waits in the database, without serving anybody.
func (c *workerCommand) Run(w console) error {
	s := &c.settings
	if err := errors.Join(w.unknown, s.problems()); err != nil {
		return err
	}
	if s.Embedded() {
		return errors.New("a worker of its own needs --database-url postgres://…: the embedded database belongs to `millrace serve`, which works by itself")
	}
	reload := newReloader(w, s)
	warnOfExposed(reload.log, w.exposed)
	if err := s.MakeData(); err != nil {
		return err
	}
	release, err := s.LockData()
	if err != nil {
		return err
	}
	defer release()
	if err := s.makeRoom(w.ctx, reload.log); err != nil {
		return err
	}
	catalog, err := s.catalog()
	if err != nil {
		return err
	}
	db, err := s.OpenStore(w.ctx, catalog)
	if err != nil {
		return explainFull(err, s.Data)
	}
	err = c.work(w, db, reload)
	return errors.Join(explainFull(err, s.Data), db.Close())
}

func (c *workerCommand) work(w console, db *store.DB, reload *reloader) error {
	log := reload.log
	if err := capabilities.KeepToOurselves(); err != nil {
		return err
	}
	origins := c.PublicURLs
	if len(origins) == 0 {
		origins = []string{"http://" + c.Listen}
	}
	h, err := build(w.ctx, &c.settings, db, log, origins)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(w.ctx)
	h.background(ctx, g)
	g.Go(func() error { return reload.Run(ctx) })
	if err := c.serveAdmin(ctx, w, g, h); err != nil {
		return err
	}
	g.Go(func() error { tellServiceManager(ctx, log, alwaysAlive); return nil })
	fmt.Fprintf(w.out, "Millrace %s works\n", version)
	err = errors.Join(g.Wait(), h.tools.Close(), h.software.Close())
	if failed := h.endTraces(w.ctx); failed != nil {
		log.Warn("some traces were not sent", slog.Any("error", failed))
	}
	log.Info("stopped")
	return err
}

type migrateCommand struct {
	databaseSettings `embed:""`
}

// Run migrates and says what it did.
func (c *migrateCommand) Run(w console) error {
	if err := c.MakeData(); err != nil {
		return err
	}
	if c.Embedded() {
		release, err := c.LockData()
		if err != nil {
			return err
		}
		defer release()
	}
	applied, err := c.Migrate(w.ctx)
	if err != nil {
		return err
	}
	for _, name := range applied {
		fmt.Fprintln(w.out, "applied", name)
	}
	fmt.Fprintln(w.out, "the database is up to date")
	return nil
}

// warnOfExposed logs the settings with secrets that everybody on the machine can read.
func warnOfExposed(log *slog.Logger, names []string) {
	if len(names) > 0 {
		log.Warn("everybody on this machine can read the command line of a process: put these settings into files, such as --secret-key-file, or into the file of --config", slog.Any("settings", names))
	}
}
