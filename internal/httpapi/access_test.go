package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
)

// rights is one row of the table of who may do what: the status for each role
// in their own team with somebody else's things, for the owner of another
// team who uses our ids, and for nobody.
type rights struct {
	body                         string
	owner, admin, member, viewer int
	other                        int // 0: the route names no thing of ours
	nobody                       int
}

// sets of statuses that many routes share.
func everybody(status int) rights {
	return rights{owner: status, admin: status, member: status, viewer: status, nobody: 401}
}

func writers(status int) rights {
	return rights{owner: status, admin: status, member: status, viewer: 403, nobody: 401}
}

func admins(status int) rights {
	return rights{owner: status, admin: status, member: 403, viewer: 403, nobody: 401}
}

func owners(status int) rights {
	return rights{owner: status, admin: 403, member: 403, viewer: 403, nobody: 401}
}

func open(status int) rights {
	r := everybody(status)
	r.nobody = status
	return r
}

func (r rights) with(body string) rights     { r.body = body; return r }
func (r rights) elsewhere(status int) rights { r.other = status; return r }

// operators is for routes that no role of a team opens: TestOnlyOperatorsSeeTheInstallation.
var operators = rights{owner: 403, admin: 403, member: 403, viewer: 403, nobody: 401}

// routeRows is the whole API × roles. A route without a row fails the test.
var routeRows = map[string]rights{
	"GET /{$}":                       open(200),
	"GET /docs":                      open(200),
	"GET /docs/reference.css":        open(200),
	"GET /clients":                   open(303),
	"GET /clients/{$}":               open(200),
	"GET /clients/index.json":        open(200),
	"GET /clients/{file}":            open(404), // those that are there: TestClientsAreDownloadedWholeAndInRanges
	"GET /clients/{file}/{$}":        open(404),
	"GET /help":                      open(200),
	"GET /help/{page...}":            open(404), // there is no such page
	"GET /checkout/sandbox.css":      open(200),
	"GET /objects/{key...}":          open(403), // signed addresses: TestASignedAddressWorksAsSignedOnly
	"PUT /objects/{key...}":          open(403),
	"GET /reports/{token}/{path...}": open(403), // signed addresses: TestAReportOpensAsSignedOnly
	"GET /archives/{token}/{name}":   open(403), // signed addresses: TestAFolderGoesThroughTheSystem
	"GET /api/openapi.json":          open(200),
	"GET /api/health":                open(200),
	"GET /api/notice":                open(200),
	"GET /api/health/ready":          open(200),
	"GET /auth/jwks.json":            open(200),
	"GET /api/me":                    everybody(200),
	"DELETE /api/me":                 everybody(400).with(`{"confirm":"nobody"}`), // TestAnAccountIsDeletedByItsPerson
	"GET /api/features":              everybody(200),
	"POST /api/team/invite":          admins(201).with(`{"email":"{fresh}","role":"member"}`),
	"POST /api/team/invitations":     admins(200).with(`{"list":"{fresh}"}`),
	"GET /api/account/data":          admins(200),
	"DELETE /api/account/data":       owners(200).with(`{"confirm":"{team}"}`),
	"GET /api/billing/credits":       everybody(200),
	"GET /api/billing/usage":         everybody(200),
	"GET /api/dashboard/usage":       everybody(200),
	"GET /api/billing/invoices":      admins(200),
	"GET /api/team/retention":        everybody(200),
	"PUT /api/team/retention":        admins(200).with(`{"logsDays":30}`),

	"GET /api/workflows":                                everybody(200),
	"POST /api/workflows":                               writers(201).with(`{"name":"a"}`),
	"POST /api/workflows/validate":                      everybody(200).with(`{"definition":{}}`),
	"GET /api/workflows/{id}":                           everybody(200).elsewhere(404),
	"PUT /api/workflows/{id}":                           writers(200).with(`{"name":"b"}`).elsewhere(404),
	"DELETE /api/workflows/{id}":                        admins(200).elsewhere(404), // a member's own: TestMembersDeleteWhatTheyMade
	"GET /api/workflows/{id}/revisions":                 everybody(200).elsewhere(404),
	"GET /api/workflows/{id}/revisions/{n}":             everybody(200).elsewhere(404),
	"GET /api/workflows/{id}/source":                    everybody(404).elsewhere(404),
	"POST /api/workflows/{id}/refresh":                  writers(200).elsewhere(404),
	"POST /api/workflows/{id}/detach":                   writers(200).elsewhere(404),
	"POST /api/workflows/{id}/revisions/{n}/restore":    writers(200).elsewhere(404),
	"POST /api/workflows/{id}/revisions/{n}/confirm":    writers(200).elsewhere(404),
	"GET /api/runs":                                     everybody(200),
	"POST /api/runs":                                    writers(202).with(`{"workflowId":"{runnable}"}`).elsewhere(404),
	"GET /api/runs/{id}":                                everybody(200).elsewhere(404),
	"GET /api/runs/compare":                             everybody(200).elsewhere(404),
	"GET /api/executors":                                everybody(200),
	"GET /api/sweeps":                                   everybody(200),
	"POST /api/sweeps":                                  writers(400).with(`{"workflowId":"{runnable}","vary":{}}`).elsewhere(404), // TestASweepRunsEveryCombination
	"GET /api/sweeps/{id}":                              everybody(404).elsewhere(404),                                             // TestASweepRunsEveryCombination
	"GET /api/sweeps/{id}/table.csv":                    everybody(404).elsewhere(404),
	"GET /api/runs/{id}/links":                          admins(200).elsewhere(404),
	"POST /api/runs/{id}/links":                         admins(201).with(`{}`).elsewhere(404),
	"DELETE /api/runs/{id}/links":                       admins(404).elsewhere(404), // one that is there: TestResultsAreSharedByALink
	"POST /api/results":                                 open(404).with(`{"token":"mrr_x"}`),
	"POST /api/results/copy":                            writers(404).with(`{"token":"mrr_x"}`),
	"DELETE /api/runs/{id}":                             admins(200).elsewhere(404), // a member's own: TestPeopleDeleteTheirRuns
	"GET /api/operator/workers":                         operators,
	"GET /api/operator/queue":                           operators,
	"GET /api/operator/disk":                            operators,
	"GET /api/operator/chores":                          operators,
	"GET /api/operator/teams":                           operators,
	"GET /api/operator/errors":                          operators,
	"GET /api/operator/version":                         operators,
	"POST /api/operator/teams/{id}/grant":               operators,
	"POST /api/operator/teams/{id}/plan":                operators,
	"POST /api/operator/teams/{id}/suspend":             operators,
	"POST /api/operator/workers/drain":                  operators,
	"POST /api/operator/runs/{id}/end":                  operators,
	"GET /api/operator/group-mapping":                   operators,
	"PUT /api/operator/group-mapping":                   operators,
	"POST /api/operator/mail/test":                      operators,
	"GET /api/operator/notice":                          operators,
	"PUT /api/operator/notice":                          operators,
	"GET /api/operator/maintenance":                     operators,
	"PUT /api/operator/maintenance":                     operators,
	"GET /api/favorites":                                everybody(200),
	"PUT /api/favorites/{id}":                           everybody(404).elsewhere(404), // one of the team's: TestPeopleMarkFavorites
	"DELETE /api/favorites/{id}":                        everybody(200),
	"GET /api/where/{id}":                               everybody(404).elsewhere(404), // one of the team's: TestWhereFindsTheTeamOfAnID
	"POST /api/workflows/rename-folder":                 writers(404).with(`{"from":"a","to":"b"}`),
	"GET /api/workflows/steps":                          everybody(400), // without words
	"GET /api/me/filters":                               everybody(200),
	"POST /api/me/filters":                              everybody(201).with(`{"name":"n","filter":{"status":"failed"}}`),
	"DELETE /api/me/filters/{id}":                       everybody(404).elsewhere(404),                   // one's own: TestPeopleKeepFilters
	"PATCH /api/runs/{id}":                              admins(200).with(`{"name":"n"}`).elsewhere(404), // a member's own: TestPeopleNameTheirRuns
	"POST /api/runs/{id}/explain":                       writers(503).elsewhere(404),                     // with a model: TestTheModelExplainsAFailure
	"POST /api/runs/{id}/cancel":                        admins(200).elsewhere(404),                      /* a member's own: TestMembersCancelWhatTheyStarted */
	"POST /api/runs/{id}/retry":                         writers(202).elsewhere(404),
	"POST /api/runs/{id}/retry/preview":                 writers(200).elsewhere(404),
	"GET /api/runs/{id}/events":                         everybody(200).elsewhere(404),
	"GET /api/runs/{id}/logs":                           everybody(200).elsewhere(404),
	"GET /api/runs/{id}/nodes/{nodeId}/shards":          everybody(200).elsewhere(404),
	"GET /api/runs/{id}/outputs":                        everybody(200).elsewhere(404),
	"GET /api/runs/{id}/outputs.zip":                    everybody(200).elsewhere(404),
	"GET /api/runs/{id}/tasks.csv":                      everybody(200).elsewhere(404),
	"GET /api/runs/{id}/crate":                          everybody(200).elsewhere(404),
	"GET /api/runs/{id}/stream":                         everybody(200).elsewhere(404),
	"GET /api/files":                                    everybody(200),
	"POST /api/files/presign":                           writers(200).with(`{"filename":"a.csv","contentType":"text/csv","size":1}`),
	"POST /api/files/uploads":                           writers(201).with(`{"filename":"a.csv","contentType":"text/csv","size":1}`),
	"GET /api/files/uploads":                            writers(200),
	"GET /api/files/uploads/{id}":                       writers(200).elsewhere(404),
	"DELETE /api/files/uploads/{id}":                    admins(200).elsewhere(404), // a member's own: TestALargeFileArrivesInParts
	"POST /api/files/uploads/{id}/parts":                writers(200).with(`{"numbers":[1]}`).elsewhere(404),
	"POST /api/files/uploads/{id}/complete":             writers(409).with(`{}`).elsewhere(404), // nothing has arrived
	"POST /api/files/delete":                            admins(200).with(`{"key":"{file}","source":"upload"}`).elsewhere(404),
	"POST /api/files/delete-run":                        admins(200).with(`{"runId":"{run}"}`).elsewhere(404),
	"POST /api/billing/estimate":                        everybody(200).with(`{}`),
	"GET /api/billing/topup":                            admins(200),
	"POST /api/billing/topup":                           admins(200).with(`{"packageIndex":0}`),
	"POST /api/billing/checkout":                        admins(200).with(`{"packageIndex":0}`),
	"POST /webhooks/stripe":                             open(503),
	"GET /checkout/{secret}":                            open(404),
	"POST /checkout/{secret}":                           open(400),
	"GET /invoices/{secret}":                            open(404),
	"GET /api/secrets":                                  writers(200),
	"PUT /api/secrets/{name}":                           admins(200).with(`{"value":"long enough"}`),
	"DELETE /api/secrets/{name}":                        admins(200).elsewhere(404),
	"POST /api/reported-runs":                           writers(201).with(`{"key":"k","engine":"snakemake","project":"p"}`),
	"GET /api/reported-runs/{id}":                       everybody(200).elsewhere(404),
	"POST /api/reported-runs/{id}/events":               writers(200).with(`{"events":[{"seq":2,"log":{"text":"hi"}}]}`).elsewhere(404),
	"GET /api/reported-runs/{id}/tasks/{task}":          everybody(200).elsewhere(404),
	"POST /api/nextflow/trace/create":                   writers(200).with(`{"sessionId":"s","runName":"n"}`),
	"PUT /api/nextflow/trace/{id}/begin":                writers(200).with(`{}`).elsewhere(200), // and nothing is done: TestAnotherTeamsFramesAreDropped
	"PUT /api/nextflow/trace/{id}/progress":             writers(200).with(`{}`).elsewhere(200),
	"PUT /api/nextflow/trace/{id}/heartbeat":            writers(200).with(`{}`).elsewhere(200),
	"PUT /api/nextflow/trace/{id}/complete":             writers(200).with(`{}`).elsewhere(200),
	"GET /api/nextflow/user-info":                       writers(200),
	"GET /api/nextflow/user/{id}/workspaces":            writers(200),
	"GET /api/nextflow/workflow/{id}":                   writers(200),
	"GET /api/connections":                              writers(200),
	"POST /api/connections":                             admins(201).with(`{"name":"lab","type":"s3","endpoint":"http://127.0.0.1:1","bucket":"lab"}`),
	"DELETE /api/connections/{id}":                      admins(200).elsewhere(404),
	"POST /api/connections/{id}/test":                   writers(200).elsewhere(404),
	"GET /api/connections/{id}/objects":                 writers(400).elsewhere(404), // nobody is at this address; TestABucketIsBrowsed
	"POST /api/collab/invites":                          admins(201).with(`{"workflowId":"{wf}","role":"editor"}`).elsewhere(404),
	"GET /api/collab/invites":                           admins(200).elsewhere(404),
	"DELETE /api/collab/invites":                        admins(200).elsewhere(404),
	"POST /api/collab/join":                             open(200).with(`{"invite":"{share}"}`),
	"POST /api/collab/token":                            everybody(200).with(`{"workflowId":"{wf}"}`).elsewhere(404),
	"GET /editor/{room}":                                open(401), // by a room token: TestTheEditorChecksBeforeItUpgrades
	"POST /api/ai/analyze":                              open(200).with(`{"doi":"10.1000/mill"}`),
	"POST /api/ai/upload":                               open(415),      // TestAnUploadIsReadForItsOwnerAlone
	"GET /api/ai/status":                                everybody(400), // of whom: TestAPaperIsReadOnceAndFoundByItsTeam
	"GET /api/ai/analyses":                              everybody(200),
	"POST /api/ai/proxy/v1/chat/completions":            everybody(503), // with a model: TestAChatIsPassedOn
	"POST /auth/sign-up":                                open(201).with(`{"email":"{fresh}","password":"correct horse","name":"N"}`),
	"POST /auth/sign-in":                                open(200).with(`{"email":"{known}","password":"correct horse"}`),
	"POST /auth/sign-out":                               everybody(200),
	"POST /auth/token":                                  everybody(401), // by cookie only: TestAFreshTokenNeedsTheCookie
	"GET /auth/sessions":                                everybody(200),
	"DELETE /auth/sessions/{id}":                        everybody(404).elsewhere(404), // somebody else's; one's own: TestRevokingOneSession
	"GET /auth/teams":                                   everybody(200),
	"POST /auth/teams":                                  everybody(201).with(`{"name":"another"}`),
	"PATCH /auth/teams/{id}":                            admins(200).with(`{"name":"renamed"}`).elsewhere(404),
	"POST /auth/teams/{id}/activate":                    everybody(200).elsewhere(404),
	"POST /auth/teams/{id}/leave":                       everybody(200).elsewhere(404),
	"GET /auth/teams/{id}/members":                      everybody(200).elsewhere(404),
	"PATCH /auth/teams/{id}/members/{userId}":           admins(200).with(`{"role":"viewer"}`).elsewhere(404),
	"DELETE /auth/teams/{id}/members/{userId}":          admins(200).elsewhere(404),
	"POST /auth/teams/{id}/invitations":                 admins(201).with(`{"email":"{fresh}","role":"viewer"}`).elsewhere(404),
	"POST /auth/teams/{id}/invitations/{invId}/resend":  admins(200).elsewhere(404),
	"DELETE /auth/teams/{id}/invitations/{invId}":       admins(200).elsewhere(404),
	"GET /auth/invitations/{token}":                     open(200),
	"POST /auth/invitations/{token}/accept":             everybody(403), // for somebody else: TestAnInvitationEndToEnd
	"POST /auth/verify":                                 everybody(200).with(`{}`),
	"POST /auth/reset":                                  open(200).with(`{"email":"{known}"}`),
	"POST /auth/reset/{token}":                          open(404).with(`{"password":"another horse"}`),
	"POST /auth/password":                               everybody(200).with(`{"currentPassword":"correct horse","newPassword":"another horse"}`),
	"GET /auth/second-factor":                           everybody(200),
	"POST /auth/second-factor":                          everybody(200).with(`{"action":"begin","password":"correct horse"}`),
	"GET /auth/api-tokens":                              everybody(200),
	"POST /auth/api-tokens":                             everybody(201).with(`{"name":"ci"}`),
	"DELETE /auth/api-tokens":                           everybody(400), // somebody else's: TestAPITokens
	"GET /auth/oidc/{provider}/start":                   open(404),
	"GET /auth/oidc/{provider}/callback":                open(404),
	"GET /.well-known/oauth-authorization-server":       open(200),
	"GET /oauth/authorize":                              open(400), // without a client; with one: TestAllowingAProgram
	"POST /oauth/authorize":                             open(401), // by cookie only
	"GET /.well-known/oauth-protected-resource":         open(200),
	"GET /.well-known/oauth-protected-resource/mcp":     open(200),
	"POST /oauth/register":                              open(400),
	"POST /oauth/token":                                 open(415),
	"POST /oauth/revoke":                                open(415),
	"POST /oauth/device_authorization":                  open(415),
	"GET /device":                                       open(303),
	"POST /device":                                      open(401), // by cookie only
	"GET /pages/{file}":                                 open(404),
	"GET /sign-in":                                      open(200),
	"POST /sign-in":                                     open(415), // forms: TestThePages…
	"POST /sign-in/code":                                open(415),
	"GET /sign-up":                                      open(200),
	"POST /sign-up":                                     open(415),
	"GET /sign-out":                                     open(200),
	"POST /sign-out":                                    open(415),
	"GET /reset":                                        open(200),
	"POST /reset":                                       open(415),
	"GET /reset/{token}":                                open(404),
	"POST /reset/{token}":                               open(415),
	"GET /verify/{token}":                               open(200),
	"POST /verify/{token}":                              open(404),
	"GET /invitations":                                  open(404),
	"GET /invitations/{token}":                          open(200),
	"POST /invitations/{token}":                         open(303),
	"GET /api/operator/audit":                           operators,
	"GET /api/operator/users":                           operators,
	"POST /api/operator/users/{id}/suspend":             operators,
	"POST /api/operator/users/{id}/resume":              operators,
	"POST /api/operator/users/{id}/reset-second-factor": operators,
	"DELETE /api/operator/users/{id}":                   operators,
	"PATCH /api/operator/teams/{id}":                    operators,
	"GET /api/operator/teams/default":                   operators,
	"PATCH /api/operator/teams/default":                 operators,
	"GET /api/operator/usage":                           operators,

	"GET /api/audit":                                          admins(200),
	"GET /api/audit/export":                                   admins(200),
	"GET /api/service-accounts":                               admins(200),
	"POST /api/service-accounts":                              admins(201).with(`{"name":"ci"}`),
	"DELETE /api/service-accounts/{id}":                       admins(200).elsewhere(404),
	"POST /api/service-accounts/{id}/tokens":                  admins(201).with(`{"name":"ci"}`).elsewhere(404),
	"DELETE /api/service-accounts/{id}/tokens/{tokenId}":      admins(200).elsewhere(404),
	"POST /api/service-accounts/{id}/tokens/{tokenId}/rotate": admins(201).with(`{}`).elsewhere(404),
	"POST /auth/api-tokens/{id}/rotate":                       everybody(404).with(`{}`).elsewhere(404), // somebody else's; one's own: TestARotatedTokenOverlapsTheOldOne

	"GET /api/notifications":                               everybody(200),
	"PUT /api/notifications":                               everybody(200).with(`{"all":true}`),
	"GET /api/me/notifications":                            everybody(200),
	"PUT /api/me/notifications":                            everybody(200).with(`{"topics":[{"topic":"allRuns","app":true,"mail":false}]}`),
	"GET /api/billing/quotas":                              everybody(200),
	"GET /api/billing/budgets":                             everybody(200),
	"PUT /api/billing/budgets":                             admins(200).with(`{"budgets":[{"scope":"team","limit":400}]}`),
	"GET /api/webhooks":                                    admins(200),
	"POST /api/webhooks":                                   admins(201).with(`{"url":"https://example.org/hook"}`),
	"POST /api/webhooks/preview":                           admins(200).with(`{"format":"slack"}`),
	"PATCH /api/webhooks/{id}":                             admins(200).with(`{"enabled":false}`).elsewhere(404),
	"DELETE /api/webhooks/{id}":                            admins(200).elsewhere(404),
	"POST /api/webhooks/{id}/test":                         admins(200).elsewhere(404),
	"GET /api/webhooks/{id}/deliveries":                    admins(200).elsewhere(404),
	"POST /api/webhooks/{id}/deliveries/{deliveryId}/send": admins(200).elsewhere(404),
	"GET /api/workflows/{id}/schedules":                    everybody(200).elsewhere(404),
	"POST /api/workflows/{id}/schedules":                   writers(201).with(`{"cron":"0 6 * * *"}`).elsewhere(404),
	"PATCH /api/workflows/{id}/schedules/{scheduleId}":     admins(200).with(`{"enabled":false}`).elsewhere(404), // a member's own: TestMembersKeepTheirOwnSchedules
	"DELETE /api/workflows/{id}/schedules/{scheduleId}":    admins(200).elsewhere(404),
	"GET /api/workflows/{id}/triggers":                     everybody(200).elsewhere(404),
	"POST /api/workflows/{id}/triggers":                    writers(201).with(`{}`).elsewhere(404),
	"DELETE /api/workflows/{id}/triggers/{triggerId}":      admins(200).elsewhere(404),
	"POST /hooks/{token}":                                  open(404), // TestATriggerStartsARun

	"GET /auth/apps":         everybody(200),
	"DELETE /auth/apps/{id}": everybody(404),

	"GET /api/runs/{id}/attempts":                                  writers(200).elsewhere(404),
	"GET /api/runs/{id}/attempts/{nodeId}/{shard}/{attempt}/files": writers(404).elsewhere(404),   // TestAFailedFolderIsKept
	"GET /api/runs/{id}/nodes/{nodeId}/environment":                everybody(404).elsewhere(404), // TestTheEnvironmentOfANode
	"GET /api/runs/{id}/nodes/{nodeId}/recipe":                     everybody(200).elsewhere(404), // TestAFailedFolderIsKept
}

