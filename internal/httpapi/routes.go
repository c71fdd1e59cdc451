package httpapi

import (
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/httpapi/ai"
	"github.com/millrace/millrace/internal/httpapi/identity"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/httpapi/operator"
)

// routes is the API on one screen. A test holds it against the contract.
func (a *API) routes() []kernel.Route {
	return []kernel.Route{
		{Pattern: "GET /api/health", Handle: a.system.Health},
		{Pattern: "GET /api/health/ready", Handle: a.system.Ready},
		{Pattern: "GET /api/openapi.json", Handle: a.system.OpenAPI},
		{Pattern: "GET /docs", Handle: a.system.Reference},
		{Pattern: "GET /docs/reference.css", Handle: a.system.ReferenceCSS},
		{Pattern: "GET /help", Page: true, Handle: a.system.Help},
		{Pattern: "GET /help/{page...}", Page: true, Handle: a.system.Help},
		{Pattern: "GET /{$}", Handle: a.system.Home},

		{Pattern: "GET /api/me", Who: kernel.Member, May: access.Read, Handle: a.identity.Me},
		{Pattern: "GET /api/me/filters", Who: kernel.Member, May: access.Read, Handle: a.runs.ListFilters},
		{Pattern: "POST /api/me/filters", Who: kernel.Member, May: access.SaveFilters, Body: kernel.SmallBody, Handle: a.runs.SaveFilter},
		{Pattern: "DELETE /api/me/filters/{id}", Who: kernel.Member, May: access.SaveFilters, Handle: a.runs.DeleteFilter},
		{Pattern: "GET /api/me/notifications", Who: kernel.Member, May: access.Read, Handle: a.notifications.Choices},
		{Pattern: "PUT /api/me/notifications", Who: kernel.Member, May: access.ReceiveNotifications, Body: kernel.SmallBody, Handle: a.notifications.Choose},
		{Pattern: "GET /api/notifications", Who: kernel.Member, May: access.Read, Handle: a.notifications.List},
		{Pattern: "PUT /api/notifications", Who: kernel.Member, May: access.ReceiveNotifications, Body: kernel.SmallBody, Handle: a.notifications.MarkRead},
		{Pattern: "GET /api/features", Who: kernel.Member, May: access.Read, Handle: a.system.Features},
		{Pattern: "GET /api/account/data", Who: kernel.Member, May: access.ExportTeam, Slow: true, Handle: a.account.ExportTeam},
		{Pattern: "DELETE /api/account/data", Who: kernel.Member, May: access.EraseTeam, Body: kernel.SmallBody, Slow: true, Handle: a.account.EraseTeam},
		{Pattern: "GET /api/team/retention", Who: kernel.Member, May: access.Read, Handle: a.account.GetRetention},
		{Pattern: "PUT /api/team/retention", Who: kernel.Member, May: access.ManageRetention, Body: kernel.SmallBody, Handle: a.account.SetRetention},
		{Pattern: "POST /api/team/invite", Who: kernel.Member, May: access.ManageMembers, Body: kernel.SmallBody, Once: true, Handle: a.identity.InviteMember},

		{Pattern: "GET /api/workflows", Who: kernel.Member, May: access.Read, Handle: a.workflows.ListWorkflows},
		{Pattern: "POST /api/workflows", Who: kernel.Member, May: access.EditWorkflows, Body: kernel.GraphBody, Once: true, Handle: a.workflows.CreateWorkflow},
		{Pattern: "POST /api/workflows/validate", Who: kernel.Member, May: access.Read, Body: kernel.GraphBody, Handle: a.workflows.ValidateDefinition},
		{Pattern: "GET /api/workflows/{id}", Who: kernel.Member, May: access.Read, Handle: a.workflows.GetWorkflow},
		{Pattern: "PUT /api/workflows/{id}", Who: kernel.Member, May: access.EditWorkflows, Body: kernel.GraphBody, Handle: a.workflows.UpdateWorkflow},
		{Pattern: "DELETE /api/workflows/{id}", Who: kernel.Member, May: access.EditWorkflows, Handle: a.workflows.DeleteWorkflow},
		{Pattern: "GET /api/workflows/{id}/revisions", Who: kernel.Member, May: access.Read, Handle: a.workflows.ListRevisions},
		{Pattern: "GET /api/workflows/{id}/revisions/{n}", Who: kernel.Member, May: access.Read, Handle: a.workflows.GetRevision},
		{Pattern: "GET /api/workflows/{id}/source", Who: kernel.Member, May: access.Read, Handle: a.workflows.GetSource},
		{Pattern: "POST /api/workflows/{id}/refresh", Who: kernel.Member, May: access.EditWorkflows, Slow: true, Handle: a.workflows.RefreshWorkflow},
		{Pattern: "POST /api/workflows/{id}/detach", Who: kernel.Member, May: access.EditWorkflows, Handle: a.workflows.DetachWorkflow},
		{Pattern: "POST /api/workflows/{id}/revisions/{n}/restore", Who: kernel.Member, May: access.EditWorkflows, Handle: a.workflows.RestoreRevision},

		{Pattern: "POST /api/workflows/{id}/revisions/{n}/confirm", Who: kernel.Member, May: access.EditWorkflows, Handle: a.workflows.ConfirmRevision},
		{Pattern: "GET /api/workflows/{id}/schedules", Who: kernel.Member, May: access.Read, Handle: a.schedules.ListSchedules},
		{Pattern: "POST /api/workflows/{id}/schedules", Who: kernel.Member, May: access.ManageSchedules, Body: kernel.SmallBody, Handle: a.schedules.CreateSchedule},
		{Pattern: "PATCH /api/workflows/{id}/schedules/{scheduleId}", Who: kernel.Member, May: access.ManageSchedules, Body: kernel.SmallBody, Handle: a.schedules.ChangeSchedule},
		{Pattern: "DELETE /api/workflows/{id}/schedules/{scheduleId}", Who: kernel.Member, May: access.ManageSchedules, Handle: a.schedules.DeleteSchedule},
		{Pattern: "GET /api/workflows/{id}/triggers", Who: kernel.Member, May: access.Read, Handle: a.schedules.ListTriggers},
		{Pattern: "POST /api/workflows/{id}/triggers", Who: kernel.Member, May: access.ManageSchedules, Body: kernel.SmallBody, Once: true, Handle: a.schedules.CreateTrigger},
		{Pattern: "DELETE /api/workflows/{id}/triggers/{triggerId}", Who: kernel.Member, May: access.ManageSchedules, Handle: a.schedules.DeleteTrigger},
		{Pattern: "POST /hooks/{token}", Body: kernel.SmallBody, Slow: true, Handle: a.schedules.CallTrigger},

		{Pattern: "GET /api/webhooks", Who: kernel.Member, May: access.ManageWebhooks, Handle: a.webhooks.ListWebhooks},
		{Pattern: "POST /api/webhooks", Who: kernel.Member, May: access.ManageWebhooks, Body: kernel.SmallBody, Handle: a.webhooks.CreateWebhook},
		{Pattern: "POST /api/webhooks/preview", Who: kernel.Member, May: access.ManageWebhooks, Body: kernel.SmallBody, Handle: a.webhooks.PreviewWebhook},
		{Pattern: "PATCH /api/webhooks/{id}", Who: kernel.Member, May: access.ManageWebhooks, Body: kernel.SmallBody, Handle: a.webhooks.ChangeWebhook},
		{Pattern: "DELETE /api/webhooks/{id}", Who: kernel.Member, May: access.ManageWebhooks, Handle: a.webhooks.DeleteWebhook},
		{Pattern: "POST /api/webhooks/{id}/test", Who: kernel.Member, May: access.ManageWebhooks, Slow: true, Handle: a.webhooks.TestWebhook},
		{Pattern: "GET /api/webhooks/{id}/deliveries", Who: kernel.Member, May: access.ManageWebhooks, Handle: a.webhooks.ListDeliveries},
		{Pattern: "POST /api/webhooks/{id}/deliveries/{deliveryId}/send", Who: kernel.Member, May: access.ManageWebhooks, Handle: a.webhooks.SendAgain},

		{Pattern: "GET /api/runs", Who: kernel.Member, May: access.Read, Handle: a.runs.ListRuns},
		{Pattern: "POST /api/runs", Who: kernel.Member, May: access.StartRuns, Guests: true, Body: kernel.SmallBody, Once: true, Limit: a.runsLimit(), Slow: true, Handle: a.runs.StartRun},
		{Pattern: "GET /api/runs/compare", Who: kernel.Member, May: access.Read, Handle: a.runs.CompareRuns},
		{Pattern: "GET /api/executors", Who: kernel.Member, May: access.Read, Handle: a.runs.ListExecutors},
		{Pattern: "GET /api/sweeps", Who: kernel.Member, May: access.Read, Handle: a.runs.ListSweeps},
		{Pattern: "POST /api/sweeps", Who: kernel.Member, May: access.StartRuns, Body: kernel.SmallBody, Once: true, Limit: a.runsLimit(), Handle: a.runs.StartSweep},
		{Pattern: "GET /api/sweeps/{id}", Who: kernel.Member, May: access.Read, Handle: a.runs.GetSweep},
		{Pattern: "GET /api/sweeps/{id}/table.csv", Who: kernel.Member, May: access.Read, Handle: a.runs.GetSweepTable},
		{Pattern: "GET /api/runs/{id}", Who: kernel.Member, May: access.Read, Handle: a.runs.GetRun},
		{Pattern: "DELETE /api/runs/{id}", Who: kernel.Member, May: access.DeleteRuns, Slow: true, Handle: a.runs.DeleteRun},
		{Pattern: "PATCH /api/runs/{id}", Who: kernel.Member, May: access.StartRuns, Body: kernel.SmallBody, Handle: a.runs.EditRun},
		{Pattern: "GET /api/runs/{id}/attempts", Who: kernel.Member, May: access.ReadFailedFolders, Handle: a.runs.ListKeptAttempts},
		{Pattern: "GET /api/runs/{id}/attempts/{nodeId}/{shard}/{attempt}/files", Who: kernel.Member, May: access.ReadFailedFolders, Handle: a.runs.ListKeptFiles},
		{Pattern: "GET /api/runs/{id}/nodes/{nodeId}/environment", Who: kernel.Member, May: access.Read, Handle: a.environments.GetRunEnvironment},
		{Pattern: "GET /api/runs/{id}/nodes/{nodeId}/recipe", Who: kernel.Member, May: access.Read, Handle: a.runs.GetRecipe},
		{Pattern: "GET /api/runs/{id}/links", Who: kernel.Member, May: access.ManageSharing, Handle: a.sharing.ListResultLinks},
		{Pattern: "POST /api/runs/{id}/links", Who: kernel.Member, May: access.ManageSharing, Body: kernel.SmallBody, Once: true, Handle: a.sharing.CreateResultLink},
		{Pattern: "DELETE /api/runs/{id}/links", Who: kernel.Member, May: access.ManageSharing, Handle: a.sharing.RevokeResultLink},
		{Pattern: "POST /api/results", Body: kernel.SmallBody, Limit: a.sharing.ResultsLimit(), Handle: a.sharing.OpenResults},
		{Pattern: "POST /api/results/copy", Who: kernel.Member, May: access.EditWorkflows, Body: kernel.SmallBody, Limit: a.sharing.ResultsLimit(), Handle: a.sharing.CopyResults},
		{Pattern: "POST /api/runs/{id}/cancel", Who: kernel.Member, May: access.CancelRuns, Handle: a.runs.CancelRun},
		{Pattern: "POST /api/runs/{id}/retry", Who: kernel.Member, May: access.StartRuns, Body: kernel.SmallBody, Once: true, Limit: a.runsLimit(), Slow: true, Handle: a.runs.RetryRun},
		{Pattern: "POST /api/runs/{id}/retry/preview", Who: kernel.Member, May: access.StartRuns, Body: kernel.SmallBody, Handle: a.runs.PreviewRetry},
		{Pattern: "GET /api/runs/{id}/events", Who: kernel.Member, May: access.Read, Handle: a.runs.ListEvents},
		{Pattern: "GET /api/runs/{id}/logs", Who: kernel.Member, May: access.Read, Handle: a.runs.ReadLogs},
		{Pattern: "GET /api/runs/{id}/nodes/{nodeId}/shards", Who: kernel.Member, May: access.Read, Slow: true, Handle: a.runs.ListShards},
		{Pattern: "GET /api/runs/{id}/outputs", Who: kernel.Member, May: access.Read, Slow: true, Handle: a.runs.ListOutputs},
		{Pattern: "GET /api/runs/{id}/outputs.zip", Who: kernel.Member, May: access.Read, Slow: true, Handle: a.runs.DownloadOutputs},
		{Pattern: "GET /api/runs/{id}/crate", Who: kernel.Member, May: access.Read, Slow: true, Handle: a.runs.DownloadCrate},
		{Pattern: "GET /api/runs/{id}/stream", Who: kernel.Member, May: access.Read, Slow: true, Handle: a.runs.StreamRun},

		{Pattern: "GET /reports/{token}/{path...}", Page: true, Slow: true, Handle: a.runs.SendReport},
		{Pattern: "GET /archives/{token}/{name}", Page: true, Slow: true, Handle: a.runs.SendArchive},

		{Pattern: "GET /api/files", Who: kernel.Member, May: access.Read, Slow: true, Handle: a.files.ListFiles},
		{Pattern: "POST /api/files/presign", Who: kernel.Member, May: access.UploadFiles, Body: kernel.SmallBody, Handle: a.files.PresignUpload},
		{Pattern: "POST /api/files/delete", Who: kernel.Member, May: access.DeleteFiles, Body: kernel.SmallBody, Slow: true, Handle: a.files.DeleteFile},
		{Pattern: "POST /api/files/delete-run", Who: kernel.Member, May: access.DeleteFiles, Body: kernel.SmallBody, Slow: true, Handle: a.files.DeleteRunFiles},
		{Pattern: "POST /api/files/uploads", Who: kernel.Member, May: access.UploadFiles, Body: kernel.SmallBody, Handle: a.files.BeginUpload},
		{Pattern: "GET /api/files/uploads/{id}", Who: kernel.Member, May: access.UploadFiles, Slow: true, Handle: a.files.GetUpload},
		{Pattern: "DELETE /api/files/uploads/{id}", Who: kernel.Member, May: access.UploadFiles, Slow: true, Handle: a.files.AbortUpload},
		{Pattern: "POST /api/files/uploads/{id}/parts", Who: kernel.Member, May: access.UploadFiles, Body: kernel.SmallBody, Handle: a.files.SignParts},
		{Pattern: "POST /api/files/uploads/{id}/complete", Who: kernel.Member, May: access.UploadFiles, Body: kernel.SmallBody, Slow: true, Handle: a.files.CompleteUpload},
		{Pattern: "GET /objects/{key...}", Slow: true, Handle: a.files.SendObject},
		{Pattern: "PUT /objects/{key...}", Slow: true, Handle: a.files.ReceiveObject},

		{Pattern: "GET /api/service-accounts", Who: kernel.Member, May: access.ManagePrograms, Handle: a.identity.ListServiceAccounts},
		{Pattern: "POST /api/service-accounts", Who: kernel.Member, May: access.ManagePrograms, Body: kernel.SmallBody, Handle: a.identity.CreateServiceAccount},
		{Pattern: "DELETE /api/service-accounts/{id}", Who: kernel.Member, May: access.ManagePrograms, Handle: a.identity.DeleteServiceAccount},
		{Pattern: "POST /api/service-accounts/{id}/tokens", Who: kernel.Member, May: access.ManagePrograms, Body: kernel.SmallBody, Handle: a.identity.CreateServiceToken},
		{Pattern: "DELETE /api/service-accounts/{id}/tokens/{tokenId}", Who: kernel.Member, May: access.ManagePrograms, Handle: a.identity.RevokeServiceToken},
		{Pattern: "POST /api/service-accounts/{id}/tokens/{tokenId}/rotate", Who: kernel.Member, May: access.ManagePrograms, Body: kernel.SmallBody, Handle: a.identity.RotateServiceToken},
		{Pattern: "GET /api/audit", Who: kernel.Member, May: access.ReadAudit, Handle: a.audit.ListAudit},
		{Pattern: "GET /api/audit/export", Who: kernel.Member, May: access.ReadAudit, Handle: a.audit.ExportAudit},
		{Pattern: "GET /api/operator/workers", Who: kernel.Operator, Handle: a.operator.Workers},
		{Pattern: "GET /api/operator/queue", Who: kernel.Operator, Handle: a.operator.Queue},
		{Pattern: "GET /api/operator/disk", Who: kernel.Operator, Handle: a.operator.Disk},
		{Pattern: "GET /api/operator/chores", Who: kernel.Operator, Handle: a.operator.Chores},
		{Pattern: "GET /api/operator/teams", Who: kernel.Operator, Handle: a.operator.Teams},
		{Pattern: "GET /api/operator/errors", Who: kernel.Operator, Handle: a.operator.Errors},
		{Pattern: "GET /api/operator/version", Who: kernel.Operator, Handle: a.operator.Version},
		{Pattern: "POST /api/operator/teams/{id}/grant", Who: kernel.Operator, Body: kernel.SmallBody, Once: true, Handle: a.operator.Grant},
		{Pattern: "POST /api/operator/teams/{id}/plan", Who: kernel.Operator, Body: kernel.SmallBody, Handle: a.operator.SetPlan},
		{Pattern: "POST /api/operator/teams/{id}/suspend", Who: kernel.Operator, Body: kernel.SmallBody, Handle: a.operator.Suspend},
		{Pattern: "POST /api/operator/workers/drain", Who: kernel.Operator, Body: kernel.SmallBody, Handle: a.operator.Drain},
		{Pattern: "POST /api/operator/runs/{id}/end", Who: kernel.Operator, Handle: a.operator.EndRun},
		{Pattern: "POST /api/operator/mail/test", Who: kernel.Operator, Limit: operator.TestMailLimit, Handle: a.operator.TestMail},
		{Pattern: "GET /api/secrets", Who: kernel.Member, May: access.UseSecrets, Handle: a.secrets.ListSecrets},
		{Pattern: "PUT /api/secrets/{name}", Who: kernel.Member, May: access.ManageSecrets, Body: kernel.SmallBody, Handle: a.secrets.PutSecret},
		{Pattern: "DELETE /api/secrets/{name}", Who: kernel.Member, May: access.ManageSecrets, Handle: a.secrets.DeleteSecret},
		{Pattern: "POST /api/reported-runs", Who: kernel.Member, May: access.ReportRuns, Body: kernel.GraphBody, Handle: a.reported.ReportRun},
		{Pattern: "GET /api/reported-runs/{id}", Who: kernel.Member, May: access.Read, Handle: a.reported.GetReportedRun},
		{Pattern: "POST /api/reported-runs/{id}/events", Who: kernel.Member, May: access.ReportRuns, Body: kernel.GraphBody, Slow: true, Handle: a.reported.ReportEvents},
		{Pattern: "GET /api/reported-runs/{id}/tasks/{task}", Who: kernel.Member, May: access.Read, Handle: a.reported.GetReportedTask},
		{Pattern: "POST /api/nextflow/trace/create", Who: kernel.Member, May: access.ReportRuns, Basic: true, Body: kernel.ChatBody, Handle: a.reported.NextflowCreate},
		{Pattern: "PUT /api/nextflow/trace/{id}/begin", Who: kernel.Member, May: access.ReportRuns, Basic: true, Body: kernel.ChatBody, Slow: true, Handle: a.reported.NextflowBegin},
		{Pattern: "PUT /api/nextflow/trace/{id}/progress", Who: kernel.Member, May: access.ReportRuns, Basic: true, Body: kernel.ChatBody, Slow: true, Handle: a.reported.NextflowProgress},
		{Pattern: "PUT /api/nextflow/trace/{id}/heartbeat", Who: kernel.Member, May: access.ReportRuns, Basic: true, Body: kernel.ChatBody, Slow: true, Handle: a.reported.NextflowProgress},
		{Pattern: "PUT /api/nextflow/trace/{id}/complete", Who: kernel.Member, May: access.ReportRuns, Basic: true, Body: kernel.ChatBody, Slow: true, Handle: a.reported.NextflowComplete},
		{Pattern: "GET /api/nextflow/user-info", Who: kernel.Member, May: access.ReportRuns, Basic: true, Handle: a.reported.NextflowUser},
		{Pattern: "GET /api/nextflow/user/{id}/workspaces", Who: kernel.Member, May: access.ReportRuns, Basic: true, Handle: a.reported.NextflowWorkspaces},
		{Pattern: "GET /api/nextflow/workflow/{id}", Who: kernel.Member, May: access.ReportRuns, Basic: true, Handle: a.reported.NextflowWorkflow},
		{Pattern: "GET /api/connections", Who: kernel.Member, May: access.SeeConnections, Handle: a.connections.ListConnections},
		{Pattern: "POST /api/connections", Who: kernel.Member, May: access.ManageConnections, Body: kernel.SmallBody, Slow: true, Handle: a.connections.CreateConnection},
		{Pattern: "DELETE /api/connections/{id}", Who: kernel.Member, May: access.ManageConnections, Handle: a.connections.DeleteConnection},
		{Pattern: "POST /api/connections/{id}/test", Who: kernel.Member, May: access.UseConnections, Slow: true, Handle: a.connections.TestConnection},
		{Pattern: "GET /api/connections/{id}/objects", Who: kernel.Member, May: access.UseConnections, Slow: true, Handle: a.connections.ListConnectionObjects},

		{Pattern: "POST /api/collab/invites", Who: kernel.Member, May: access.ManageSharing, Body: kernel.SmallBody, Once: true, Handle: a.sharing.CreateInvite},
		{Pattern: "GET /api/collab/invites", Who: kernel.Member, May: access.ManageSharing, Handle: a.sharing.ListInvites},
		{Pattern: "DELETE /api/collab/invites", Who: kernel.Member, May: access.ManageSharing, Handle: a.sharing.RevokeInvite},
		{Pattern: "POST /api/collab/join", Body: kernel.SmallBody, Limit: a.sharing.JoinsLimit(), Handle: a.sharing.JoinWorkflow},
		{Pattern: "POST /api/collab/token", Who: kernel.Member, May: access.Read, Body: kernel.SmallBody, Handle: a.sharing.CreateRoomToken},
		{Pattern: "GET /editor/{room}", Slow: true, Handle: a.sharing.OpenEditor},

		{Pattern: "POST /api/ai/analyze", Who: kernel.Visitor, May: access.Analyze, Body: kernel.SmallBody, Limit: ai.PapersLimit, Slow: true, Handle: a.ai.AnalyzePaper},
		{Pattern: "POST /api/ai/upload", Who: kernel.Visitor, May: access.Analyze, Limit: ai.PapersLimit, Slow: true, Handle: a.ai.UploadPaper},
		{Pattern: "GET /api/ai/status", Who: kernel.Member, May: access.Read, Handle: a.ai.GetAnalysis},
		{Pattern: "GET /api/ai/analyses", Who: kernel.Member, May: access.Read, Handle: a.ai.ListAnalyses},
		{Pattern: "POST /api/ai/proxy/v1/chat/completions", Who: kernel.Member, May: access.Chat, Body: kernel.ChatBody, FailsAs: kernel.ChatFailure, Slow: true, Handle: a.ai.CompleteChat},

		{Pattern: "GET /api/billing/credits", Who: kernel.Member, May: access.Read, Handle: a.billing.GetCredits},
		{Pattern: "GET /api/billing/usage", Who: kernel.Member, May: access.Read, Handle: a.billing.ListUsage},
		{Pattern: "GET /api/dashboard/usage", Who: kernel.Member, May: access.Read, Handle: a.billing.DashboardUsage},
		{Pattern: "GET /api/billing/budgets", Who: kernel.Member, May: access.Read, Handle: a.billing.ListBudgets},
		{Pattern: "PUT /api/billing/budgets", Who: kernel.Member, May: access.ManageBilling, Body: kernel.SmallBody, Handle: a.billing.SetBudgets},
		{Pattern: "POST /api/billing/estimate", Who: kernel.Member, May: access.Read, Body: kernel.SmallBody, Handle: a.billing.EstimateCost},
		{Pattern: "GET /api/billing/invoices", Who: kernel.Member, May: access.ManageBilling, Handle: a.billing.ListInvoices},
		{Pattern: "GET /api/billing/topup", Who: kernel.Member, May: access.ManageBilling, Handle: a.billing.ListPackages},
		{Pattern: "POST /api/billing/topup", Who: kernel.Member, May: access.ManageBilling, Body: kernel.SmallBody, Once: true, Slow: true, Handle: a.billing.StartTopUp},
		{Pattern: "POST /api/billing/checkout", Who: kernel.Member, May: access.ManageBilling, Body: kernel.SmallBody, Once: true, Slow: true, Handle: a.billing.StartTopUp},
		{Pattern: "POST /webhooks/stripe", Handle: a.billing.StripeWebhook},
		{Pattern: "GET /checkout/sandbox.css", Handle: a.billing.CheckoutCSS},
		{Pattern: "GET /checkout/{secret}", Page: true, Handle: a.billing.ShowCheckout},
		{Pattern: "POST /checkout/{secret}", Page: true, Handle: a.billing.DecideCheckout},
		{Pattern: "GET /invoices/{secret}", Page: true, Handle: a.billing.ShowInvoice}, // and {secret}.pdf: a pattern takes whole segments

		{Pattern: "POST /auth/sign-up", Body: kernel.SmallBody, Handle: a.identity.SignUp},
		{Pattern: "POST /auth/sign-in", Body: kernel.SmallBody, Handle: a.identity.SignIn},
		{Pattern: "POST /auth/sign-out", Who: kernel.Self, Handle: a.identity.SignOut},
		{Pattern: "POST /auth/token", Who: kernel.Self, Handle: a.identity.CreateToken},
		{Pattern: "GET /auth/sessions", Who: kernel.Self, Handle: a.identity.ListSessions},
		{Pattern: "DELETE /auth/sessions/{id}", Who: kernel.Self, Handle: a.identity.RevokeSession},
		{Pattern: "GET /auth/apps", Who: kernel.Self, Handle: a.identity.ListApps},
		{Pattern: "DELETE /auth/apps/{id}", Who: kernel.Self, Handle: a.identity.RevokeApp},
		{Pattern: "GET /auth/teams", Who: kernel.Person, Handle: a.identity.ListTeams},
		{Pattern: "POST /auth/teams", Who: kernel.Person, Body: kernel.SmallBody, Handle: a.identity.CreateTeam},
		{Pattern: "PATCH /auth/teams/{id}", Who: kernel.Person, Body: kernel.SmallBody, Handle: a.identity.RenameTeam},
		{Pattern: "POST /auth/teams/{id}/activate", Who: kernel.Self, Handle: a.identity.ActivateTeam},
		{Pattern: "POST /auth/teams/{id}/leave", Who: kernel.Person, Handle: a.identity.LeaveTeam},
		{Pattern: "GET /auth/teams/{id}/members", Who: kernel.Person, Handle: a.identity.ListMembers},
		{Pattern: "PATCH /auth/teams/{id}/members/{userId}", Who: kernel.Person, Body: kernel.SmallBody, Handle: a.identity.ChangeRole},
		{Pattern: "DELETE /auth/teams/{id}/members/{userId}", Who: kernel.Person, Handle: a.identity.RemoveMember},
		{Pattern: "POST /auth/teams/{id}/invitations", Who: kernel.Person, Body: kernel.SmallBody, Handle: a.identity.CreateInvitation},
		{Pattern: "POST /auth/teams/{id}/invitations/{invId}/resend", Who: kernel.Person, Handle: a.identity.ResendInvitation},
		{Pattern: "DELETE /auth/teams/{id}/invitations/{invId}", Who: kernel.Person, Handle: a.identity.RevokeInvitation},
		{Pattern: "GET /auth/invitations/{token}", Handle: a.identity.GetInvitation},
		{Pattern: "POST /auth/invitations/{token}/accept", Who: kernel.Person, Handle: a.identity.AcceptInvitation},
		{Pattern: "GET /auth/oidc/{provider}/start", Page: true, Slow: true, Handle: a.identity.StartProviderSignIn},
		{Pattern: "GET /auth/oidc/{provider}/callback", Page: true, Slow: true, Handle: a.identity.FinishProviderSignIn},
		{Pattern: "GET /auth/jwks.json", FailsAs: kernel.OAuthFailure, Handle: a.identity.JWKS},

		{Pattern: "POST /auth/verify", Who: kernel.OptionalAuth, Body: kernel.SmallBody, Handle: a.identity.VerifyEmail},
		{Pattern: "POST /auth/reset", Body: kernel.SmallBody, Handle: a.identity.RequestReset},
		{Pattern: "POST /auth/reset/{token}", Body: kernel.SmallBody, Handle: a.identity.ResetPassword},
		{Pattern: "POST /auth/password", Who: kernel.Self, Body: kernel.SmallBody, Handle: a.identity.ChangePassword},
		{Pattern: "POST /auth/second-factor", Who: kernel.Self, Body: kernel.SmallBody, Handle: a.identity.ChangeSecondFactor},
		{Pattern: "GET /auth/api-tokens", Who: kernel.Self, Handle: a.identity.ListAPITokens},
		{Pattern: "POST /auth/api-tokens", Who: kernel.Self, Body: kernel.SmallBody, Handle: a.identity.CreateAPIToken},
		{Pattern: "POST /auth/api-tokens/{id}/rotate", Who: kernel.Self, Body: kernel.SmallBody, Handle: a.identity.RotateAPIToken},
		{Pattern: "DELETE /auth/api-tokens", Who: kernel.Self, Handle: a.identity.RevokeAPIToken},
		{Pattern: "GET /.well-known/oauth-authorization-server", FailsAs: kernel.OAuthFailure, Handle: a.identity.OauthMetadata},
		{Pattern: "GET /.well-known/oauth-protected-resource", FailsAs: kernel.OAuthFailure, Handle: a.identity.ResourceMetadata},
		{Pattern: "GET /.well-known/oauth-protected-resource/mcp", FailsAs: kernel.OAuthFailure, Handle: a.identity.MCPResourceMetadata},
		{Pattern: "POST /oauth/register", FailsAs: kernel.OAuthFailure, Limit: identity.RegisterLimit, Body: kernel.SmallBody, Handle: a.identity.RegisterClient},
		{Pattern: "GET /oauth/authorize", Who: kernel.OptionalAuth, FailsAs: kernel.OAuthFailure, Page: true, Handle: a.identity.Authorize},
		{Pattern: "POST /oauth/authorize", Who: kernel.OptionalAuth, FailsAs: kernel.OAuthFailure, Page: true, Handle: a.identity.DecideAuthorization},
		{Pattern: "POST /oauth/token", FailsAs: kernel.OAuthFailure, Limit: identity.OauthLimit, Handle: a.identity.ExchangeToken},
		{Pattern: "POST /oauth/revoke", FailsAs: kernel.OAuthFailure, Limit: identity.OauthLimit, Handle: a.identity.RevokeToken},
		{Pattern: "POST /oauth/device_authorization", FailsAs: kernel.OAuthFailure, Handle: a.identity.AuthorizeDevice},
		{Pattern: "GET /device", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.ShowDevice},
		{Pattern: "POST /device", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.DecideDevice},

		{Pattern: "GET /sign-in", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.ShowSignIn},
		{Pattern: "POST /sign-in", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.TakeSignIn},
		{Pattern: "POST /sign-in/code", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.TakeCode},
		{Pattern: "GET /sign-up", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.ShowSignUp},
		{Pattern: "POST /sign-up", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.TakeSignUp},
		{Pattern: "GET /sign-out", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.ShowSignOut},
		{Pattern: "POST /sign-out", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.TakeSignOut},
		{Pattern: "GET /reset", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.ShowReset},
		{Pattern: "POST /reset", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.TakeReset},
		{Pattern: "GET /reset/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.ShowNewPassword},
		{Pattern: "POST /reset/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.TakeNewPassword},
		{Pattern: "GET /verify/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.ShowVerify},
		{Pattern: "POST /verify/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.TakeVerify},
		{Pattern: "GET /invitations", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.BackToInvitation},
		{Pattern: "GET /invitations/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.ShowInvitation},
		{Pattern: "POST /invitations/{token}", Who: kernel.OptionalAuth, Page: true, Handle: a.identity.TakeInvitation},
		{Pattern: "GET /pages/{file}", Handle: a.system.PageFile},
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
