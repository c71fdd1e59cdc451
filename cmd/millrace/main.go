// Command millrace is the whole service in one binary: the server, its
// worker, the commands that look after them, and those that use them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // schedules know every time zone, whatever the machine has

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/cmd/millrace/operate"
	"github.com/millrace/millrace/cmd/millrace/settingsfile"
	"github.com/millrace/millrace/internal/cli"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/git/unpack"
)

// version is set when the binary is built for release.
var version = "dev"

type commands struct {
	Serve   serveCommand   `cmd:"" group:"server" help:"Run the server: API, web app, editor sync and worker."`
	Worker  workerCommand  `cmd:"" group:"server" help:"Run a worker alone, beside servers on the same PostgreSQL database."`
	Migrate migrateCommand `cmd:"" group:"server" help:"Bring the database's schema up to date."`
	Backup  backupCommand  `cmd:"" group:"server" help:"Copy the database, its objects and its key into a new folder."`
	Restore restoreCommand `cmd:"" group:"server" help:"Restore a backup into an empty data folder, and verify it."`
	Admin   adminCommand   `cmd:"" group:"server" help:"Manage accounts, teams and the installation."`
	Version versionCommand `cmd:"" group:"server" help:"Print the version."`

	cli.Commands `embed:""`
}

// groups are the two halves of the help.
var groups = []kong.Group{
	{Key: "server", Title: "Server:"},
	{Key: "client", Title: "Client:"},
}

// console is what a command may touch besides its settings.
type console struct {
	ctx    context.Context
	in     io.Reader
	out    io.Writer
	errOut io.Writer

	given     map[string]any                 // the settings of the command, by name
	readAgain func() (map[string]any, error) // reads them again
	exposed   []string                       // those with secrets that everybody on the machine can read
	unknown   error                          // variables that look like settings and are none
}

func main() {
	// Beside each task runs a shim; without the small one that the build embeds
	// this program is its own.
	if job.IsCall(os.Args) {
		os.Exit(job.Run(os.Args))
	}
	if unpack.IsCall(os.Args) { // in a sandbox
		os.Exit(unpack.Run(os.Args))
	}
	// A heap of a few MB would be collected each time it doubles, which takes a
	// tenth of the time. This lets it grow by as much more, and a large one still
	// only double. Nobody touches it, so no memory is behind it.
	var headroom []byte
	if os.Getenv("GOGC") == "" { // which has the last word
		headroom = make([]byte, 12<<20)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(console{ctx: ctx, in: os.Stdin, out: os.Stdout, errOut: os.Stderr}, os.Args[1:])
	stop()
	runtime.KeepAlive(headroom)
	os.Exit(code)
}

// run is main without the process: it returns the exit status.
func run(w console, args []string) int {
	exited := -1
	parser, err := w.parser(func(code int) { exited = code })
	if err != nil {
		return w.client().Fail(err)
	}
	parsed, err := parser.Parse(takenBack(args))
	if exited >= 0 { // --help was asked for
		return exited
	}
	if err != nil {
		return w.client().Misused(err)
	}
	file, err := settingsfile.Service(parsed, settingsfile.ServiceFile)
	if err != nil {
		return w.client().Fail(err)
	}
	if file != "" {
		if parsed, err = w.parse(args, file); err != nil {
			return w.client().Misused(err)
		}
	}
	w.given, w.exposed = flagValues(parsed), settingsfile.Exposed(parsed)
	w.unknown = settingsfile.Unknown(parsed.Model, os.Environ())
	w.readAgain = func() (map[string]any, error) {
		parsed, err := w.parse(args)
		if err != nil {
			return nil, err
		}
		return flagValues(parsed), nil
	}
	if err := errors.Join(settingsfile.ReadSecrets(parsed), actAsOwner(parsed)); err != nil {
		return w.client().Fail(err)
	}
	if err := parsed.Run(w, w.client(), w.operating()); err != nil {
		return w.client().Fail(err)
	}
	return 0
}

// parse reads a command line again, and files of settings that it does not name.
func (w console) parse(args []string, files ...string) (*kong.Context, error) {
	parser, err := w.parser(func(int) {}, files...)
	if err != nil {
		return nil, err
	}
	return parser.Parse(takenBack(args))
}

// actAsOwner has commands about an installation be the owner of its data folder, so that they
// see what the service sees and leave nothing that belongs to root. Only root can write
// backups where the service cannot, and give restored files away.
func actAsOwner(parsed *kong.Context) error {
	if command := strings.Fields(parsed.Command())[0]; !settingsfile.Administers(parsed) || command == "backup" || command == "restore" {
		return nil
	}
	return installation.ActAsOwner(settingsfile.Value(parsed, "data"))
}

// parser reads command lines, variables and files of settings.
func (w console) parser(exit func(code int), files ...string) (*kong.Kong, error) {
	return kong.New(&commands{},
		kong.Name("millrace"),
		kong.Description("Build workflows on a shared canvas, run them, watch them live.\n\nStart with: millrace serve"),
		kong.DefaultEnvars("MILLRACE"),
		kong.Writers(w.out, w.errOut),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ExplicitGroups(groups),
		kong.Configuration(settingsfile.Load, files...),
	)
}

// operating is what the commands about the installation may touch.
func (w console) operating() operate.Console {
	return operate.Console{Ctx: w.ctx, In: w.in, Out: w.out, Version: version, Audited: func(action, chain, target string) context.Context { return w.audited(action, chain, target).ctx }}
}

// client is what the client commands may touch.
func (w console) client() screen.Console {
	return screen.Console{
		Ctx: w.ctx, In: w.in, Out: w.out, Err: w.errOut, Env: os.Getenv, Now: time.Now, Sleep: screen.Sleep,
		Browse: screen.Browse, Config: screen.ConfigFolder, Version: version,
	}
}

type versionCommand struct{}

func (versionCommand) Run(w console) error {
	_, err := fmt.Fprintln(w.out, "millrace", version)
	return err
}