// fixtures are a team with its things, made anew for each call.
type fixtures struct {
	*harness
	n int
}

func (w *fixtures) newcomer() someone {
	w.n++
	return w.signUp(fmt.Sprintf("Person%d", w.n))
}

// team is a fresh team: its owner, and somebody with the wanted role in it.
func (w *fixtures) team(role access.Role) (host, who someone) {
	host = w.newcomer()
	who = w.newcomer()
	w.join(who, host, role)
	return host, who
}

// fill puts ids of the host's things into a path or body.
func (w *fixtures) fill(text string, host someone) string {
	w.t.Helper()
	w.n++
	fresh := fmt.Sprintf("fresh%d@example.org", w.n)
	for name, make := range map[string]func() string{
		"{team}":  func() string { return string(host.team) },
		"{fresh}": func() string { return fresh },
		"{known}": func() string { return host.email },
		"{n}":     func() string { return "1" },
		"{wf}": func() string {
			return w.call("POST", "/api/workflows", `{"name":"theirs"}`, bearer(host.token)).want(201).text("data", "id")
		},
		"{followed}": func() string {
			return w.call("POST", "/api/workflows", `{"git":{"git":"https://example.org/theirs"}}`, bearer(host.token)).want(201).text("data", "id")
		},
		"{session}": func() string {
			return w.call("GET", "/auth/sessions", "", bearer(host.token)).want(200).at("data").([]any)[0].(map[string]any)["id"].(string)
		},
		"{account}": func() string {
			return w.call("POST", "/api/service-accounts", `{"name":"ci"}`, bearer(host.token)).want(201).text("data", "id")
		},
		"{secret}": func() string {
			return w.call("PUT", "/api/secrets/TOKEN", `{"value":"long enough"}`, bearer(host.token)).want(200).text("data", "name")
		},
		"{upload}": func() string {
			return w.call("POST", "/api/files/uploads", `{"filename":"a.csv","contentType":"text/csv","size":1}`, bearer(host.token)).want(201).text("data", "uploadId")
		},
		"{connection}": func() string {
			return w.call("POST", "/api/connections", `{"name":"lab","type":"s3","endpoint":"http://127.0.0.1:1","bucket":"lab"}`, bearer(host.token)).want(201).text("data", "id")
		},
		"{reported}": func() string {
			w.n++
			run := w.call("POST", "/api/reported-runs", fmt.Sprintf(`{"key":"k%d","engine":"snakemake","project":"p"}`, w.n), bearer(host.token)).want(201).text("data", "runId")
			w.call("POST", "/api/reported-runs/"+run+"/events", `{"events":[{"seq":1,"task":{"task":1,"node":"a","status":"running"}}]}`, bearer(host.token)).want(200)
			return run
		},
		"{runnable}": func() string { return w.runnable(host) },
		"{run}":      func() string { return w.finished(host) },
		"{file}":     func() string { return w.upload(host, "a.csv", "text/csv", "x").key },
		"{share}":    func() string { return w.share(host, "viewer").text("data", "token") },
		"{shareId}":  func() string { return w.share(host, "viewer").text("data", "id") },
		"{userId}": func() string {
			other := w.newcomer()
			w.join(other, host, access.Member)
			return string(other.id)
		},
		"{invId}": func() string {
			return w.call("POST", "/api/team/invite", `{"email":"`+fresh+`","role":"admin"}`, bearer(host.token)).want(201).text("data", "id")
		},
		"{token}": func() string {
			r := w.call("POST", "/api/team/invite", `{"email":"`+fresh+`","role":"admin"}`, bearer(host.token)).want(201)
			return strings.TrimPrefix(r.text("data", "link"), base+"/invitations/")
		},
	} {
		if strings.Contains(text, name) {
			text = strings.ReplaceAll(text, name, make())
		}
	}
	return text
}

