package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/cli/clitest"
)

// Signing in and out, by each way that asks nobody.
func signInCommands(t *testing.T, s *server) {
	p := &person{Terminal: clitest.New(t), t: t, kept: map[string]string{"SERVER": s.base}}
	p.types(
		typed{command: "whoami --server ${SERVER}", status: 1, tells: `not signed in to ${SERVER}: run millrace login$`},
		typed{command: "logout --server ${SERVER}", tells: `^You were not signed in to ${SERVER}\.$`},
		typed{command: "login ${SERVER} --email nina@example.org --sign-up --name Nina", stdin: "correct horse\n", tells: `^Signed in to ${SERVER} as nina@example.org, team Nina's team\.$`},
		typed{command: "whoami", prints: "^name +Nina$\n^email +nina@example.org$\n^role +owner$\n^server +${SERVER}$"},
		typed{command: "whoami --json", prints: `"email": "nina@example.org"`},
		typed{command: "login ${SERVER} --email nina@example.org --sign-up", stdin: "correct horse\n", status: 1, tells: `^millrace: `}, // taken
		typed{command: "login ${SERVER} --email nina@example.org", stdin: "wrong horse\n", status: 1, tells: `^millrace: `},
		typed{command: "login ${SERVER} --email nobody@example.org", stdin: "wrong horse\n", status: 1, tells: `^millrace: `},
		typed{command: "login ${SERVER} --email nina@example.org", status: 1, tells: `standard input is empty`},
		typed{command: "login ${SERVER} --email new@example.org --sign-up", stdin: "short\n", status: 1, tells: `^millrace: .*password`},
		typed{command: "login ${SERVER} --sign-up", status: 1, tells: `--sign-up needs --email`},
		typed{command: "login ${SERVER} --email a@example.org --device", status: 1, tells: `can't be used together`},
		typed{command: "login ${SERVER} --token-stdin", stdin: "nonsense\n", status: 1, tells: `^millrace: `},
		typed{command: "login ftp://example.org", status: 1, tells: `is not a server address`},
		typed{command: "login ${SERVER}/path", status: 1, tells: `is not a server address`},
		typed{command: "login http://127.0.0.1:1 --email a@example.org", stdin: "correct horse\n", status: 1, tells: `can't reach http://127.0.0.1:1: is the server running`},
		typed{command: "whoami", prints: `nina@example.org`}, // what failed has changed nothing
	)
	// A wrong password and a name that nobody has are told in the same words.
	p.types(typed{command: "login ${SERVER} --email nina@example.org", stdin: "wrong horse\n", status: 1, tells: `.`})
	wrong := p.Errors.String()
	p.types(typed{command: "login ${SERVER} --email nobody@example.org", stdin: "wrong horse\n", status: 1, tells: `.`})
	if p.Errors.String() != wrong {
		t.Errorf("a wrong password: %s a wrong name: %s", wrong, p.Errors)
	}
	text, err := os.ReadFile(filepath.Join(p.Folder, "credentials.json"))
	if err != nil || strings.Contains(string(text), "horse") {
		t.Errorf("what is kept has the password: %v", err)
	}
	old := string(text)
	p.types(
		typed{command: "logout", tells: `^Signed out of ${SERVER}\.$`},
		typed{command: "whoami", status: 1, tells: `not signed in`},
		typed{command: "logout", tells: `^You were not signed in`},
	)
	// Whoever has copied the file has nothing: the session was ended there.
	if err := os.WriteFile(filepath.Join(p.Folder, "credentials.json"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	p.types(typed{command: "whoami", status: 1, tells: `millrace login`})
}

func teamCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "tove")
	p.kept["FIRST"] = p.team
	p.types(
		typed{command: "api POST /auth/teams -t name=Blue", prints: `"name":"Blue"`},
		typed{command: "api POST /auth/teams -t name=blue", prints: `"name":"blue"`},
		typed{command: "teams", prints: "^\\* +tove's team +${FIRST} +owner +free$\n^ +Blue +team_\n^ +blue +team_"},
		typed{command: "teams use BLUE", status: 1, tells: `2 of your teams are called "BLUE": use the ID, see millrace teams`},
		typed{command: "teams use Green", status: 1, tells: `you have no team "Green": see millrace teams`},
		typed{command: "teams list --json", prints: `"name": "Blue"`},
	)
	p.kept["BLUE"] = p.printed(`"id": "(team_[0-9a-f]+)",\s+"joinedAt": "\S+",\s+"name": "Blue"`)
	p.types(
		typed{command: "teams use ${BLUE} --json", prints: `"id": "${BLUE}"`},
		typed{command: "whoami", prints: `^team +Blue \(${BLUE}\)$`},
		typed{command: "whoami --team ${FIRST}", prints: `^team +tove's team \(${FIRST}\)$`},
		typed{command: "whoami --team Blue", status: 1, tells: `2 of your teams are called "Blue"`},
		typed{command: "whoami --team ''", prints: `^team +Blue `},
	)
	p.types(typed{command: "service-accounts create robot", prints: `user_`, keep: "ROBOT"}, typed{command: "service-accounts token ${ROBOT} ci", prints: `.`, keep: "TOKEN"})
	p.Vars["MILLRACE_TOKEN"] = p.kept["TOKEN"]
	p.types(
		typed{command: "teams use ${FIRST}", status: 1, tells: `MILLRACE_TOKEN is set: choose the team with --team or MILLRACE_TEAM`},
		typed{command: "whoami --team ${FIRST}", status: 1, tells: `^millrace: `}, // a token is of one team
	)
}

