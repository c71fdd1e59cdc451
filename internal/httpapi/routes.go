package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
)

type handler func(x *exchange) (answer, error)

// route is one line of the API.
type route struct {
	pattern string
	who     audience
	may     access.Action // what a member's role must allow
	guests  bool          // takes the token of a share link, too
	body    int64         // the largest JSON body it takes; 0: it reads none
	once    bool          // honours Idempotency-Key
	limit   *addressLimit
	failsAs failureFormat
	page    bool // fails on a page where a browser asks
	slow    bool // may take longer than an ordinary answer: it streams, moves bytes or asks others
	handle  handler
}

// audience is who a route is for.
type audience int

const (
	anybody      audience = iota // no credential is looked at
	optionalAuth                 // signed in or not, team or no team; a bad token is still 401
	visitor                      // signed in or not; who is, is placed in a team
	person                       // signed in, team or no team
	self                         // signed in by a session of their own, not through a program
	member                       // signed in and placed in a team
)

// failureFormat is the language in which a route fails.
type failureFormat int

const (
	envelope failureFormat = iota
	chatFailure
	oauthFailure
)

const (
	smallBody = 1 << 20 // bytes of an ordinary body
	graphBody = 8 << 20 // of one with a definition
	chatBody  = 20 << 20
)

// routes is the API on one screen. A test holds it against the contract.
func (a *API) routes() []route {
	return []route{
		{pattern: "GET /api/health", handle: a.health},
		{pattern: "GET /api/health/ready", handle: a.ready},
		{pattern: "GET /api/openapi.json", handle: a.openAPI},
		{pattern: "GET /docs", handle: a.reference},
		{pattern: "GET /docs/reference.css", handle: a.referenceCSS},
		{pattern: "GET /help", page: true, handle: a.help},
		{pattern: "GET /help/{page...}", page: true, handle: a.help},
		{pattern: "GET /{$}", handle: a.home},

		{pattern: "GET /api/me", who: member, may: access.Read, handle: a.me},
		{pattern: "GET /api/features", who: member, may: access.Read, handle: a.features},
		{pattern: "GET /api/account/data", who: member, may: access.ExportTeam, slow: true, handle: a.exportTeam},
		{pattern: "DELETE /api/account/data", who: member, may: access.EraseTeam, body: smallBody, slow: true, handle: a.eraseTeam},
		{pattern: "GET /api/team/retention", who: member, may: access.Read, handle: a.getRetention},
		{pattern: "PUT /api/team/retention", who: member, may: access.ManageRetention, body: smallBody, handle: a.setRetention},
		{pattern: "POST /api/team/invite", who: member, may: access.ManageMembers, body: smallBody, once: true, handle: a.inviteMember},

		{pattern: "GET /api/workflows", who: member, may: access.Read, handle: a.listWorkflows},
		{pattern: "POST /api/workflows", who: member, may: access.EditWorkflows, body: graphBody, once: true, handle: a.createWorkflow},
		{pattern: "POST /api/workflows/validate", who: member, may: access.Read, body: graphBody, handle: a.validateDefinition},
		{pattern: "GET /api/workflows/{id}", who: member, may: access.Read, handle: a.getWorkflow},
		{pattern: "PUT /api/workflows/{id}", who: member, may: access.EditWorkflows, body: graphBody, handle: a.updateWorkflow},
		{pattern: "DELETE /api/workflows/{id}", who: member, may: access.EditWorkflows, handle: a.deleteWorkflow},
		{pattern: "GET /api/workflows/{id}/revisions", who: member, may: access.Read, handle: a.listRevisions},
		{pattern: "GET /api/workflows/{id}/revisions/{n}", who: member, may: access.Read, handle: a.getRevision},
		{pattern: "POST /api/workflows/{id}/revisions/{n}/restore", who: member, may: access.EditWorkflows, handle: a.restoreRevision},

		{pattern: "GET /api/runs", who: member, may: access.Read, handle: a.listRuns},
		{pattern: "POST /api/runs", who: member, may: access.StartRuns, guests: true, body: smallBody, once: true, limit: a.runsLimit(), slow: true, handle: a.startRun},
		{pattern: "GET /api/runs/compare", who: member, may: access.Read, handle: a.compareRuns},
		{pattern: "GET /api/sweeps", who: member, may: access.Read, handle: a.listSweeps},
		{pattern: "POST /api/sweeps", who: member, may: access.StartRuns, body: smallBody, once: true, limit: a.runsLimit(), handle: a.startSweep},
		{pattern: "GET /api/sweeps/{id}", who: member, may: access.Read, handle: a.getSweep},
		{pattern: "GET /api/sweeps/{id}/table.csv", who: member, may: access.Read, handle: a.getSweepTable},
		{pattern: "GET /api/runs/{id}", who: member, may: access.Read, handle: a.getRun},
		{pattern: "PATCH /api/runs/{id}", who: member, may: access.StartRuns, body: smallBody, handle: a.editRun},
		{pattern: "GET /api/runs/{id}/attempts", who: member, may: access.ReadFailedFolders, handle: a.listKeptAttempts},
		{pattern: "GET /api/runs/{id}/attempts/{nodeId}/{shard}/{attempt}/files", who: member, may: access.ReadFailedFolders, handle: a.listKeptFiles},
		{pattern: "GET /api/runs/{id}/nodes/{nodeId}/recipe", who: member, may: access.Read, handle: a.getRecipe},
		{pattern: "GET /api/runs/{id}/links", who: member, may: access.ManageSharing, handle: a.listResultLinks},
		{pattern: "POST /api/runs/{id}/links", who: member, may: access.ManageSharing, body: smallBody, once: true, handle: a.createResultLink},
		{pattern: "DELETE /api/runs/{id}/links", who: member, may: access.ManageSharing, handle: a.revokeResultLink},
		{pattern: "POST /api/results", body: smallBody, limit: a.resultsLimit(), handle: a.openResults},
		{pattern: "POST /api/results/copy", who: member, may: access.EditWorkflows, body: smallBody, limit: a.resultsLimit(), handle: a.copyResults},
		{pattern: "POST /api/runs/{id}/cancel", who: member, may: access.CancelRuns, handle: a.cancelRun},
		{pattern: "POST /api/runs/{id}/retry", who: member, may: access.StartRuns, body: smallBody, once: true, limit: a.runsLimit(), slow: true, handle: a.retryRun},
		{pattern: "POST /api/runs/{id}/retry/preview", who: member, may: access.StartRuns, body: smallBody, handle: a.previewRetry},
		{pattern: "GET /api/runs/{id}/events", who: member, may: access.Read, handle: a.listEvents},
		{pattern: "GET /api/runs/{id}/logs", who: member, may: access.Read, handle: a.readLogs},
		{pattern: "GET /api/runs/{id}/nodes/{nodeId}/shards", who: member, may: access.Read, slow: true, handle: a.listShards},
		{pattern: "GET /api/runs/{id}/outputs", who: member, may: access.Read, slow: true, handle: a.listOutputs},
		{pattern: "GET /api/runs/{id}/stream", who: member, may: access.Read, slow: true, handle: a.streamRun},

		{pattern: "GET /reports/{token}/{path...}", page: true, slow: true, handle: a.sendReport},

		{pattern: "GET /api/files", who: member, may: access.Read, slow: true, handle: a.listFiles},
		{pattern: "POST /api/files/presign", who: member, may: access.UploadFiles, body: smallBody, handle: a.presignUpload},
		{pattern: "POST /api/files/delete", who: member, may: access.DeleteFiles, body: smallBody, slow: true, handle: a.deleteFile},
		{pattern: "POST /api/files/delete-run", who: member, may: access.DeleteFiles, body: smallBody, slow: true, handle: a.deleteRunFiles},
		{pattern: "GET /objects/{key...}", slow: true, handle: a.sendObject},
		{pattern: "PUT /objects/{key...}", slow: true, handle: a.receiveObject},

		{pattern: "GET /api/service-accounts", who: member, may: access.ManagePrograms, handle: a.listServiceAccounts},
		{pattern: "POST /api/service-accounts", who: member, may: access.ManagePrograms, body: smallBody, handle: a.createServiceAccount},
		{pattern: "DELETE /api/service-accounts/{id}", who: member, may: access.ManagePrograms, handle: a.deleteServiceAccount},
		{pattern: "POST /api/service-accounts/{id}/tokens", who: member, may: access.ManagePrograms, body: smallBody, handle: a.createServiceToken},
		{pattern: "DELETE /api/service-accounts/{id}/tokens/{tokenId}", who: member, may: access.ManagePrograms, handle: a.revokeServiceToken},
		{pattern: "POST /api/service-accounts/{id}/tokens/{tokenId}/rotate", who: member, may: access.ManagePrograms, body: smallBody, handle: a.rotateServiceToken},
		{pattern: "GET /api/audit", who: member, may: access.ReadAudit, handle: a.listAudit},
		{pattern: "GET /api/audit/export", who: member, may: access.ReadAudit, handle: a.exportAudit},
		{pattern: "GET /api/secrets", who: member, may: access.UseSecrets, handle: a.listSecrets},
		{pattern: "PUT /api/secrets/{name}", who: member, may: access.ManageSecrets, body: smallBody, handle: a.putSecret},
		{pattern: "DELETE /api/secrets/{name}", who: member, may: access.ManageSecrets, handle: a.deleteSecret},

		{pattern: "POST /api/collab/invites", who: member, may: access.ManageSharing, body: smallBody, once: true, handle: a.createInvite},
		{pattern: "GET /api/collab/invites", who: member, may: access.ManageSharing, handle: a.listInvites},
		{pattern: "DELETE /api/collab/invites", who: member, may: access.ManageSharing, handle: a.revokeInvite},
		{pattern: "POST /api/collab/join", body: smallBody, limit: a.joinsLimit(), handle: a.joinWorkflow},
		{pattern: "POST /api/collab/token", who: member, may: access.Read, body: smallBody, handle: a.createRoomToken},
		{pattern: "GET /editor/{room}", slow: true, handle: a.openEditor},

		{pattern: "POST /api/ai/analyze", who: visitor, may: access.Analyze, body: smallBody, limit: papersLimit, slow: true, handle: a.analyzePaper},
		{pattern: "POST /api/ai/upload", who: visitor, may: access.Analyze, limit: papersLimit, slow: true, handle: a.uploadPaper},
		{pattern: "GET /api/ai/status", who: member, may: access.Read, handle: a.getAnalysis},
		{pattern: "GET /api/ai/analyses", who: member, may: access.Read, handle: a.listAnalyses},
		{pattern: "POST /api/ai/proxy/v1/chat/completions", who: member, may: access.Chat, body: chatBody, failsAs: chatFailure, slow: true, handle: a.completeChat},

		{pattern: "GET /api/billing/credits", who: member, may: access.Read, handle: a.getCredits},
		{pattern: "GET /api/billing/usage", who: member, may: access.Read, handle: a.listUsage},
		{pattern: "GET /api/dashboard/usage", who: member, may: access.Read, handle: a.dashboardUsage},
		{pattern: "POST /api/billing/estimate", who: member, may: access.Read, body: smallBody, handle: a.estimateCost},
		{pattern: "GET /api/billing/invoices", who: member, may: access.ManageBilling, handle: a.listInvoices},
		{pattern: "GET /api/billing/topup", who: member, may: access.ManageBilling, handle: a.listPackages},
		{pattern: "POST /api/billing/topup", who: member, may: access.ManageBilling, body: smallBody, once: true, slow: true, handle: a.startTopUp},
		{pattern: "POST /api/billing/checkout", who: member, may: access.ManageBilling, body: smallBody, once: true, slow: true, handle: a.startTopUp},
		{pattern: "POST /webhooks/stripe", handle: a.stripeWebhook},
		{pattern: "GET /checkout/sandbox.css", handle: a.checkoutCSS},
		{pattern: "GET /checkout/{secret}", page: true, handle: a.showCheckout},
		{pattern: "POST /checkout/{secret}", page: true, handle: a.decideCheckout},
		{pattern: "GET /invoices/{secret}", page: true, handle: a.showInvoice}, // and {secret}.pdf: a pattern takes whole segments

		{pattern: "POST /auth/sign-up", body: smallBody, handle: a.signUp},
		{pattern: "POST /auth/sign-in", body: smallBody, handle: a.signIn},
		{pattern: "POST /auth/sign-out", who: self, handle: a.signOut},
		{pattern: "POST /auth/token", who: self, handle: a.createToken},
		{pattern: "GET /auth/sessions", who: self, handle: a.listSessions},
		{pattern: "DELETE /auth/sessions/{id}", who: self, handle: a.revokeSession},
		{pattern: "GET /auth/apps", who: self, handle: a.listApps},
		{pattern: "DELETE /auth/apps/{id}", who: self, handle: a.revokeApp},
		{pattern: "GET /auth/teams", who: person, handle: a.listTeams},
		{pattern: "POST /auth/teams", who: person, body: smallBody, handle: a.createTeam},
		{pattern: "PATCH /auth/teams/{id}", who: person, body: smallBody, handle: a.renameTeam},
		{pattern: "POST /auth/teams/{id}/activate", who: self, handle: a.activateTeam},
		{pattern: "POST /auth/teams/{id}/leave", who: person, handle: a.leaveTeam},
		{pattern: "GET /auth/teams/{id}/members", who: person, handle: a.listMembers},
		{pattern: "PATCH /auth/teams/{id}/members/{userId}", who: person, body: smallBody, handle: a.changeRole},
		{pattern: "DELETE /auth/teams/{id}/members/{userId}", who: person, handle: a.removeMember},
		{pattern: "POST /auth/teams/{id}/invitations", who: person, body: smallBody, handle: a.createInvitation},
		{pattern: "POST /auth/teams/{id}/invitations/{invId}/resend", who: person, handle: a.resendInvitation},
		{pattern: "DELETE /auth/teams/{id}/invitations/{invId}", who: person, handle: a.revokeInvitation},
		{pattern: "GET /auth/invitations/{token}", handle: a.getInvitation},
		{pattern: "POST /auth/invitations/{token}/accept", who: person, handle: a.acceptInvitation},
		{pattern: "GET /auth/oidc/{provider}/start", page: true, slow: true, handle: a.startProviderSignIn},
		{pattern: "GET /auth/oidc/{provider}/callback", page: true, slow: true, handle: a.finishProviderSignIn},
		{pattern: "GET /auth/jwks.json", failsAs: oauthFailure, handle: a.jwks},

		{pattern: "POST /auth/verify", who: optionalAuth, body: smallBody, handle: a.verifyEmail},
		{pattern: "POST /auth/reset", body: smallBody, handle: a.requestReset},
		{pattern: "POST /auth/reset/{token}", body: smallBody, handle: a.resetPassword},
		{pattern: "POST /auth/password", who: self, body: smallBody, handle: a.changePassword},
		{pattern: "POST /auth/second-factor", who: self, body: smallBody, handle: a.changeSecondFactor},
		{pattern: "GET /auth/api-tokens", who: self, handle: a.listAPITokens},
		{pattern: "POST /auth/api-tokens", who: self, body: smallBody, handle: a.createAPIToken},
		{pattern: "POST /auth/api-tokens/{id}/rotate", who: self, body: smallBody, handle: a.rotateAPIToken},
		{pattern: "DELETE /auth/api-tokens", who: self, handle: a.revokeAPIToken},
		{pattern: "GET /.well-known/oauth-authorization-server", failsAs: oauthFailure, handle: a.oauthMetadata},
		{pattern: "GET /oauth/authorize", who: optionalAuth, failsAs: oauthFailure, page: true, handle: a.authorize},
		{pattern: "POST /oauth/authorize", who: optionalAuth, failsAs: oauthFailure, page: true, handle: a.decideAuthorization},
		{pattern: "POST /oauth/token", failsAs: oauthFailure, limit: oauthLimit, handle: a.exchangeToken},
		{pattern: "POST /oauth/revoke", failsAs: oauthFailure, limit: oauthLimit, handle: a.revokeToken},
		{pattern: "POST /oauth/device_authorization", failsAs: oauthFailure, handle: a.authorizeDevice},
		{pattern: "GET /device", who: optionalAuth, page: true, handle: a.showDevice},
		{pattern: "POST /device", who: optionalAuth, page: true, handle: a.decideDevice},

		{pattern: "GET /sign-in", who: optionalAuth, page: true, handle: a.showSignIn},
		{pattern: "POST /sign-in", who: optionalAuth, page: true, handle: a.takeSignIn},
		{pattern: "POST /sign-in/code", who: optionalAuth, page: true, handle: a.takeCode},
		{pattern: "GET /sign-up", who: optionalAuth, page: true, handle: a.showSignUp},
		{pattern: "POST /sign-up", who: optionalAuth, page: true, handle: a.takeSignUp},
		{pattern: "GET /sign-out", who: optionalAuth, page: true, handle: a.showSignOut},
		{pattern: "POST /sign-out", who: optionalAuth, page: true, handle: a.takeSignOut},
		{pattern: "GET /reset", who: optionalAuth, page: true, handle: a.showReset},
		{pattern: "POST /reset", who: optionalAuth, page: true, handle: a.takeReset},
		{pattern: "GET /reset/{token}", who: optionalAuth, page: true, handle: a.showNewPassword},
		{pattern: "POST /reset/{token}", who: optionalAuth, page: true, handle: a.takeNewPassword},
		{pattern: "GET /verify/{token}", who: optionalAuth, page: true, handle: a.showVerify},
		{pattern: "POST /verify/{token}", who: optionalAuth, page: true, handle: a.takeVerify},
		{pattern: "GET /invitations", who: optionalAuth, page: true, handle: a.backToInvitation},
		{pattern: "GET /invitations/{token}", who: optionalAuth, page: true, handle: a.showInvitation},
		{pattern: "POST /invitations/{token}", who: optionalAuth, page: true, handle: a.takeInvitation},
		{pattern: "GET /pages/{file}", handle: a.pageFile},
	}
}

