// Package cli is the command line for those who use a server: it turns the
// API's answers into tables, progress and exit statuses. It speaks to the
// server through package client alone, so whatever it can do, a script can do
// too. Package session is a command at work, runs has the commands for runs,
// definitions reads workflows and values; line signs in and calls, transfer moves
// files, screen prints.
package cli

import (
	"github.com/millrace/millrace/internal/cli/runs"
)

// Commands are the client's, for the program to join to its own.
type Commands struct {
	Login           loginCommand           `cmd:"" group:"client" help:"Sign in to a server."`
	Logout          logoutCommand          `cmd:"" group:"client" help:"Sign out and delete the saved credentials."`
	Whoami          whoamiCommand          `cmd:"" group:"client" help:"Show who you are, where, and in which team."`
	Account         accountCommand         `cmd:"" group:"client" help:"Your account: delete."`
	Teams           teamsCommand           `cmd:"" group:"client" help:"Your teams: list, use."`
	Workflows       workflowsCommand       `cmd:"" aliases:"workflow,wf" group:"client" help:"Workflows: list, get, apply, export, delete."`
	Run             runs.Start             `cmd:"" group:"client" help:"Start a run of a workflow; --watch follows it."`
	Runs            runs.Command           `cmd:"" group:"client" help:"Runs: list, view, watch, logs, events, cancel, retry, outputs."`
	Logs            runs.Logs              `cmd:"" group:"client" help:"Print a run's log (the same as runs logs)."`
	Executors       executorsCommand       `cmd:"" group:"client" help:"List executors with their free capacity and typical wait."`
	Files           filesCommand           `cmd:"" group:"client" help:"Files: upload, ls, download, rm."`
	Estimate        estimateCommand        `cmd:"" group:"client" help:"Show what a size costs and whether your plan allows it."`
	Credits         creditsCommand         `cmd:"" group:"client" help:"Show the team's credits, storage and analyses."`
	Quotas          quotasCommand          `cmd:"" group:"client" help:"Show what your team may use, with its use and yours."`
	Usage           usageCommand           `cmd:"" group:"client" help:"Show what runs cost, by workflow, person or tag."`
	Budgets         budgetsCommand         `cmd:"" aliases:"budget" group:"client" help:"Monthly spending limits for the team, people and tags: list, set, remove."`
	Notifications   notificationsCommand   `cmd:"" group:"client" help:"Show your notifications in the team."`
	Invite          inviteCommand          `cmd:"" group:"client" help:"Invite people: member (into the team), link (to one workflow), list, revoke."`
	Secrets         secretsCommand         `cmd:"" aliases:"secret" group:"client" help:"Passwords, keys and tokens that steps use: list, set, delete."`
	Connections     connectionsCommand     `cmd:"" aliases:"connection" group:"client" help:"Buckets, HTTPS hosts and Git hosts: list, add, test, browse, delete."`
	Schedules       schedulesCommand       `cmd:"" aliases:"schedule" group:"client" help:"Runs that start on a schedule: list, create, pause, resume, delete."`
	Webhooks        webhooksCommand        `cmd:"" aliases:"webhook" group:"client" help:"HTTP requests sent when runs start or finish: list, create, test, deliveries, resend, delete."`
	Triggers        triggersCommand        `cmd:"" aliases:"trigger" group:"client" help:"Secret URLs that start runs: list, create, delete."`
	ServiceAccounts serviceAccountsCommand `cmd:"" group:"client" help:"Accounts for scripts and other programs, and their tokens."`
	Clients         clientsCommand         `cmd:"" group:"client" help:"List what to install on other machines, with the commands that do it."`
	Analyze         analyzeCommand         `cmd:"" group:"client" help:"Turn a paper (DOI or PDF) into a workflow."`
	API             rawCommand             `cmd:"" name:"api" group:"client" help:"Call the API and print its response."`
	Completion      completionCommand      `cmd:"" group:"client" help:"Print a completion script for bash, zsh or fish."`
	Man             manualCommand          `cmd:"" group:"client" help:"Print the manual page."`
}
