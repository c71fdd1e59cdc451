package runs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/definitions"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

// Start starts a run of a workflow.
type Start struct {
	session.Flags            `embed:""`
	definitions.ComputeFlags `embed:""`
	Workflow                 string   `arg:"" help:"ID or name of a workflow, or a definition file, which is applied first."`
	Param                    []string `short:"p" env:"-" sep:"none" placeholder:"NAME=VALUE" help:"Value of a parameter; repeatable."`
	Vary                     []string `env:"-" sep:"none" placeholder:"NAME=A,B" help:"Run a sweep: start one run per value. Repeat the flag for one run per combination."`
	Input                    []string `short:"i" env:"-" sep:"none" placeholder:"NAME=FILE" help:"Input: a local file, pattern or folder (uploaded first), the key of a file or folder, or an address such as 's3://lab/run7/*.fq.gz'; repeatable."`
	Connection               string   `env:"-" help:"ID or name of the connection to use for addresses."`
	Executor                 string   `env:"-" placeholder:"NAME" help:"Where it runs: a name from millrace executors. Default: the first that offers the size."`
	WorkflowName             string   `env:"-" placeholder:"NAME" help:"With a definition file: name of the workflow."`
	OutputTo                 string   `env:"-" placeholder:"S3://BUCKET/PREFIX/" help:"Also copy the outputs there when the run completes, using --output-connection or --connection. {runId} is replaced by the run ID."`
	OutputConnection         string   `env:"-" help:"ID or name of the connection for copying outputs, if different from --connection."`
	MaxCredits               *float64 `env:"-" placeholder:"CREDITS" help:"Spending limit: the run is interrupted before it exceeds it."`
	labelFlags               `embed:""`
	watchFlags               `embed:""`
}

// watchFlags say how a run is followed.
type watchFlags struct {
	Watch bool `short:"w" env:"-" help:"Follow the run; exit with 0 when it completed, 1 when it failed, 2 when it was cancelled or interrupted."`
	Logs  bool `short:"l" env:"-" help:"With --watch: also print the log."`
}

// Run submits under one key, so that however often the call is repeated, one
// run is started.
func (c *Start) Run(w screen.Console) error {
	if err := c.check(); err != nil {
		return err
	}
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	size, profile, err := c.Size()
	if err != nil {
		return err
	}
	f, err := workflowOrFile(s, c.Workflow, c.WorkflowName)
	if err != nil {
		return err
	}
	g, err := definitions.ReadGraph(f.Definition)
	if err != nil {
		return err
	}
	in := api.StartRun{WorkflowID: f.ID, Compute: size, ResourceProfile: profile, Name: c.Name, Note: c.Note}
	if len(c.Tag) > 0 {
		in.Tags = &c.Tag
	}
	if c.Executor != "" {
		in.Executor = &c.Executor
	}
	if in.Parameters, err = g.ReadParameters(c.Param); err != nil {
		return err
	}
	vary, err := g.Varied(c.Vary)
	if err != nil {
		return err
	}
	connection, err := s.ConnectionID(c.Connection)
	if err != nil {
		return err
	}
	in.MaxCredits = c.MaxCredits
	if in.OutputTo, err = s.OutputTarget(c.OutputTo, c.OutputConnection, connection); err != nil {
		return err
	}
	// Last: it sends files, which may take hours.
	if in.Inputs, err = g.ReadInputs(c.Input, connection, s.UploadKeys); err != nil {
		return err
	}
	if len(vary) > 0 {
		return c.sweep(s, vary, in)
	}
	key := rand.Text()
	r, err := s.API.StartRunWithResponse(s.Ctx, &api.StartRunParams{IdempotencyKey: &key}, in)
	if err != nil {
		return s.Explain(err)
	}
	return started(s, r.JSON202.Data, c.watchFlags)
}

// check refuses what cannot go together before a file is applied or sent.
func (c *Start) check() error {
	switch {
	case len(c.Vary) > 0 && c.Watch:
		return errors.New("--watch follows one run: see a sweep with millrace runs sweep")
	case len(c.Vary) > 0 && (c.MaxCredits != nil || c.OutputTo != ""):
		return errors.New("--max-credits and --output-to are for one run, not with --vary")
	}
	return nil
}

// workflowOrFile takes whatever a person points at: a file is applied first.
func workflowOrFile(s *session.Session, name, as string) (api.Workflow, error) {
	isFile := name == "-" || strings.ContainsRune(name, os.PathSeparator) || slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(name))
	if isFile {
		f, _, err := s.Apply(name, definitions.Naming{Name: as})
		return f, err
	}
	return s.Workflow(name)
}

// started tells of a run that was accepted, and follows it if asked.
func started(s *session.Session, r api.StartedRun, flags watchFlags) error {
	if flags.Watch {
		return watch(s, r.RunID, flags.Logs)
	}
	return s.Emit(r, func() {
		s.Say("%s", r.RunID)
		s.Note("Follow it with: millrace runs watch %s", r.RunID)
	})
}

// Ended is a run that did not complete, as the program's exit status.
type Ended struct {
	Run    string
	Status api.RunStatus
	Reason string
}

// Error names the run and why.
func (e Ended) Error() string {
	text := fmt.Sprintf("%s %s", e.Run, e.Status)
	if e.Status == api.RunStatusCancelled || e.Status == api.RunStatusInterrupted {
		text = fmt.Sprintf("%s was %s", e.Run, e.Status)
	}
	if e.Reason != "" && e.Status != api.RunStatusCancelled { // whose only reason is that somebody asked
		text += ": " + screen.CleanLines(e.Reason)
	}
	return text
}

// ExitCode is 1 for a workflow that failed and 2 for a run that was ended.
func (e Ended) ExitCode() int {
	if e.Status == api.RunStatusFailed {
		return 1
	}
	return 2
}

// Left is a person who stopped watching; the run goes on.
type Left struct{ Run string }

// Error says how to come back.
func (l Left) Error() string {
	return fmt.Sprintf("stopped watching; %s continues (millrace runs watch %s, millrace runs cancel %s)", l.Run, l.Run, l.Run)
}

// ExitCode is the shell's for Ctrl-C.
func (Left) ExitCode() int { return 130 }
