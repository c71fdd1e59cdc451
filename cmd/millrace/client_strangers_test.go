package main

import (
	"net/http/httptest"
	"testing"
)

// furnished has somebody make one of everything, and keeps the ids.
func (p *person) furnished(t *testing.T) {
	t.Helper()
	receiver := httptest.NewServer(nil)
	t.Cleanup(receiver.Close)
	p.kept["RECEIVER"] = receiver.URL
	p.kept["READS"] = written(t, "reads.csv", "a,b\n")
	p.ran(counted, "RUN", "--name theirs")
	p.types(
		typed{command: "workflows --json", prints: `"id": "wf_`},
	)
	p.kept["WF"] = p.printed(`"id": "(wf_[0-9a-f]+)"`)
	p.types(
		typed{command: "secrets set KEY", stdin: "a-long-value-of-a-key", prints: `set KEY`},
		typed{command: "schedules create ${WF} '0 6 * * *'", prints: `sch_`, keep: "SCH"},
		typed{command: "triggers create ${WF} --json", prints: `"id": "trg_`},
	)
	p.kept["TRG"] = p.printed(`"id": "(trg_[0-9a-f]+)"`)
	p.types(
		typed{command: "webhooks create ${RECEIVER}/x", prints: `whk_`, tells: `whsec_`, keep: "HOOK"},
		typed{command: "webhooks test ${HOOK}", prints: `answered`},
		typed{command: "webhooks deliveries ${HOOK} --json", prints: `"id"`},
	)
	p.kept["MESSAGE"] = p.printed(`"id": "(\w+)"`)
	p.types(
		typed{command: "connections add bucket --type s3 --bucket lab --endpoint ${RECEIVER}", prints: `conn_`, tells: `.`, keep: "CONN"},
		typed{command: "service-accounts create robot", prints: `user_`, keep: "ROBOT"},
		typed{command: "service-accounts token ${ROBOT} ci", prints: `.`, keep: "ROBOTS-TOKEN"},
		typed{command: "service-accounts --json", prints: `"id": "tok_`},
	)
	p.kept["TOK"] = p.printed(`"id": "(tok_[0-9a-f]+)"`)
	p.types(
		typed{command: "run ${WF} --vary n=1,2", prints: `swp_`, keep: "SWEEP"},
		typed{command: "runs share ${RUN} --json", prints: `"id": "lnk_`},
	)
	p.kept["LINK"] = p.printed(`"id": "(lnk_[0-9a-f]+)"`)
	p.types(typed{command: "invite link ${WF} --json", prints: `"id": "inv_`})
	p.kept["INVITE"] = p.printed(`"id": "(inv_[0-9a-f]+)"`)
	p.types(typed{command: "files upload ${READS}", prints: `teams/`, keep: "KEY"})
}

// Ids that somebody has seen are no key: to another team everything of this one is
// not there, whatever command names it.
func strangerCommands(t *testing.T, s *server) {
	owner, stranger := s.newcomer(t, "otto"), s.newcomer(t, "stella")
	owner.furnished(t)
	for name, value := range owner.kept {
		stranger.kept[name] = value
	}
	stranger.kept["TEAM"], stranger.kept["TO"] = owner.team, t.TempDir()
	stranger.kept["FILE"] = written(t, "mine.json", counted)
	stranger.types(typed{command: "workflows apply ${FILE}", prints: `created`})
	for _, command := range []string{
		"workflows get ${WF}", "workflows export ${WF}", "workflows rm ${WF} -y", "workflows mv ${WF} --to x", "workflows favorite ${WF}", "workflows refresh ${WF}", "workflows detach ${WF} -y",
		"workflows init --from ${WF} --folder ${TO}", "run ${WF}", "run ${WF} --vary n=1,2", "estimate ${WF}", "invite link ${WF}", "invite list ${WF}", "invite revoke ${INVITE}",
		"runs view ${RUN}", "runs watch ${RUN}", "logs ${RUN}", "logs -f ${RUN}", "runs items ${RUN} a", "runs events ${RUN}", "runs rename ${RUN} mine", "runs compare ${RUN} ${RUN}", "runs share ${RUN}",
		"runs links ${RUN}", "runs unshare ${RUN} ${LINK}", "runs environment ${RUN} a", "runs kept ${RUN}", "runs kept ${RUN} a --attempt 1", "runs reproduce ${RUN} a --to ${TO}", "runs cancel ${RUN}",
		"runs delete ${RUN}", "runs favorite ${RUN}", "runs retry ${RUN}", "runs retry ${RUN} -p n=1", "runs retry ${RUN} --preview", "runs outputs ${RUN}", "runs outputs download ${RUN} --to ${TO}",
		"runs crate ${RUN} --to ${TO}/x.zip", "runs sweep ${SWEEP}", "runs sweep ${SWEEP} --csv",
		"schedules ${WF}", "schedules create ${WF} '* * * * *'", "schedules pause ${WF} ${SCH}", "schedules rm ${WF} ${SCH}", "schedules rm mine ${SCH}", "schedules resume mine ${SCH}",
		"triggers ${WF}", "triggers create ${WF}", "triggers rm ${WF} ${TRG}", "triggers rm mine ${TRG}",
		"webhooks test ${HOOK}", "webhooks deliveries ${HOOK}", "webhooks resend ${HOOK} ${MESSAGE}", "webhooks rm ${HOOK}",
		"connections test ${CONN}", "connections browse ${CONN}", "connections rm ${CONN}", "run mine -i reads=s3://lab/x --connection ${CONN}", "run mine --output-to s3://lab/x/ --connection ${CONN}",
		"run mine -i reads=${KEY}", "files download ${KEY} --to ${TO}", "files rm ${KEY}",
		"service-accounts token ${ROBOT} mine", "service-accounts rotate ${ROBOT} ${TOK}", "service-accounts revoke ${ROBOT} ${TOK}", "service-accounts rm ${ROBOT}",
		"secrets rm KEY", "budgets set user:${ROBOT} 5", "teams use ${TEAM}", "whoami --team ${TEAM}", "workflows --team ${TEAM}", "secrets --team ${TEAM}", "files --team ${TEAM}",
	} {
		stranger.types(typed{command: command, status: 1, tells: `^millrace: \S`})
	}
	stranger.types(
		typed{command: "runs", prints: ``},
		typed{command: "runs --workflow ${WF}", prints: ``},
		typed{command: "runs --started-by ${ROBOT}", prints: ``},
		typed{command: "files", prints: ``},
		typed{command: "webhooks", prints: `\AID[^\n]*\n\z`},
		typed{command: "schedules mine", prints: `\AID[^\n]*\n\z`},
	)
	owner.types( // as it was
		typed{command: "runs view ${RUN}", prints: "^name +theirs$\n^status +completed$"},
		typed{command: "schedules ${WF}", prints: `^${SCH} +0 6 \* \* \* +UTC +20\d\d-`},
		typed{command: "triggers ${WF}", prints: `^${TRG} `},
		typed{command: "webhooks", prints: `^${HOOK} .*yes$`},
		typed{command: "connections", prints: `^${CONN} +bucket `},
		typed{command: "service-accounts", prints: "${ROBOT}\n${TOK}"},
		typed{command: "secrets", prints: `^KEY +1 `},
		typed{command: "runs links ${RUN}", prints: `^${LINK} +active`},
		typed{command: "invite list ${WF}", prints: `^${INVITE} +viewer +active`},
		typed{command: "files", prints: `${KEY}$`},
		typed{command: "workflows", prints: `^counted +${WF} +– `},
	)
}

