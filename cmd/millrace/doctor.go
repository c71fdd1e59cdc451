package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/millrace/millrace/clients"
	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/internal/clock"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/engine/executor/local"
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
	for _, f := range c.examine(ctx) {
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

func (c *doctorCommand) examine(ctx context.Context) []finding {
	s := &c.settings
	sandbox, limits := s.checkSandbox(ctx)
	objects, lost := s.checkObjects(ctx)
	packages, conda := s.EnvironmentSettings.Check(ctx, s.Sandbox, s.FetchAllowPrivate)
	list := []finding{
		{what: "settings", err: s.problems()},
		{what: "data folder " + s.Data, err: s.checkFolder()},
		{what: "free disk space", err: s.checkDisk(), warning: true},
		{what: "database", err: s.checkDatabase(ctx)},
		{what: "clock", err: s.checkClock(ctx), warning: true},
		{what: "stored files" + objects, err: lost},
		s.checkOutputs(ctx),
		s.checkMarks(ctx),
		{what: "files of several servers", err: s.checkShared(ctx)},
		{what: "mail", err: s.checkMail(ctx)},
		{what: "public addresses", err: s.checkPublic(), warning: true},
		{what: "bubblewrap (isolates tasks)", err: sandbox, warning: true},
		{what: "limits of tasks", err: limits, warning: true},
		{what: "container images", err: s.checkImages(ctx), warning: true},
		{what: "environments of packages", err: packages, warning: true},
		{what: "conda packages", err: conda, warning: true},
		{what: "engines of pipelines", err: s.CheckEngines(), warning: true},
		{what: "pdftotext (reads papers)", err: checkTool("pdftotext", "poppler-utils"), warning: true},
		{what: "clients that people install", err: clients.New(s.ClientsFolder).Check(), warning: true},
		{what: "contact address (asked for by Unpaywall and others)", err: s.checkContact(), warning: true},
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

func (s *settings) checkFolder() error {
	info, err := os.Stat(s.Data)
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("does not exist yet; the server creates it at start")
	}
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others on this machine can look into it (%v): chmod 700", info.Mode().Perm())
	}
	return s.checkData(context.Background())
}

func (s *settings) checkDatabase(ctx context.Context) error {
	db, err := s.OpenBeside(ctx, credits.DefaultCatalog())
	if err != nil {
		return err
	}
	return errors.Join(db.Ping(ctx), db.Close())
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
	port := u.Port()
	if port == "" {
		port = "25"
	}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return fmt.Errorf("the mail server does not answer: %w", err)
	}
	return conn.Close()
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
