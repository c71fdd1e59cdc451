package main

import (
	"bufio"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/cli"
	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/waittest"
)

// serveHere runs a whole server in this process, so that tests of the client's
// commands start no program and are part of short tests.
func serveHere(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{t: t, log: &lockedBuffer{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	printed, out := io.Pipe()
	ended := make(chan int, 1)
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--capacity", "vcpu=64,ramGb=256", "--runs-per-minute", "10000"}, args...)
	go func() {
		ended <- run(console{ctx: ctx, in: strings.NewReader(""), out: out, errOut: s.log}, args)
		out.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if status := <-ended; status != 0 {
			t.Errorf("the server ended with %d: %s", status, s.log)
		}
	})
	for lines := bufio.NewScanner(printed); lines.Scan(); {
		if _, address, found := strings.Cut(lines.Text(), "(listening on "); found {
			s.base = "http://" + strings.TrimSuffix(address, ")")
			go func() { _, _ = io.Copy(io.Discard, printed) }()
			return s
		}
	}
	t.Fatalf("the server did not start: %s", s.log)
	return nil
}

// The client's commands, each with what it prints, its JSON, its errors and its
// exit status, against one server.
func TestTheClient(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--fetch-allow-private")
	for name, test := range map[string]func(*testing.T, *server){
		"secrets": secretCommands, "schedules": scheduleCommands, "triggers": triggerCommands, "budgets": budgetCommands,
		"service accounts": serviceAccountCommands, "webhooks": webhookCommands, "connections": connectionCommands,
		"finding runs": findingCommands, "deleting runs": deletingCommands, "what a run made": crateCommands, "comparing runs": comparingCommands, "money": moneyCommands,
		"files": fileCommands, "outputs": outputCommands, "folders": folderCommands, "what a failure leaves": keptCommands, "workflows": workflowCommands, "retries": retryCommands, "sweeps": sweepCommands,
		"strangers": strangerCommands, "readers": readerCommands, "signing in": signInCommands, "teams": teamCommands, "links": linkCommands, "the API": apiCommands,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := *s
			mine.t = t
			test(t, &mine)
		})
	}
}

// person is somebody who is signed in, at a terminal of their own.
type person struct {
	*clitest.Terminal
	t    *testing.T
	team string
	kept map[string]string // what earlier commands printed, by name
}

// newcomer signs somebody up, who owns a team.
func (s *server) newcomer(t *testing.T, name string) *person {
	t.Helper()
	token, _, data := s.signUp(name)
	p := &person{Terminal: clitest.New(t), t: t, team: data["team"].(map[string]any)["id"].(string), kept: map[string]string{"SERVER": s.base}}
	p.SignedIn(t, s.base, line.Grant{Token: token})
	return p
}

// typed is a command and what it must do. What is expected are regular
// expressions, one on each line, that match lines; none: nothing is printed.
type typed struct {
	command string // quoted as in a shell, with ${NAME} for what was kept
	stdin   string
	status  int
	prints  string
	tells   string // on standard error
	keep    string // the name for what it prints
	soon    bool   // it may take a moment until it does that
}

// types has a person type commands one after the other.
func (p *person) types(steps ...typed) {
	p.t.Helper()
	for _, step := range steps {
		command := p.fill(step.command)
		var status int
		var out, errs string
		asExpected := func() bool {
			status = p.Type(&struct {
				cli.Commands `embed:""`
			}{}, step.stdin, words(command)...)
			out, errs = p.Printed.String(), p.Errors.String()
			return status == step.status && p.matches(out, step.prints) && p.matches(errs, step.tells)
		}
		if !asExpected() && !(step.soon && waittest.Until(asExpected)) {
			p.t.Errorf("millrace %s: status %d, want %d\nprints %.2000s\nwant   %s\ntells  %s\nwant   %s", command, status, step.status, out, step.prints, errs, step.tells)
			if step.keep != "" {
				p.t.FailNow()
			}
		}
		if step.keep != "" {
			p.kept[step.keep] = strings.TrimSpace(out)
		}
	}
}

// fill puts what was kept in its place.
func (p *person) fill(text string) string {
	for name, value := range p.kept {
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	return text
}

func (p *person) matches(text, patterns string) bool {
	if patterns == "" {
		return text == ""
	}
	for pattern := range strings.Lines(patterns) {
		if !regexp.MustCompile("(?m)" + p.fill(strings.TrimSuffix(pattern, "\n"))).MatchString(text) {
			return false
		}
	}
	return true
}

// printed is the part of what the last command printed that a group of a regular
// expression matches.
func (p *person) printed(pattern string) string {
	p.t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(p.Printed.String())
	if found == nil {
		p.t.Fatalf("no %s in %s", pattern, p.Printed)
	}
	return found[1]
}

// words are those of a line, in which single quotes keep spaces.
func words(line string) (list []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			list = append(list, part)
		} else {
			list = append(list, strings.Fields(part)...)
		}
	}
	return list
}
