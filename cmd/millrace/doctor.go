package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/millrace/millrace/clients"
	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/clock"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/store"
)

type doctorCommand struct {
	settings `embed:""`
}

// finding is one thing the doctor looked at. A warning is worth knowing and
// no reason to fail.
type finding struct {
	what    string
	err     error
	warning bool
}

// Run looks at everything, prints what it found, and fails if something must
// be mended.
func (c *doctorCommand) Run(w console) error {
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	var bad int
	for _, f := range c.examine(ctx, w) {
		sign := "ok     "
		switch {
		case f.err != nil && f.warning:
			sign = "warning"
		case f.err != nil:
			sign = "WRONG  "
			bad++
		}
		fmt.Fprintf(w.out, "%s  %s", sign, f.what)
		if f.err != nil {
			fmt.Fprintf(w.out, ": %v", f.err)
		}
		fmt.Fprintln(w.out)
	}
	if bad > 0 {
		return fmt.Errorf("%d of these must be fixed", bad)
	}
	return nil
}

func (c *doctorCommand) examine(ctx context.Context, w console) []finding {
	s := &c.settings
	fresh := s.isFresh(ctx)
	sandbox, limits := s.checkSandbox(ctx)
	objects, lost := s.checkObjects(ctx)
	packages, conda := s.EnvironmentSettings.Check(ctx, s.Sandbox, s.FetchAllowPrivate)
	list := []finding{
		{what: "settings", err: errors.Join(w.unknown, s.problems())},
		{what: "secrets", err: exposure(w.exposed), warning: true},
		s.checkFolder(),
		{what: "free disk space", err: s.checkDisk(), warning: true},
		s.checkDatabase(ctx, fresh),
		{what: "clock", err: s.checkClock(ctx), warning: true},
		{what: "stored files" + objects, err: lost},
		s.checkOutputs(ctx),
		s.checkMarks(ctx),
		{what: "files of several servers", err: s.checkShared(ctx)},
		{what: "mail", err: s.checkMail(ctx)},
		{what: "issuers that people sign in through", err: s.checkIssuers(ctx)},
		{what: "public addresses", err: s.checkPublic(), warning: true},
		{what: "bubblewrap (isolates tasks)", err: sandbox, warning: true},
		{what: "user namespaces", err: s.checkUserNamespaces(sandbox)},
		{what: "limits of tasks", err: limits, warning: true},
		{what: "container images", err: s.checkImages(ctx), warning: true},
		{what: "environments of packages", err: packages, warning: true},
		{what: "conda packages", err: conda, warning: true},
		{what: "engines of pipelines", err: s.CheckEngines(), warning: true},
		{what: "pdftotext (reads papers)", err: checkTool("pdftotext", "poppler-utils"), warning: true},
		{what: "clients that people install", err: clients.New(s.ClientsFolder).Check(), warning: true},
		{what: "contact address (asked for by Unpaywall and others)", err: s.checkContact(), warning: true},
	}
	list = append(list, s.checkPorts(ctx)...)
	if s.TLSCert != "" {
		list = append(list, s.checkCertificate(time.Now()))
	}
	all, err := s.executors()
	if err != nil {
		return append(list, finding{what: "executors", err: err})
	}
	for i, err := range executors.TryAll(ctx, all, s.Sandbox) {
		list = append(list, finding{what: "executor " + all[i].Name, err: err})
	}
	return list
}

func (s *settings) checkFolder() finding {
	f := finding{what: "data folder " + s.Data}
	info, err := os.Stat(s.Data)
	switch {
	case errors.Is(err, os.ErrNotExist):
		f.what += " (does not exist yet; the server makes it)"
	case err != nil:
		f.err = err
	case info.Mode().Perm()&0o077 != 0:
		f.err = fmt.Errorf("others on this machine can look into it (%v): chmod 700", info.Mode().Perm())
	default:
		f.err = s.checkData(context.Background())
	}
	return f
}

// isFresh reports whether no server was ever started on these settings.
func (s *settings) isFresh(ctx context.Context) bool {
	if s.CheckSettings() != nil || s.CheckFinished() != nil {
		return false
	}
	if s.Embedded() {
		_, err := os.Stat(s.File())
		return errors.Is(err, os.ErrNotExist) && !installation.HasMoved(s.File())
	}
	empty, err := store.IsEmpty(ctx, s.URL())
	return err == nil && empty
}

func (s *settings) checkDatabase(ctx context.Context, fresh bool) finding {
	if fresh {
		return finding{what: "database (empty; the server makes its tables)"}
	}
	db, err := s.OpenBeside(ctx, credits.DefaultCatalog())
	if err == nil {
		err = errors.Join(db.Ping(ctx), db.Close())
	}
	return finding{what: "database", err: err}
}

// exposure warns of secrets on the command line.
func exposure(names []string) error {
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s on the command line: everybody on this machine can read it; use a file, such as --secret-key-file, or --config", strings.Join(names, ", "))
}

// checkClock compares the clock of this machine with the database's.
func (s *settings) checkClock(ctx context.Context) error {
	db, err := s.OpenBeside(ctx, credits.DefaultCatalog())
	if err != nil {
		return nil // the check of the database says why
	}
	return errors.Join(db.Clock().Check(clock.Tolerance), db.Close())
}

func (s *settings) checkMail(ctx context.Context) error {
	if s.SMTPURL == "" {
		return nil
	}
	if _, _, err := s.mailTransport(time.Now); err != nil {
		return err
	}
	u, err := url.Parse(s.SMTPURL)
	if err != nil {
		return err
	}
	return greets(ctx, u)
}

func (s *settings) checkPublic() error {
	for _, text := range s.PublicURLs {
		if u, err := url.Parse(text); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
			return fmt.Errorf("%s is not https: browsers will not keep people signed in", text)
		}
	}
	return nil
}

// checkSandbox tries a real task, because bubblewrap may be there and not be
// allowed to work. The second error lists the limits that this machine does not
// enforce.
func (s *settings) checkSandbox(ctx context.Context) (sandbox, limits error) {
	folder, err := os.MkdirTemp("", "millrace-doctor-")
	if err != nil {
		return err, nil
	}
	defer os.RemoveAll(folder)
	driver, err := local.New(ctx, local.Config{Folder: folder, Log: slog.New(slog.DiscardHandler), Now: time.Now, Sandbox: local.Sandbox(s.Sandbox)})
	if err != nil {
		return err, nil
	}
	defer driver.Close()
	caps, err := driver.Capabilities(ctx)
	switch {
	case err != nil:
		return err, nil
	case !caps.Ready:
		return errors.New(caps.Problem), errors.New("no task starts, so that none was looked at")
	case s.Sandbox == "none":
		sandbox = errors.New("--sandbox none: tasks run without isolation")
	}
	var not []string
	for _, limit := range caps.NotEnforced {
		not = append(not, limit+notEnforced[limit])
	}
	if len(not) > 0 {
		limits = fmt.Errorf("this machine does not enforce: %s", strings.Join(not, "; "))
	}
	return sandbox, limits
}

// notEnforced says what a limit means that is not enforced.
var notEnforced = map[string]string{
	"memory": " (no control group can be written; it is measured, and a task that uses too much is ended a moment later)",
	"cpu":    " (no control group can be written; a task may use more processors than it was given)",
}

func checkTool(name, pkg string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("is missing: apt-get install %s", pkg)
	}
	return nil
}