func (a *API) runsLimit() *addressLimit {
	return &addressLimit{name: "runs", window: limits.Window{Most: a.RunsPerMinute, Per: time.Minute}}
}

var knownMethods = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true,
	http.MethodPatch: true, http.MethodDelete: true, http.MethodOptions: true,
}

// shadowed are the patterns that would send a method of an address of our own
// to a route with a wildcard: /api/workflows/validate takes POST alone, and GET
// does not ask for a workflow of that name.
func shadowed(mux *http.ServeMux, routes []route) map[string]bool {
	patterns := map[string]bool{}
	for _, rt := range routes {
		_, path, _ := strings.Cut(rt.pattern, " ")
		if strings.Contains(path, "{") {
			continue
		}
		for method := range knownMethods {
			probe := &http.Request{Method: method, URL: &url.URL{Path: path}}
			if _, found := mux.Handler(probe); strings.HasPrefix(found, method+" ") && strings.Contains(found, "{") {
				patterns[method+" "+path] = true
			}
		}
	}
	return patterns
}

// unknown answers what no route takes: 405 where another method would do,
// else 404.
func (a *API) unknown(mux *http.ServeMux, taken map[string]bool) handler {
	return func(x *exchange) (answer, error) {
		var allowed []string
		for method := range knownMethods {
			probe := x.r.Clone(x.ctx())
			probe.Method = method
			_, pattern := mux.Handler(probe)
			if taken[pattern] {
				continue
			}
			if strings.HasPrefix(pattern, method+" ") || method == http.MethodHead && strings.HasPrefix(pattern, "GET ") {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) == 0 {
			return nowhere(x)
		}
		slices.Sort(allowed)
		x.w.Header().Set("Allow", strings.Join(allowed, ", "))
		return answer{}, &fault.Error{Kind: kindMethod, Message: "this address takes " + strings.Join(allowed, ", ") + ", not " + x.r.Method}
	}
}

// ofAccounts reports whether a route looks after accounts, sessions and teams
// that we keep ourselves.
func ofAccounts(pattern string) bool {
	_, path, _ := strings.Cut(pattern, " ")
	if pattern == "GET /auth/teams" {
		return false
	}
	return slices.ContainsFunc([]string{
		"/auth/", "/oauth/", "/.well-known/oauth-", "/sign-in", "/sign-up", "/sign-out", "/reset", "/verify", "/device", "/invitations", "/api/service-accounts",
	}, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

func notBuiltIn(*exchange) (answer, error) {
	return answer{}, fault.NotFound("accounts and teams are managed by another service: sign in and manage them there").WithCode("accounts_elsewhere")
}

func nowhere(*exchange) (answer, error) {
	return answer{}, fault.NotFound("there is nothing at this address")
}

// kindMethod is HTTP's own failure; no room knows of it.
const kindMethod fault.Kind = "method_not_allowed"

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