// A token for reading reads everything and changes nothing.
func readerCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "rene")
	p.furnished(t)
	p.kept["TO"] = t.TempDir()
	p.types(
		typed{command: "service-accounts create reader --role viewer", prints: `user_`, keep: "READER"},
		typed{command: "service-accounts token ${READER} ci", prints: `.`, keep: "TOKEN"},
	)
	p.Vars["MILLRACE_TOKEN"] = p.kept["TOKEN"]
	for _, command := range []string{
		"workflows", "workflows get ${WF}", "workflows export ${WF}", "runs", "runs view ${RUN}", "logs ${RUN}", "runs events ${RUN} --json", "runs compare ${RUN} ${RUN}", "runs sweep ${SWEEP}",
		"runs outputs ${RUN}", "files", "schedules ${WF}", "credits", "quotas", "executors", "whoami", "teams", "budgets", "usage", "files download ${KEY} --to ${TO}", "estimate ${WF}", "runs list --favorite --json",
	} {
		p.types(typed{command: command, prints: `(?s).|\A\z`})
	}
	for _, command := range []string{
		"workflows apply ${DEFINITION} --name more", "workflows rm ${WF} -y", "workflows mv ${WF} --to x", "workflows rename-folder a b", "workflows detach ${WF} -y", "run ${WF}", "run ${WF} --vary n=1,2",
		"runs retry ${RUN}", "runs cancel ${RUN}", "runs delete ${RUN}", "runs rename ${RUN} mine", "runs share ${RUN}", "runs unshare ${RUN} ${LINK}", "invite link ${WF}", "invite revoke ${INVITE}",
		"invite member joe@example.org", "schedules create ${WF} '* * * * *'", "schedules pause ${WF} ${SCH}", "schedules rm ${WF} ${SCH}", "triggers create ${WF}", "triggers rm ${WF} ${TRG}",
		"webhooks create ${RECEIVER}/y", "webhooks test ${HOOK}", "webhooks resend ${HOOK} ${MESSAGE}", "webhooks rm ${HOOK}", "connections test ${CONN}", "connections rm ${CONN}",
		"connections add y --type s3 --bucket b", "service-accounts create y", "service-accounts token ${READER} more", "service-accounts rotate ${READER} ${TOK}", "service-accounts rm ${ROBOT}",
		"secrets rm KEY", "budgets set team 5", "budgets rm team", "files rm ${KEY}", "files upload ${READS}", "teams use ${SERVER}",
	} {
		p.types(typed{command: command, status: 1, tells: `^millrace: \S`})
	}
	p.types(typed{command: "secrets set KEY", stdin: "another value of it", status: 1, tells: `^millrace: \S`})
	delete(p.Vars, "MILLRACE_TOKEN")
	p.types(
		typed{command: "runs view ${RUN}", prints: `^name +theirs$`},
		typed{command: "schedules ${WF}", prints: `^${SCH} +0 6 \* \* \* +UTC +20\d\d-`},
		typed{command: "secrets", prints: `^KEY +1 `},
		typed{command: "files", prints: `${KEY}$`},
		typed{command: "runs -n 100 --json", prints: `(?s)\A[^#]*"id"`},
	)
}