// request fills a row's path and body.
func (w *fixtures) request(pattern, body string, host someone) (method, path, filled string) {
	method, path, _ = strings.Cut(pattern, " ")
	switch {
	case strings.HasPrefix(path, "/api/webhooks/{id}"):
		hook := w.call("POST", "/api/webhooks", `{"url":"http://127.0.0.1:1/hook"}`, bearer(host.token)).want(201).text("data", "id")
		path = strings.Replace(path, "{id}", hook, 1)
		if strings.Contains(path, "{deliveryId}") {
			sent := w.call("POST", "/api/webhooks/"+hook+"/test", "", bearer(host.token)).want(200).text("data", "id")
			path = strings.Replace(path, "{deliveryId}", sent, 1)
		}
	case strings.HasPrefix(path, "/api/workflows/{id}/schedules/"), strings.HasPrefix(path, "/api/workflows/{id}/triggers/"):
		under := "/api/workflows/" + w.fill("{wf}", host)
		schedule := w.call("POST", under+"/schedules", `{"cron":"0 6 * * *"}`, bearer(host.token)).want(201).text("data", "id")
		trigger := w.call("POST", under+"/triggers", `{}`, bearer(host.token)).want(201).text("data", "id")
		path = strings.NewReplacer("/api/workflows/{id}", under, "{scheduleId}", schedule, "{triggerId}", trigger).Replace(path)
	case path == "/api/workflows/{id}/refresh", path == "/api/workflows/{id}/detach":
		path = strings.Replace(path, "{id}", "{followed}", 1)
	case strings.HasPrefix(path, "/api/workflows/{id}"):
		path = strings.Replace(path, "{id}", "{wf}", 1)
	case strings.HasPrefix(path, "/api/runs/{id}"):
		path = strings.NewReplacer("{id}", "{run}", "{nodeId}", "a").Replace(path)
	case strings.HasPrefix(path, "/api/service-accounts/{id}/tokens/{tokenId}"):
		account := w.fill("{account}", host)
		token := w.call("POST", "/api/service-accounts/"+account+"/tokens", `{"name":"ci"}`, bearer(host.token)).want(201).text("data", "id")
		path = strings.NewReplacer("{id}", account, "{tokenId}", token).Replace(path)
	case strings.HasPrefix(path, "/api/service-accounts/{id}"):
		path = strings.Replace(path, "{id}", "{account}", 1)
	case strings.HasPrefix(path, "/auth/api-tokens/{id}"):
		path = strings.Replace(path, "{id}", "tok_nobodys", 1)
	case strings.HasPrefix(path, "/auth/teams/{id}"):
		path = strings.Replace(path, "{id}", "{team}", 1)
	case strings.HasPrefix(path, "/api/files/uploads/{id}"):
		path = strings.Replace(path, "{id}", "{upload}", 1)
	case strings.HasPrefix(path, "/api/nextflow/trace/{id}"):
		path = strings.Replace(path, "{id}", "{reported}", 1)
	case strings.HasPrefix(path, "/api/nextflow/"):
		path = strings.Replace(path, "{id}", "1", 1)
	case strings.HasPrefix(path, "/api/reported-runs/{id}"):
		path = strings.NewReplacer("{id}", "{reported}", "{task}", "1").Replace(path)
	case strings.HasPrefix(path, "/api/connections/{id}"):
		path = strings.Replace(path, "{id}", "{connection}", 1)
	case strings.HasPrefix(path, "/auth/sessions/{id}"):
		path = strings.Replace(path, "{id}", "{session}", 1)
	}
	switch pattern {
	case "PUT /api/secrets/{name}":
		path = "/api/secrets/TOKEN"
	case "DELETE /api/secrets/{name}":
		path = "/api/secrets/{secret}"
	case "GET /api/collab/invites":
		path += "?workflowId={wf}"
	case "DELETE /api/collab/invites":
		path += "?id={shareId}"
	case "GET /api/runs/compare":
		path += "?a={run}&b={run}"
	case "DELETE /api/runs/{id}/links":
		path += "?linkId=lnk_none"
	}
	return method, strings.Replace(w.fill(path, host), "{$}", "", 1), w.fill(body, host)
}

