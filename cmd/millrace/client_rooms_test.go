package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// counted is a workflow with a parameter and an input, for commands that take
// values of both.
const counted = `{"parameters":{"n":{"type":"integer","default":3}},"inputs":{"reads":{"type":"file","required":false}},"nodes":[{"id":"a","command":"seq $PARAM_n"}]}`

// written is the path of a file with this text.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func secretCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "sara")
	p.types(
		typed{command: "secrets", prints: `\ANAME +VERSION +CHANGED +LAST USED +ENDS IN\n\z`},
		typed{command: "secrets set KEY", stdin: "a-long-value-of-a-key\n", prints: `\Aset KEY, version 1\n\z`},
		typed{command: "secrets set KEY", stdin: "another-value-of-a-key\r\n", prints: `^set KEY, version 2$`},
		typed{command: "secrets set KEY --json", stdin: "a third value of a key", prints: `"version": 3`},
		typed{command: "secrets ls", prints: `^KEY +3 +just now +never`},
		typed{command: "secrets list --json", prints: "\"name\": \"KEY\"\n\"version\": 3"},
		typed{command: "secrets set KEY", status: 1, tells: `^millrace: standard input is empty$`},
		typed{command: "secrets set lower-case", stdin: "x", status: 1, tells: `^millrace: name must start with a letter or _`},
		typed{command: "secrets set", status: 1, tells: `expected "<name>"`},
		typed{command: "secrets rm KEY", prints: `\Adeleted KEY\n\z`},
		typed{command: "secrets rm KEY", status: 1, tells: `^millrace: no such secret$`},
	)
}

func scheduleCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "sven")
	p.kept["FILE"] = written(t, "counted.json", counted)
	p.kept["READS"] = written(t, "reads.csv", "a,b\n")
	p.types(
		typed{command: "workflows apply ${FILE}", prints: `^created wf_[0-9a-f]+ counted`},
		typed{command: "schedules counted", prints: `\AID +CRON +TIME ZONE +NEXT +LAST +BY\n\z`},
		typed{command: "schedules create counted '0 6 * * 1-5' --time-zone Europe/Berlin -p n=5 -i reads=${READS}", prints: `\Asch_[0-9a-f]+\n\z`, keep: "ID"},
		typed{command: "schedules counted", prints: `^${ID} +0 6 \* \* 1-5 +Europe/Berlin +20\d\d-\d\d-\d\d \d\d:\d\d +never +sven$`},
		typed{command: "schedules list counted --json", prints: "\"cron\": \"0 6 \\* \\* 1-5\"\n\"n\": 5\n\"overlap\": \"skip\"\n\"catchUp\": false"},
		typed{command: "schedules pause counted ${ID}", prints: `^${ID} is paused$`},
		typed{command: "schedules counted", prints: `^${ID} .* (off|paused) +never`},
		typed{command: "schedules resume counted ${ID} --json", prints: `"enabled": true`},
		typed{command: "schedules create counted '* * * * *' --overlap queue --catch-up --json", prints: "\"overlap\": \"queue\"\n\"catchUp\": true"},

		typed{command: "schedules create counted 'every day'", status: 1, tells: `^millrace: .*cron`},
		typed{command: "schedules create counted '0 6 * * *' --time-zone Mars/Olympus", status: 1, tells: `timeZone: is no time zone: write one such as Europe/Berlin`},
		typed{command: "schedules create counted '0 6 * * *' -p n=many", status: 1, tells: `-p n: "many" is not a valid integer`},
		typed{command: "schedules create counted '0 6 * * *' -p m=1", status: 1, tells: `no parameter "m"; it takes n`},
		typed{command: "schedules create counted '0 6 * * *' -i reads=${READS}.gone", status: 1, tells: `no local file`},
		typed{command: "schedules create counted '0 6 * * *' --overlap never", status: 1, tells: `--overlap must be one of "skip","queue"`},
		typed{command: "schedules create counted '0 6 * * *' --compute big", status: 1, tells: `such as 4x16`},
		typed{command: "schedules create counted '0 6 * * *' --connection Lab", status: 1, tells: `no connection "Lab": see millrace connections`},
		typed{command: "schedules create counted '0 6 * * *' --output-to s3://b/p/", status: 1, tells: `connection`},
		typed{command: "schedules create nothing '0 6 * * *'", status: 1, tells: `see millrace workflows list`},

		typed{command: "schedules rm counted ${ID}", prints: `^deleted ${ID}$`},
		typed{command: "schedules pause counted ${ID}", status: 1, tells: `^millrace: `},
		typed{command: "schedules rm counted ${ID}", status: 1, tells: `^millrace: `},
	)
}

func triggerCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "tina")
	p.kept["FILE"] = written(t, "counted.json", counted)
	p.types(
		typed{command: "workflows apply ${FILE}", prints: `created`},
		typed{command: "triggers create counted --map n=/count", prints: `\A${SERVER}/\S+\n\z`, keep: "URL"},
		typed{command: "triggers counted", prints: `^trg_[0-9a-f]+ +\S+ +no +never +tina$`},
		typed{command: "triggers create counted --signed", stdin: "a secret that callers sign with", prints: `\A${SERVER}/\S+\n\z`},
		typed{command: "triggers create counted --signed", status: 1, tells: `standard input is empty`},
		typed{command: "triggers create counted --map n=count", status: 1, tells: `^millrace: `},
		typed{command: "triggers create counted --map n", status: 1, tells: `--map n: enter name=/pointer`},
		typed{command: "triggers create counted --map =/n", status: 1, tells: `--map =/n: enter name=/pointer`},
		typed{command: "triggers create counted --refresh", status: 1, tells: `^millrace: `}, // it follows no repository
		typed{command: "triggers list counted --json", prints: "\"signed\": true\n\"n\": \"/count\""},
	)
	for body, want := range map[string]int{`{"count":7}`: 202, `{"count":"many"}`: 400} {
		status, data, _ := s.call("POST", p.kept["URL"][len(s.base):], body)
		if status/100 != want/100 {
			t.Errorf("called with %s: %d, want %d: %v", body, status, want, data)
		}
	}
	p.types(
		typed{command: "runs view --json", prints: "\"n\": 7\n\"type\": \"trigger\""},
		typed{command: "triggers counted", prints: `no +just now`},
	)
}

func budgetCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "bea")
	p.types(
		typed{command: "budgets", prints: `\AOF +MONTH +LIMIT +SPENT +HELD +LEFT +FORECAST +HARD\n\z`},
		typed{command: "budgets set team 400 --hard", prints: `^the team +every +400 +0 +0 +400 +0 +yes$`},
		typed{command: "budgets set tag:pilot 12.5 --alert 90 --month 2031-02", prints: "^the team +every +400 .* yes$\n^.*pilot +2031-02 +12.5 +0 +0 +12.5 +0 +no$"},
		typed{command: "budgets set tag:pilot 1000 --month 2031-02", prints: "^the team\n^.*pilot +2031-02 +1,000 "}, // changed, not added
		typed{command: "budgets --json", prints: "\"limit\": 1000\n\"hard\": true\n\"scope\": \"tag\""},
		typed{command: "budgets remove tag:pilot", status: 1, tells: `there is no budget for tag:pilot$`}, // of every month
		typed{command: "budgets rm tag:pilot --month 2031-02", prints: `(?s)\AOF[^\n]*\nthe team[^\n]*\n\z`},
		typed{command: "budgets set everybody 5", status: 1, tells: `name the budget as team, user:ID or tag:NAME`},
		typed{command: "budgets set team:red 5", status: 1, tells: `name the budget as`},
		typed{command: "budgets set user 5", status: 1, tells: `name the budget as`},
		typed{command: "budgets set user:user_nobody 5", status: 1, tells: `^millrace: `},
		typed{command: "budgets set team much", status: 1, tells: `expected a float but got "much"`},
		typed{command: "budgets set team 5 --month soon", status: 1, tells: `^millrace: `},
		typed{command: "budgets set team 5 --alert 0", status: 1, tells: `^millrace: `},
		typed{command: "budgets set team -- -5", status: 1, tells: `^millrace: `},
		typed{command: "budgets", prints: `(?s)\AOF[^\n]*\nthe team +every +400 [^\n]*\n\z`}, // as it was
	)
}

func serviceAccountCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "sam")
	p.types(
		typed{command: "service-accounts create 'Nightly pipeline' --role viewer", prints: `\Auser_[0-9a-f]+\n\z`, keep: "ID"},
		typed{command: "service-accounts token ${ID} ci --scopes read --days 3", prints: `\A\S{20,}\n\z`, keep: "TOKEN"},
		typed{command: "service-accounts", prints: "^Nightly pipeline  ${ID} +viewer$\n^ +viewer +ci  tok_[0-9a-f]+ +read +in 3 days +never +\\S+$"},
		typed{command: "service-accounts list --json", prints: "\"name\": \"Nightly pipeline\"\n\"scopes\": \\["},
	)
	p.kept["TOK"] = p.printed(`"id": "(tok_[0-9a-f]+)"`)
	p.Vars["MILLRACE_TOKEN"] = p.kept["TOKEN"]
	p.types(
		typed{command: "whoami", prints: `Nightly pipeline`},
		typed{command: "secrets set KEY", stdin: "some value of a key", status: 1, tells: `^millrace: `},
	)
	delete(p.Vars, "MILLRACE_TOKEN")
	p.types(
		typed{command: "service-accounts rotate ${ID} ${TOK} --overlap 0", prints: `\A\S{20,}\n\z`, keep: "NEW"},
		typed{command: "service-accounts token ${ID} more --scopes fly", status: 1, tells: `^millrace: .*`},
		typed{command: "service-accounts token ${ID} more --days 367", status: 1, tells: `^millrace: .*366`},
		typed{command: "service-accounts token user_nobody ci", status: 1, tells: `^millrace: `},
		typed{command: "service-accounts create x --role owner", status: 1, tells: `--role must be one of "viewer","member","admin"`},
		typed{command: "service-accounts rotate ${ID} tok_nothing", status: 1, tells: `^millrace: `},
	)
	p.Vars["MILLRACE_TOKEN"] = p.kept["TOKEN"]
	p.types(typed{command: "whoami", status: 1, tells: `the token in MILLRACE_TOKEN was refused`})
	p.Vars["MILLRACE_TOKEN"] = p.kept["NEW"]
	p.types(typed{command: "whoami", prints: `Nightly pipeline`})
	delete(p.Vars, "MILLRACE_TOKEN")
	p.types(
		typed{command: "service-accounts rm ${ID}", prints: `^deleted ${ID}$`},
		typed{command: "service-accounts", prints: `\AACCOUNT[^\n]*\n\z`},
	)
}

