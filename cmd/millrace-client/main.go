// Command millrace-client is the commands for those who use a server, for systems
// on which the server cannot run. There it is installed as millrace.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/cli"
	"github.com/millrace/millrace/internal/cli/screen"
)

// version is set when the binary is built for release.
var version = "dev"

type commands struct {
	Version versionCommand `cmd:"" group:"client" help:"Print the version."`

	cli.Commands `embed:""`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(screen.Console{
		Ctx: ctx, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Now: time.Now, Sleep: screen.Sleep,
		Browse: screen.Browse, Config: screen.ConfigFolder, Version: version,
	}, os.Args[1:])
	stop()
	os.Exit(code)
}

// run is main without the process: it returns the exit status.
func run(w screen.Console, args []string) int {
	var c commands
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("millrace"),
		kong.Description("Build workflows on a shared canvas, run them, watch them live.\n\nThis program speaks to a server elsewhere. Start with: millrace login"),
		kong.DefaultEnvars("MILLRACE"),
		kong.Writers(w.Out, w.Err),
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ExplicitGroups([]kong.Group{{Key: "client", Title: "Client:"}}),
	)
	if err != nil {
		return w.Fail(err)
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help was asked for
		return exited
	}
	if err == nil {
		err = parsed.Run(w)
	}
	if err != nil {
		return w.Fail(err)
	}
	return 0
}

type versionCommand struct{}

func (versionCommand) Run(w screen.Console) error {
	_, err := fmt.Fprintln(w.Out, "millrace", w.Version)
	return err
}
