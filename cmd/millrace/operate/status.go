package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/store"
)

// Workers are the processes that execute runs.
type Workers struct {
	List    WorkerList    `cmd:"" help:"List workers with their load and versions."`
	Drain   WorkerDrain   `cmd:"" help:"Drain a worker: it finishes its runs and takes no new ones."`
	Undrain WorkerUndrain `cmd:"" help:"Let a drained worker take runs again."`
}

// WorkerList lists them.
type WorkerList struct {
	installation.Settings `embed:""`
}

// Run prints a table. IDs are short: as many letters as tell them apart.
func (c *WorkerList) Run(w Console) error {
	return c.Beside(w.Ctx, func(db *store.DB) error {
		list, err := Service(db).Workers(w.Ctx)
		if err != nil {
			return err
		}
		return table(w.Out, "ID\tHOST\tEXECUTOR\tVERSION\tRUNS\tVCPU\tRAM GB\tGPU\tSEEN\tSTATE", func(t io.Writer) {
			for _, one := range list {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d/%d\t%d/%d\t%d/%d\t%s\t%s\n", shortID(one, list), one.Host, orDash(one.Executor), orDash(one.Version), one.Runs,
					one.Used.VCPU, one.Size.VCPU, one.Used.RAMGB, one.Size.RAMGB, one.Used.GPU, one.Size.GPU, at(one.SeenAt), state(one))
			}
		})
	})
}

func state(w operator.Worker) string {
	switch {
	case w.Problem != "":
		return w.Problem
	case w.Draining:
		return "draining"
	case w.DiskLow:
		return "disk low"
	}
	return "fine"
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// leastLetters is how many letters of an ID are shown and asked for at least.
const leastLetters = 8

// code is what tells workers of one host apart.
func code(w operator.Worker) string {
	return strings.ToLower(strings.TrimPrefix(w.ID, w.Host+" "))
}

// shortID is the beginning of a worker's code that no other one has.
func shortID(w operator.Worker, all []operator.Worker) string {
	letters := leastLetters
	for _, other := range all {
		if other.ID == w.ID {
			continue
		}
		for letters < len(code(w)) && strings.HasPrefix(code(other), code(w)[:letters]) {
			letters++
		}
	}
	return code(w)[:min(letters, len(code(w)))]
}

// findWorker is the ID of the only worker that somebody can mean: by its ID, the beginning of
// its code, or its host.
func findWorker(ctx context.Context, room *operator.Service, text string) (string, error) {
	list, err := room.Workers(ctx)
	if err != nil {
		return "", err
	}
	return onlyWorker(list, text)
}

func onlyWorker(list []operator.Worker, text string) (string, error) {
	var found []string
	for _, w := range list {
		machine, _, _ := strings.Cut(w.Host, ":") // and the data folder
		switch {
		case w.ID == text:
			return w.ID, nil
		case w.Host == text, strings.EqualFold(machine, text), len(text) >= leastLetters && strings.HasPrefix(code(w), strings.ToLower(text)):
			found = append(found, w.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("there is no worker %q: millrace admin worker list shows them", text)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%q is the host or the beginning of %d workers: give the ID of one, from millrace admin worker list", text, len(found))
}

// WorkerDrain has one take no more.
type WorkerDrain struct {
	installation.Settings `embed:""`
	Worker                string `arg:"" help:"ID of the worker, from millrace admin worker list, or its host if that has only one."`
}

// Run drains it.
func (c *WorkerDrain) Run(w Console) error {
	return drain(w, &c.Settings, c.Worker, true, "%s finishes its runs and takes no new ones\n")
}

// WorkerUndrain lifts that.
type WorkerUndrain struct {
	installation.Settings `embed:""`
	Worker                string `arg:"" help:"ID of the worker, from millrace admin worker list, or its host if that has only one."`
}

// Run lifts it.
func (c *WorkerUndrain) Run(w Console) error {
	return drain(w, &c.Settings, c.Worker, false, "%s takes runs again\n")
}

func drain(w Console, s *installation.Settings, worker string, yes bool, says string) error {
	return s.Beside(w.Ctx, func(db *store.DB) error {
		id, err := findWorker(w.Ctx, Service(db), worker)
		if err != nil {
			return err
		}
		ctx := w.Audited("operator.worker_drain", audit.Installation, id)
		if err := Service(db).Drain(ctx, id, yes); err != nil {
			return err
		}
		_, err = fmt.Fprintf(w.Out, says, worker)
		return err
	})
}

// Status is how the installation does.
type Status struct {
	installation.Settings `embed:""`
	Errors                int `default:"20" help:"Number of recent requests that failed because of a server error to show."`
}

// Run prints counts and two tables.
func (c *Status) Run(w Console) error {
	if c.Errors < 0 || c.Errors > 500 {
		return errors.New("--errors must be between 0 and 500")
	}
	return c.Beside(w.Ctx, func(db *store.DB) error {
		room := Service(db)
		queue, err := room.Queue(w.Ctx, 1)
		if err != nil {
			return err
		}
		kept, err := room.Keeping.StorageOfAll(w.Ctx)
		if err != nil {
			return err
		}
		chores, err := room.Chores(w.Ctx)
		if err != nil {
			return err
		}
		failures, err := room.Failures(w.Ctx, c.Errors)
		if err != nil {
			return err
		}
		fmt.Fprintf(w.Out, "millrace %s, Apache-2.0\n%d runs queued, %d running\n%s of files, %d objects pending deletion, %s of database\n\n",
			w.Version, queue.Queued, queue.Running, size(kept.Bytes), kept.PendingDelete, size(kept.Database))
		return errors.Join(printChores(w.Out, chores), printFailures(w.Out, failures))
	})
}

func printChores(out io.Writer, list []operator.Chore) error {
	return table(out, "JOB\tLAST SUCCESS\tDURATION\tSTATE", func(t io.Writer) {
		for _, c := range list {
			state := "fine"
			if !c.FailedAt.IsZero() {
				state = "failed " + at(c.FailedAt)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.Name, at(c.SucceededAt), c.Took, state)
		}
	})
}

func printFailures(out io.Writer, list []operator.Failure) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	return table(out, "FAILED AT\tREQUEST\tROUTE\tCODE\tHOST", func(t io.Writer) {
		for _, f := range list {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", at(f.At), f.RequestID, f.Route, f.Code, f.Host)
		}
	})
}

func size(bytes int64) string {
	n, unit := float64(bytes), "B"
	for _, larger := range []string{"KB", "MB", "GB", "TB"} {
		if n < 1024 {
			break
		}
		n, unit = n/1024, larger
	}
	return fmt.Sprintf("%.4g %s", n, unit)
}
