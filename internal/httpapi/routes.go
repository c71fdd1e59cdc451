package httpapi

import (
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// routes is the API on one screen. A test holds it against the contract.
func (a *API) routes() []kernel.Route {
	return []kernel.Route{
		{Pattern: "GET /api/health", Handle: a.health},
		{Pattern: "GET /api/health/ready", Handle: a.ready},
		{Pattern: "GET /api/openapi.json", Handle: a.openAPI},
		{Pattern: "GET /docs", Handle: a.reference},
		{Pattern: "GET /docs/reference.css", Handle: a.referenceCSS},
		{Pattern: "GET /help", Page: true, Handle: a.help},
		{Pattern: "GET /help/{page...}", Page: true, Handle: a.help},
		{Pattern: "GET /{$}", Handle: a.home},

		{Pattern: "GET /api/me", Who: kernel.Member, May: access.Read, Handle: a.me},
		{Pattern: "GET /api/features", Who: kernel.Member, May: access.Read, Handle: a.features},
		{Pattern: "GET /api/account/data", Who: kernel.Member, May: access.ExportTeam, Slow: true, Handle: a.exportTeam},
		{Pattern: "DELETE /api/account/data", Who: kernel.Member, May: access.EraseTeam, Body: kernel.SmallBody, Slow: true, Handle: a.eraseTeam},
		{Pattern: "GET /api/team/retention", Who: kernel.Member, May: access.Read, Handle: a.getRetention},
		{Pattern: "PUT /api/team/retention", Who: kernel.Member, May: access.ManageRetention, Body: kernel.SmallBody, Handle: a.setRetention},
		{Pattern: "POST /api/team/invite", Who: kernel.Member, May: access.ManageMembers, Body: kernel.SmallBody, Once: true, Handle: a.inviteMember},

		{Pattern: "GET /api/workflows", Who: kernel.Member, May: access.Read, Handle: a.listWorkflows},
		{Pattern: "POST /api/workflows", Who: kernel.Member, May: access.EditWorkflows, Body: kernel.GraphBody, Once: true, Handle: a.createWorkflow},
		{Pattern: "POST /api/workflows/validate", Who: kernel.Member, May: access.Read, Body: kernel.GraphBody, Handle: a.validateDefinition},
		{Pattern: "GET /api/workflows/{id}", Who: kernel.Member, May: access.Read, Handle: a.getWorkflow},
		{Pattern: "PUT /api/workflows/{id}", Who: kernel.Member, May: access.EditWorkflows, Body: kernel.GraphBody, Handle: a.updateWorkflow},
		{Pattern: "DELETE /api/workflows/{id}", Who: kernel.Member, May: access.EditWorkflows, Handle: a.deleteWorkflow},
		{Pattern: "GET /api/workflows/{id}/revisions", Who: kernel.Member, May: access.Read, Handle: a.listRevisions},
		{Pattern: "GET /api/workflows/{id}/revisions/{n}", Who: kernel.Member, May: access.Read, Handle: a.getRevision},
		{Pattern: "POST /api/workflows/{id}/revisions/{n}/restore", Who: kernel.Member, May: access.EditWorkflows, Handle: a.restoreRevision},

		{Pattern: "GET /api/runs", Who: kernel.Member, May: access.Read, Handle: a.listRuns},
		{Pattern: "POST /api/runs", Who: kernel.Member, May: access.StartRuns, Guests: true, Body: kernel.SmallBody, Once: true, Limit: a.runsLimit(), Slow: true, Handle: a.startRun},
		{Pattern: "GET /api/runs/compare", Who: kernel.Member, May: access.Read, Handle: a.compareRuns},
		{Pattern: "GET /api/sweeps", Who: kernel.Member, May: access.Read, Handle: a.listSweeps},
		{Pattern: "POST /api/sweeps", Who: kernel.Member, May: access.StartRuns, Body: kernel.SmallBody, Once: true, Limit: a.runsLimit(), Handle: a.startSweep},
		{Pattern: "GET /api/sweeps/{id}", Who: kernel.Member, May: access.Read, Handle: a.getSweep},
		{Pattern: "GET /api/sweeps/{id}/table.csv", Who: kernel.Member, May: access.Read, Handle: a.getSweepTable},
		{Pattern: "GET /api/runs/{id}", Who: kernel.Member, May: access.Read, Handle: a.getRun},
		{Pattern: "PATCH /api/runs/{id}", Who: kernel.Member, May: access.StartRuns, Body: kernel.SmallBody, Handle: a.editRun},
		{Pattern: "GET /api/runs/{id}/attempts", Who: kernel.Member, May: access.ReadFailedFolders, Handle: a.listKeptAttempts},
		{Pattern: "GET /api/runs/{id}/attempts/{nodeId}/{shard}/{attempt}/files", Who: kernel.Member, May: access.ReadFailedFolders, Handle: a.listKeptFiles},
		{Pattern: "GET /api/runs/{id}/nodes/{nodeId}/recipe", Who: kernel.Member, May: access.Read, Handle: a.getRecipe},
		{Pattern: "GET /api/runs/{id}/links", Who: kernel.Member, May: access.ManageSharing, Handle: a.listResultLinks},
		{Pattern: "POST /api/runs/{id}/links", Who: kernel.Member, May: access.ManageSharing, Body: kernel.SmallBody, Once: true, Handle: a.createResultLink},
		{Pattern: "DELETE /api/runs/{id}/links", Who: kernel.Member, May: access.ManageSharing, Handle: a.revokeResultLink},
		{Pattern: "POST /api/results", Body: kernel.SmallBody, Limit: a.resultsLimit(), Handle: a.openResults},
		{Pattern: "POST /api/results/copy", Who: kernel.Member, May: access.EditWorkflows, Body: kernel.SmallBody, Limit: a.resultsLimit(), Handle: a.copyResults},
		{Pattern: "POST /api/runs/{id}/cancel", Who: kernel.Member, May: access.CancelRuns, Handle: a.cancelRun},
		{Pattern: "POST /api/runs/{id}/retry", Who: kernel.Member, May: access.StartRuns, Body: kernel.SmallBody, Once: true, Limit: a.runsLimit(), Slow: true, Handle: a.retryRun},
		{Pattern: "POST /api/runs/{id}/retry/preview", Who: kernel.Member, May: access.StartRuns, Body: kernel.SmallBody, Handle: a.previewRetry},
		{Pattern: "GET /api/runs/{id}/events", Who: kernel.Member, May: access.Read, Handle: a.listEvents},
		{Pattern: "GET /api/runs/{id}/logs", Who: kernel.Member, May: access.Read, Handle: a.readLogs},
		{Pattern: "GET /api/runs/{id}/nodes/{nodeId}/shards", Who: kernel.Member, May: access.Read, Slow: true, Handle: a.listShards},
		{Pattern: "GET /api/runs/{id}/outputs", Who: kernel.Member, May: access.Read, Slow: true, Handle: a.listOutputs},
		{Pattern: "GET /api/runs/{id}/stream", Who: kernel.Member, May: access.Read, Slow: true, Handle: a.streamRun},

		{Pattern: "GET /reports/{token}/{path...}", Page: true, Slow: true, Handle: a.sendReport},

		{Pattern: "GET /api/files", Who: kernel.Member, May: access.Read, Slow: true, Handle: a.listFiles},
		{Pattern: "POST /api/files/presign", Who: kernel.Member, May: access.UploadFiles, Body: kernel.SmallBody, Handle: a.presignUpload},
		{Pattern: "POST /api/files/delete", Who: kernel.Member, May: access.DeleteFiles, Body: kernel.SmallBody, Slow: true, Handle: a.deleteFile},
		{Pattern: "POST /api/files/delete-run", Who: kernel.Member, May: access.DeleteFiles, Body: kernel.SmallBody, Slow: true, Handle: a.deleteRunFiles},
		{Pattern: "GET /objects/{key...}", Slow: true, Handle: a.sendObject},
		{Pattern: "PUT /objects/{key...}", Slow: true, Handle: a.receiveObject},

		{Pattern: "GET /api/service-accounts", Who: kernel.Member, May: access.ManagePrograms, Handle: a.listServiceAccounts},
		{Pattern: "POST /api/service-accounts", Who: kernel.Member, May: access.ManagePrograms, Body: kernel.SmallBody, Handle: a.createServiceAccount},
		{Pattern: "DELETE /api/service-accounts/{id}", Who: kernel.Member, May: access.ManagePrograms, Handle: a.deleteServiceAccount},
		{Pattern: "POST /api/service-accounts/{id}/tokens", Who: kernel.Member, May: access.ManagePrograms, Body: kernel.SmallBody, Handle: a.createServiceToken},
		{Pattern: "DELETE /api/service-accounts/{id}/tokens/{tokenId}", Who: kernel.Member, May: access.ManagePrograms, Handle: a.revokeServiceToken},
		{Pattern: "POST /api/service-accounts/{id}/tokens/{tokenId}/rotate", Who: kernel.Member, May: access.ManagePrograms, Body: kernel.SmallBody, Handle: a.rotateServiceToken},
		{Pattern: "GET /api/audit", Who: kernel.Member, May: access.ReadAudit, Handle: a.listAudit},
		{Pattern: "GET /api/audit/export", Who: kernel.Member, May: access.ReadAudit, Handle: a.exportAudit},
		{Pattern: "GET /api/secrets", Who: kernel.Member, May: access.UseSecrets, Handle: a.listSecrets},
		{Pattern: "PUT /api/secrets/{name}", Who: kernel.Member, May: access.ManageSecrets, Body: kernel.SmallBody, Handle: a.putSecret},
		{Pattern: "DELETE /api/secrets/{name}", Who: kernel.Member, May: access.ManageSecrets, Handle: a.deleteSecret},
		{Pattern: "GET /api/connections", Who: kernel.Member, May: access.UseConnections, Handle: a.listConnections},
		{Pattern: "POST /api/connections", Who: kernel.Member, May: access.ManageConnections, Body: kernel.SmallBody, Slow: true, Handle: a.createConnection},
		{Pattern: "DELETE /api/connections/{id}", Who: kernel.Member, May: access.ManageConnections, Handle: a.deleteConnection},
		{Pattern: "POST /api/connections/{id}/test", Who: kernel.Member, May: access.UseConnections, Slow: true, Handle: a.testConnection},
		{Pattern: "GET /api/connections/{id}/objects", Who: kernel.Member, May: access.UseConnections, Slow: true, Handle: a.listConnectionObjects},

		{Pattern: "POST /api/collab/invites", Who: kernel.Member, May: access.ManageSharing, Body: kernel.SmallBody, Once: true, Handle: a.createInvite},
		{Pattern: "GET /api/collab/invites", Who: kernel.Member, May: access.ManageSharing, Handle: a.listInvites},
		{Pattern: "DELETE /api/collab/invites", Who: kernel.Member, May: access.ManageSharing, Handle: a.revokeInvite},
		{Pattern: "POST /api/collab/join", Body: kernel.SmallBody, Limit: a.joinsLimit(), Handle: a.joinWorkflow},
		{Pattern: "POST /api/collab/token", Who: kernel.Member, May: access.Read, Body: kernel.SmallBody, Handle: a.createRoomToken},
		{Pattern: "GET /editor/{room}", Slow: true, Handle: a.openEditor},

		{Pattern: "POST /api/ai/analyze", Who: kernel.Visitor, May: access.Analyze, Body: kernel.SmallBody, Limit: papersLimit, Slow: true, Handle: a.analyzePaper},
		{Pattern: "POST /api/ai/upload", Who: kernel.Visitor, May: access.Analyze, Limit: papersLimit, Slow: true, Handle: a.uploadPaper},
		{Pattern: "GET /api/ai/status", Who: kernel.Member, May: access.Read, Handle: a.getAnalysis},
		{Pattern: "GET /api/ai/analyses", Who: kernel.Member, May: access.Read, Handle: a.listAnalyses},
		{Pattern: "POST /api/ai/proxy/v1/chat/completions", Who: kernel.Member, May: access.Chat, Body: kernel.ChatBody, FailsAs: kernel.ChatFailure, Slow: true, Handle: a.completeChat},

		{Pattern: "GET /api/billing/credits", Who: kernel.Member, May: access.Read, Handle: a.getCredits},
		{Pattern: "GET /api/billing/usage", Who: kernel.Member, May: access.Read, Handle: a.listUsage},
		{Pattern: "GET /api/dashboard/usage", Who: kernel.Member, May: access.Read, Handle: a.dashboardUsage},
		{Pattern: "POST /api/billing/estimate", Who: kernel.Member, May: access.Read, Body: kernel.SmallBody, Handle: a.estimateCost},
		{Pattern: "GET /api/billing/invoices", Who: kernel.Member, May: access.ManageBilling, Handle: a.listInvoices},
		{Pattern: "GET /api/billing/topup", Who: kernel.Member, May: access.ManageBilling, Handle: a.listPackages},
		{Pattern: "POST /api/billing/topup", Who: kernel.Member, May: access.ManageBilling, Body: kernel.SmallBody, Once: true, Slow: true, Handle: a.startTopUp},
		{Pattern: "POST /api/billing/checkout", Who: kernel.Member, May: access.ManageBilling, Body: kernel.SmallBody, Once: true, Slow: true, Handle: a.startTopUp},
		{Pattern: "POST /webhooks/stripe", Handle: a.stripeWebhook},
		{Pattern: "GET /checkout/sandbox.css", Handle: a.checkoutCSS},
		{Pattern: "GET /checkout/{secret}", Page: true, Handle: a.showCheckout},
		{Pattern: "POST /checkout/{secret}", Page: true, Handle: a.decideCheckout},
		{Pattern: "GET /invoices/{secret}", Page: true, Handle: a.showInvoice}, // and {secret}.pdf: a pattern takes whole segments

		{Pattern: "POST /auth/sign-up", Body: kernel.SmallBody, Handle: a.signUp},
		{Pattern: "POST /auth/sign-in", Body: kernel.SmallBody, Handle: a.signIn},
		{Pattern: "POST /auth/sign-out", Who: kernel.Self, Handle: a.signOut},
		{Pattern: "POST /auth/token", Who: kernel.Self, Handle: a.createToken},
		{Pattern: "GET /auth/sessions", Who: kernel.Self, Handle: a.listSessions},
		{Pattern: "DELETE /auth/sessions/{id}", Who: kernel.Self, Handle: a.revokeSession},
		{Pattern: "GET /auth/apps", Who: kernel.Self, Handle: a.listApps},
		{Pattern: "DELETE /auth/apps/{id}", Who: kernel.Self, Handle: a.revokeApp},
		{Pattern: "GET /auth/teams", Who: kernel.Person, Handle: a.listTeams},
		{Pattern: "POST /auth/teams", Who: kernel.Person, Body: kernel.SmallBody, Handle: a.createTeam},
		{Pattern: "PATCH /auth/teams/{id}", Who: kernel.Person, Body: kernel.SmallBody, Handle: a.renameTeam},
		{Pattern: "POST /auth/teams/{id}/activate", Who: kernel.Self, Handle: a.activateTeam},
		{Pattern: "POST /auth/teams/{id}/leave", Who: kernel.Person, Handle: a.leaveTeam},
		{Pattern: "GET /auth/teams/{id}/members", Who: kernel.Person, Handle: a.listMembers},
		{Pattern: "PATCH /auth/teams/{id}/members/{userId}", Who: kernel.Person, Body: kernel.SmallBody, Handle: a.changeRole},
		{Pattern: "DELETE /auth/teams/{id}/members/{userId}", Who: kernel.Person, Handle: a.removeMember},
		{Pattern: "POST /auth/teams/{id}/invitations", Who: kernel.Person, Body: kernel.SmallBody, Handle: a.createInvitation},
		{Pattern: "POST /auth/teams/{id}/invitations/{invId}/resend", Who: kernel.Person, Handle: a.resendInvitation},
		{Pattern: "DELETE /auth/teams/{id}/invitations/{invId}", Who: kernel.Person, Handle: a.revokeInvitation},
		{Pattern: "GET /auth/invitations/{token}", Handle: a.getInvitation},
		{Pattern: "POST /auth/invitations/{token}/accept", Who: kernel.Person, Handle: a.acceptInvitation},
		{Pattern: "GET /auth/oidc/{provider}/start", Page: true, Slow: true, Handle: a.startProviderSignIn},
		{Pattern: "GET /auth/oidc/{provider}/callback", Page: true, Slow: true, Handle: a.finishProviderSignIn},
		{Pattern: "GET /auth/jwks.json", FailsAs: kernel.OAuthFailure, Handle: a.jwks},

		{Pattern: "POST /auth/verify", Who: kernel.OptionalAuth, Body: kernel.SmallBody, Handle: a.verifyEmail},
		{Pattern: "POST /auth/reset", Body: kernel.SmallBody, Handle: a.requestReset},
		{Pattern: "POST /auth/reset/{token}", Body: kernel.SmallBody, Handle: a.resetPassword},
		{Pattern: "POST /auth/password", Who: kernel.Self, Body: kernel.SmallBody, Handle: a.changePassword},
		{Pattern: "POST /auth/second-factor", Who: kernel.Self, Body: kernel.SmallBody, Handle: a.changeSecondFactor},
		{Pattern: "GET /auth/api-tokens", Who: kernel.Self, Handle: a.listAPITokens},
		{Pattern: "POST /auth/api-tokens", Who: kernel.Self, Body: kernel.SmallBody, Handle: a.createAPIToken},
		{Pattern: "POST /auth/api-tokens/{id}/rotate", Who: kernel.Self, Body: kernel.SmallBody, Handle: a.rotateAPIToken},
		{Pattern: "DELETE /auth/api-tokens", Who: kernel.Self, Handle: a.revokeAPIToken},
		{Pattern: "GET /.well-known/oauth-authorization-server", FailsAs: kernel.OAuthFailure, Handle: a.oauthMetadata},
		{Pattern: "GET /oauth/authorize", Who: kernel.OptionalAuth, FailsAs: kernel.OAuthFailure, Page: true, Handle: a.authorize},
		{Pattern: "POST /oauth/authorize", Who: kernel.OptionalAuth, FailsAs: kernel.OAuthFailure, Page: true, Handle: a.decideAuthorization},
		{Pattern: "POST /oauth/token", FailsAs: kernel.OAuthFailure, Limit: oauthLimit, Handle: a.exchangeToken},
		{Pattern: "POST /oauth/revoke", FailsAs: kernel.OAuthFailure, Limit: oauthLimit, Handle: a.revokeToken},
		{Pattern: "POST /oauth/device_authorization", FailsAs: kernel.OAuthFailure, Handle: a.authorizeDevice},
		{Pattern: "GET /device", Who: kernel.OptionalAuth, Page: true, Handle: a.showDevice},
		{Pattern: "POST /device", Who: kernel.OptionalAuth, Page: true, Handle: a.decideDevice},

		{Pattern: "GET /sign-in", Who: kernel.OptionalAuth, Page: true, Handle: a.showSignIn},
		{Pattern: "POST /sign-in", Who: kernel.OptionalAuth, Page: true, Handle: a.takeSignIn},
		{Pattern: "POST /sign-in/code", Who: kernel.OptionalAuth, Page: true, Handle: a.takeCode},
		{Pattern: "GET /sign-up", Who: kernel.OptionalAuth, Page: true, Handle: a.showSignUp},
		{Pattern: "POST /sign-up", Who: kernel.OptionalAuth, Page: true, Handle: a.takeSignUp},
		{Pattern: "GET /sign-out", Who: kernel.OptionalAuth, Page: true, Handle: a.showSignOut},
		{Pattern: "POST /sign-out", Who: kernel.OptionalAuth, Page: true, Handle: a.takeSignOut},
		{Pattern: "GET /reset", Who: kernel.OptionalAuth, Page: true, Handle: a.showReset},
		{Pattern: "POST /reset", Who: kernel.OptionalAuth, Page: true, Handle: a.takeReset},
		{Pattern: "GET /reset/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.showNewPassword},
		{Pattern: "POST /reset/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.takeNewPassword},
		{Pattern: "GET /verify/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.showVerify},
		{Pattern: "POST /verify/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.takeVerify},
		{Pattern: "GET /invitations", Who: kernel.OptionalAuth, Page: true, Handle: a.backToInvitation},
		{Pattern: "GET /invitations/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.showInvitation},
		{Pattern: "POST /invitations/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.takeInvitation},
		{Pattern: "GET /pages/{file}", Handle: a.pageFile},
	}
}

func (a *API) runsLimit() *kernel.AddressLimit {
	return &kernel.AddressLimit{Name: "runs", Window: limits.Window{Most: a.RunsPerMinute, Per: time.Minute}}
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

func notBuiltIn(*kernel.Exchange) (kernel.Answer, error) {
	return kernel.Answer{}, fault.NotFound("accounts and teams are managed by another service: sign in and manage them there").WithCode("accounts_elsewhere")
}