func webhookCommands(t *testing.T, s *server) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refusing" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(receiver.Close)
	p := s.newcomer(t, "wim")
	p.kept["RECEIVER"] = receiver.URL
	p.kept["TEMPLATE"] = written(t, "template.json", `{"text":"{{title}} \u202e at {{url}}"}`)
	p.kept["BROKEN"] = written(t, "broken.json", `{"text":`)
	p.types(
		typed{command: "webhooks", prints: `\AID +URL +EVENTS +ENABLED\n\z`},
		typed{command: "webhooks create ${RECEIVER}/good --event run.failed --event run.completed", prints: `\Awh\S*_\S+\n\z`, tells: `\AMessages are signed with whsec_\S+\. It is shown only once\.\n\z`, keep: "GOOD"},
		typed{command: "webhooks create ${RECEIVER}/refusing --format slack --json", prints: "\"secret\": \"\\S+\"\n\"format\": \"slack\""},
	)
	p.kept["BAD"] = p.printed(`"id": "(whk_\w+)"`)
	p.types(
		typed{command: "webhooks", prints: "^${GOOD} +${RECEIVER}/good +run.completed run.failed +yes$\n^${BAD} +\\S+/…sing +all +yes$"},
		typed{command: "webhooks test ${GOOD}", prints: `, answered 200$`},
		typed{command: "webhooks test ${BAD}", prints: `, answered 418`},
		typed{command: "webhooks deliveries ${GOOD}", prints: `^\S+ +\S*test\S* .*answered 200 +1 +just now$`},
		typed{command: "webhooks deliveries ${GOOD} --json", prints: `"responseStatus": 200`},
	)
	p.kept["MESSAGE"] = p.printed(`"id": "(\w+)"`)
	p.types(
		typed{command: "webhooks resend ${GOOD} ${MESSAGE}", prints: `^sending ${MESSAGE} again$`},
		typed{command: "webhooks resend ${BAD} ${MESSAGE}", status: 1, tells: `^millrace: `}, // another's
		typed{command: "webhooks preview --format slack", prints: `\{.*text`},
		typed{command: "webhooks preview --format custom --template ${TEMPLATE}", prints: `"text"`},
		typed{command: "webhooks preview --format custom --template ${BROKEN}", status: 1, tells: `^millrace: `},
		typed{command: "webhooks preview --format carrier-pigeon", status: 1, tells: `--format must be one of`},
		typed{command: "webhooks create ${RECEIVER}/x --template ${TEMPLATE}.gone", status: 1, tells: `no such file`},
		typed{command: "webhooks create ftp://example.org/x", status: 1, tells: `^millrace: `},
		typed{command: "webhooks create ${RECEIVER}/x --event run.exploded", status: 1, tells: `events\[0\] is none of run.queued, `},
		typed{command: "webhooks rm ${GOOD}", prints: `^deleted ${GOOD}$`},
		typed{command: "webhooks test ${GOOD}", status: 1, tells: `^millrace: `},
	)
}

func connectionCommands(t *testing.T, s *server) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a-token-of-theirs" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(elsewhere.Close)
	p := s.newcomer(t, "conny")
	p.kept["HOST"] = elsewhere.Listener.Addr().String()
	p.types(
		typed{command: "connections", prints: `\AID +NAME +TYPE +WHERE +LAST TEST\n\z`},
		typed{command: "connections add 'Lab host' --type https --host ${HOST}", stdin: "a-token-of-theirs\n", prints: `\Aconn_[0-9a-f]+\n\z`, tells: `.*`, keep: "ID"},
		typed{command: "connections add twin --type s3 --bucket lab --endpoint http://${HOST}", prints: `\Aconn_[0-9a-f]+\n\z`, tells: `^The connection was saved, but its test failed: `},
		typed{command: "connections add twin --type s3 --bucket lab --endpoint http://${HOST} --json", prints: "\"ok\": false\n\"bucket\": \"lab\""},
		typed{command: "connections ls", prints: "^${ID} +Lab host +https +${HOST} \n +twin +s3 +s3://lab/ "},
		typed{command: "connections test twin", status: 1, tells: `2 connections are called "twin": use one of the IDs conn_[0-9a-f]+, conn_[0-9a-f]+$`},
		typed{command: "connections test nobody", status: 1, tells: `the team has no connection "nobody": see millrace connections$`},
		typed{command: "connections browse 'Lab host'", status: 1, tells: `^millrace: `}, // it has no list
		typed{command: "connections add x --type https --host ${HOST}", status: 1, tells: `standard input is empty`},
		typed{command: "connections add x --type ftp", status: 1, tells: `--type must be one of "s3","https","git"`},
		typed{command: "connections add x", status: 1, tells: `missing flags: --type`},
		typed{command: "connections add x --type s3", status: 1, tells: `bucket`},
		typed{command: "connections rm 'Lab host'", prints: `^deleted ${ID}$`},
		typed{command: "connections rm ${ID}", status: 1, tells: `^millrace: `},
	)
}