// Links, to a workflow and to results, each shown once.
func linkCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "lena")
	p.ran(counted, "RUN", "-p n=2")
	p.types(
		typed{command: "runs links ${RUN}", prints: `\AID +STATUS +VIEWS +SHOWS +ENDS +BY\n\z`},
		typed{command: "runs share ${RUN} -p n --hours 1 --allow-copy", prints: `\A${SERVER}/results#mrr_\S+\n\z`, keep: "URL"},
		typed{command: "runs links ${RUN}", prints: `^lnk_[0-9a-f]+ +active +0 +n +20\d\d-\S+ \S+ +lena$`},
		typed{command: "runs links ${RUN} --json", prints: "\"parameters\": \\[\n\"allowCopy\": true"},
	)
	p.kept["LINK"] = p.printed(`"id": "(lnk_[0-9a-f]+)"`)
	if _, token, _ := strings.Cut(p.kept["URL"], "#"); strings.Contains(p.Printed.String(), token) {
		t.Error("the list shows the link's token")
	}
	p.types(
		typed{command: "runs share ${RUN} --hours 0", status: 1, tells: `^millrace: .*expiresInHours`},
		typed{command: "runs share ${RUN} --hours 721", status: 1, tells: `^millrace: .*720`},
		typed{command: "runs share ${RUN} -p nothing", status: 1, tells: `is not a parameter of this run`},
		typed{command: "runs share run_nothing", status: 1, tells: `see millrace runs list`},
		typed{command: "runs unshare ${RUN} lnk_nothing", status: 1, tells: `^millrace: `},
		typed{command: "runs unshare ${RUN} ${LINK}", prints: `^revoked ${LINK}$`},
		typed{command: "runs links ${RUN}", prints: `^${LINK} +revoked`},

		typed{command: "invite link counted --role editor --hours 720 --uses 1000 --max-credits 2.5 --allow-secrets", prints: `\A${SERVER}/join#mri_\S+\n\z`},
		typed{command: "invite list counted", prints: `^inv_[0-9a-f]+ +editor +active +0 of 1000 +in 30 days +\S+$`},
		typed{command: "invite ls counted --json", prints: "\"maxCredits\": 2.5\n\"allowSecrets\": true"},
		typed{command: "invite link counted --hours 721", status: 1, tells: `^millrace: .*720`},
		typed{command: "invite link counted --uses 0", status: 1, tells: `^millrace: .*maxUses`},
		typed{command: "invite link counted --uses 1001", status: 1, tells: `^millrace: .*1,?000`},
		typed{command: "invite link counted --role owner", status: 1, tells: `--role must be one of "viewer","editor"`},
		typed{command: "invite link nothing", status: 1, tells: `no workflow "nothing"`},
		typed{command: "invite revoke inv_nothing", status: 1, tells: `^millrace: `},
		typed{command: "invite member nonsense", status: 1, tells: `^millrace: .*email`},
		typed{command: "invite member lena@example.org", status: 1, tells: `^millrace: `}, // who is in
		typed{command: "invite member joe@example.org", prints: "^invited joe@example.org as member; the invitation expires in 7 days$\n^no email was sent, since your own email address is not confirmed: send them this link, ${SERVER}/"},
		typed{command: "invite", status: 1, tells: `^millrace: give an email address`},
	)
}

// Anything of the API, as it is answered.
func apiCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "anna")
	p.kept["BODY"] = written(t, "body.json", `{"name":"from a file"}`)
	p.kept["HUGE"] = written(t, "huge.json", strings.Repeat(" ", 20<<20+1))
	p.types(
		typed{command: "api GET me", prints: `"email":"anna@example.org"`},
		typed{command: "api get /api/me -I", prints: "^HTTP/1.1 200 OK\n^Content-Type: application/json"},
		typed{command: "api POST workflows -t name=7", prints: `"name":"7"`},
		typed{command: "api POST workflows -f name=7", status: 1, prints: `"details"`, tells: `the server responded with 400`},
		typed{command: "api POST workflows -f name=x -t description=null -f folder=null", prints: `"description":"null"`},
		typed{command: "api POST workflows --input ${BODY}", prints: `"name":"from a file"`},
		typed{command: "api POST workflows --input -", stdin: `{"name":"piped"}`, prints: `"name":"piped"`},
		typed{command: "api POST workflows --input ${BODY} -f name=x", status: 1, tells: `--input and fields can't be combined`},
		typed{command: "api POST workflows --input ${BODY}.gone", status: 1, tells: `no such file`},
		typed{command: "api POST workflows --input ${HUGE}", status: 1, tells: `has more than 20.0 MB`},
		typed{command: "api POST workflows -f name", status: 1, tells: `name: enter name=value`},
		typed{command: "api GET me -H nonsense", status: 1, tells: `-H nonsense: enter name:value`},
		typed{command: "api GET nothing", status: 1, prints: `"code":"not_found"`, tells: `the server responded with 404`},
		typed{command: "api 'G T' me", status: 1, tells: `invalid method`},
		typed{command: "api GET https://example.org/api/me", status: 1, tells: `is not a path on the server such as /api/me`},
		typed{command: "api GET", status: 1, tells: `expected "<path>"`},
		typed{command: "completion words -- runs out", prints: `\Aoutputs\n\z`},
		typed{command: "completion words -- wf ex", prints: `\Aexport\n\z`},
		typed{command: "completion words -- runs --fav", prints: `\A--favorite\n\z`}, // of the command that is meant without one
		typed{command: "completion words -- completion ''", prints: "^bash$\n^fish$\n^zsh$"},
		typed{command: "completion words", prints: "^login$\n^workflows$"},
		typed{command: "completion words -- no such thing", prints: ``},
		typed{command: "man", prints: "^\\.TH MILLRACE 1\n^\\.SS .*runs outputs download"},
	)
}