// A few servers serve all routes, a day for each, since what is counted by the day
// is not what this is about.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	const servers = 12
	patterns := slices.Sorted(maps.Keys(routeRows))
	for i := range servers {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			w := &fixtures{harness: newHarness(t)}
			for j := i; j < len(patterns); j += servers {
				t.Run(patterns[j], func(t *testing.T) {
					w.t = t
					w.pass(25 * time.Hour)
					w.tryAsEverybody(t, patterns[j], routeRows[patterns[j]])
				})
			}
			w.t = t
		})
	}
}

// tryAsEverybody calls a route as every role, as nobody and as a stranger.
// ofNoTeam is a route below /api/ that is about a person, whatever team they work in.
const ofNoTeam = "DELETE /api/me"

func (w *fixtures) tryAsEverybody(t *testing.T, pattern string, row rights) {
	t.Helper()
	for role, want := range map[access.Role]int{access.Owner: row.owner, access.Admin: row.admin, access.Member: row.member, access.Viewer: row.viewer} {
		host, who := w.team(role)
		method, path, body := w.request(pattern, row.body, host)
		got := w.call(method, path, body, bearer(who.token), header("X-Team-Id", string(host.team)))
		if got.status != want {
			t.Errorf("as %s: %d, want %d: %s", role, got.status, want, got.body)
		}
	}
	host := w.newcomer()
	method, path, body := w.request(pattern, row.body, host)
	if got := w.call(method, path, body); got.status != row.nobody {
		t.Errorf("without a token: %d, want %d: %s", got.status, row.nobody, got.body)
	}
	if row.nobody == 401 {
		if got := w.call(method, path, body, bearer("nonsense")); got.status != 401 {
			t.Errorf("with a bad token: %d, want 401: %s", got.status, got.body)
		}
	}
	if row.other != 0 {
		stranger := w.newcomer()
		got := w.call(method, path, body, bearer(stranger.token))
		if got.status != row.other {
			t.Errorf("from another team: %d, want %d: %s", got.status, row.other, got.body)
		}
	}
	if strings.Contains(pattern, "/api/") && row.nobody == 401 && pattern != ofNoTeam {
		stranger := w.newcomer()
		w.call(method, path, body, bearer(stranger.token), header("X-Team-Id", string(host.team))).want(403)
		w.call(method, path, body, bearer(stranger.token), header("X-Team-Id", "team_that_never_was")).want(403)
	}
}

