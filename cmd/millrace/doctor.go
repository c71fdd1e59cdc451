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
	"syscall"
	"time"

	"github.com/millrace/millrace/cmd/millrace/executors"
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
	list := []finding{
		{what: "settings", err: s.problems()},
		{what: "data folder " + s.Data, err: s.checkFolder()},
		{what: "free disk space", err: s.checkDisk(), warning: true},
		{what: "database", err: s.checkDatabase(ctx)},
		{what: "stored files", err: s.checkObjects(ctx)},
		{what: "files of several servers", err: s.checkShared(ctx)},
		{what: "mail", err: s.checkMail(ctx)},
		{what: "public addresses", err: s.checkPublic(), warning: true},
		{what: "bubblewrap (isolates tasks)", err: s.checkSandbox(ctx), warning: true},
		{what: "container images", err: s.checkImages(ctx), warning: true},
		{what: "environments (uv)", err: s.EnvironmentSettings.Check(ctx, s.Sandbox, s.FetchAllowPrivate), warning: true},
		{what: "engines of pipelines", err: s.CheckEngines(), warning: true},
		{what: "pdftotext (reads papers)", err: checkTool("pdftotext", "poppler-utils"), warning: true},
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

const enoughDisk = 1 << 30

func (s *settings) checkDisk() error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(s.Data, &fs); err != nil {
		return err
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < enoughDisk {
		return fmt.Errorf("%d MB are left, less than 1 GB", free>>20)
	}
	return nil
}

func (s *settings) checkDatabase(ctx context.Context) error {
	db, err := s.OpenBeside(ctx, credits.DefaultCatalog())
	if err != nil {
		return err
	}
	return errors.Join(db.Ping(ctx), db.Close())
}

func (s *settings) checkMail(ctx context.Context) error {
	if s.SMTPURL == "" {
		return nil
	}
	if _, _, err := s.mailTransport(); err != nil {
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
// allowed to work, and names the limits that this machine does not hold.
func (s *settings) checkSandbox(ctx context.Context) error {
	if s.Sandbox == "none" {
		return errors.New("--sandbox none: tasks run without isolation")
	}
	folder, err := os.MkdirTemp("", "millrace-doctor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	driver, err := local.New(ctx, local.Config{Folder: folder, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		return err
	}
	defer driver.Close()
	caps, err := driver.Capabilities(ctx)
	switch {
	case err != nil:
		return err
	case !caps.Ready:
		return errors.New(caps.Problem)
	case len(caps.NotEnforced) > 0:
		return fmt.Errorf("works, but the control groups here do not hold a task's %s; it is measured instead", strings.Join(caps.NotEnforced, " and "))
	}
	return nil
}

func checkTool(name, pkg string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("is missing: apt-get install %s", pkg)
	}
	return nil
}
