package main

import (
	"context"
	"os"
	"runtime"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/freedisk"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/store"
)

// aboutSettings are those that operators are shown.
type aboutSettings struct {
	Version, SignUp                  string
	DatabaseURL, StorageURL, SMTPURL string // of which only is shown whether they are set
}

// operatorWorkers are those of this process and of others.
type operatorWorkers interface {
	Wake()
	Cancel(id ids.Run)
}

// newOperator makes the room for operators.
func newOperator(s aboutSettings, db *store.DB, disk *freedisk.Watch, work operatorWorkers, catalog credits.Catalog, sendSoon func(), deletePerson func(context.Context, ids.User) ([]ids.Team, error)) *operator.Service {
	about := operator.About{
		Version: s.Version, Go: runtime.Version(), License: "Apache-2.0", SignUp: s.SignUp,
		Database: choose(s.DatabaseURL, "postgresql", "sqlite"), Objects: choose(s.StorageURL, "s3", "folder"), Mail: choose(s.SMTPURL, "smtp", "folder"),
		StartedAt: db.Now(),
	}
	return operator.NewService(operator.Options{
		Operators: db, Runs: db, Keeping: db, Changes: db, Notices: db, Mailbox: db, People: db, Delete: deletePerson, SendSoon: sendSoon, Wake: work.Wake, Cancel: work.Cancel, Catalog: catalog, About: about, Now: db.Now,
		Disk: func() operator.Disk {
			space, state := disk.Measure()
			return operator.Disk{Total: space.Total, Free: space.Free, Files: space.Files, FreeFiles: space.FreeFiles, State: state}
		},
	})
}

func choose(setting, set, unset string) string {
	if setting != "" {
		return set
	}
	return unset
}

// failureRecorder writes down which requests to this server fail.
func failureRecorder(db *store.DB) *operator.Recorder {
	host, _ := os.Hostname() // only to tell people where the log is
	return operator.NewRecorder(db, host, db.Now)
}