func TestSomebodyWithoutATeamIsToldSo(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada, bob := h.signUp("Ada"), h.signUp("Bob")
	h.join(bob, ada, access.Owner)
	// Bob's own team gets another owner, who shows him the door.
	h.join(ada, bob, access.Owner)
	h.call("DELETE", "/auth/teams/"+string(bob.team)+"/members/"+string(bob.id), "", bearer(ada.token)).want(200)
	h.call("POST", "/auth/teams/"+string(ada.team)+"/leave", "", bearer(bob.token)).want(200)
	h.call("GET", "/api/me", "", bearer(bob.token)).wantCode(403, "no_team")
	h.call("GET", "/api/workflows", "", bearer(bob.token)).wantCode(403, "no_team")
	h.call("GET", "/auth/teams", "", bearer(bob.token)).want(200)
	h.call("POST", "/auth/teams", `{"name":"mine again"}`, bearer(bob.token)).want(201)
	h.call("GET", "/api/me", "", bearer(bob.token)).want(200)
}

func TestMembersDeleteWhatTheyMade(t *testing.T) {
	t.Parallel()
	w := &fixtures{harness: newHarness(t)}
	host, who := w.team(access.Member)
	in := header("X-Team-Id", string(host.team))
	mine := w.call("POST", "/api/workflows", `{"name":"mine"}`, bearer(who.token), in).want(201).text("data", "id")
	w.call("DELETE", "/api/workflows/"+mine, "", bearer(who.token), in).want(200)
	w.call("GET", "/api/workflows/"+mine, "", bearer(who.token), in).want(404)
}
