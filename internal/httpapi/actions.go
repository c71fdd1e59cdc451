package httpapi

// actions are what routes do, in the words of the audit log. A test walks all
// routes that change something and finds one entry for each.
var actions = map[string]string{
	"GET /api/account/data": "team.exported", "DELETE /api/account/data": "team.erased", "PUT /api/team/retention": "team.retention_set",
	"POST /api/team/invite": "invitation.created", "POST /api/team/invitations": "invitation.created", "POST /auth/teams/{id}/invitations": "invitation.created",
	"POST /auth/teams/{id}/invitations/{invId}/resend": "invitation.resent", "DELETE /auth/teams/{id}/invitations/{invId}": "invitation.revoked",
	"POST /auth/invitations/{token}/accept": "member.joined", "POST /invitations/{token}": "member.joined",
	"POST /auth/teams": "team.created", "PATCH /auth/teams/{id}": "team.renamed", "POST /auth/teams/{id}/activate": "session.team_chosen",
	"POST /auth/teams/{id}/leave": "member.left", "PATCH /auth/teams/{id}/members/{userId}": "member.role_changed",
	"DELETE /auth/teams/{id}/members/{userId}": "member.removed",

	"POST /api/workflows": "workflow.created", "PUT /api/workflows/{id}": "workflow.updated", "DELETE /api/workflows/{id}": "workflow.deleted",
	"POST /api/workflows/rename-folder": "workflow.folder_renamed",
	"POST /api/workflows/{id}/refresh":  "workflow.refreshed", "POST /api/workflows/{id}/detach": "workflow.detached",
	"POST /api/workflows/{id}/revisions/{n}/restore": "workflow.restored", "POST /api/results/copy": "workflow.created",
	"POST /api/webhooks": "webhook.created", "PATCH /api/webhooks/{id}": "webhook.changed", "DELETE /api/webhooks/{id}": "webhook.deleted",
	"POST /api/webhooks/{id}/test": "webhook.tested", "POST /api/webhooks/{id}/deliveries/{deliveryId}/send": "webhook.resent",
	"POST /api/workflows/{id}/revisions/{n}/confirm": "workflow.confirmed",
	"POST /api/workflows/{id}/schedules":             "schedule.created", "PATCH /api/workflows/{id}/schedules/{scheduleId}": "schedule.changed",
	"DELETE /api/workflows/{id}/schedules/{scheduleId}": "schedule.deleted", "POST /api/workflows/{id}/triggers": "trigger.created",
	"DELETE /api/workflows/{id}/triggers/{triggerId}": "trigger.deleted", "POST /hooks/{token}": "run.started",
	"POST /api/operator/teams/{id}/grant": "operator.credits_granted", "POST /api/operator/teams/{id}/plan": "operator.plan_set",
	"PATCH /api/operator/teams/{id}": "operator.quotas_set", "PATCH /api/operator/teams/default": "operator.new_teams_set",
	"POST /api/operator/teams/{id}/suspend": "operator.team_suspension", "POST /api/operator/workers/drain": "operator.worker_drain",
	"POST /api/operator/runs/{id}/end": "operator.run_ended", "POST /api/operator/mail/test": "operator.mail_tested",
	"PUT /api/operator/group-mapping": "operator.group_mapping_set", "PUT /api/operator/notice": "operator.notice_set", "PUT /api/operator/maintenance": "operator.maintenance_set",
	"POST /api/operator/users/{id}/suspend": "operator.account_suspended", "POST /api/operator/users/{id}/resume": "operator.account_resumed",
	"POST /api/operator/users/{id}/reset-second-factor": "operator.second_factor_reset", "DELETE /api/operator/users/{id}": "operator.account_deleted",
	"DELETE /api/me": "account.deleted",
	"POST /api/runs": "run.started", "POST /api/runs/{id}/retry": "run.started", "POST /api/sweeps": "sweep.started",
	"POST /api/reported-runs": "run.reported", "POST /api/nextflow/trace/create": "run.reported",
	"POST /api/runs/{id}/cancel": "run.cancelled", "DELETE /api/runs/{id}": "run.deleted", "PATCH /api/runs/{id}": "run.labelled",
	"POST /api/runs/{id}/links": "result_link.created", "DELETE /api/runs/{id}/links": "result_link.revoked",
	"POST /api/files/presign": "file.upload_allowed", "POST /api/files/uploads": "file.upload_allowed", "POST /api/files/uploads/{id}/complete": "file.uploaded",
	"POST /api/files/delete": "file.deleted", "POST /api/files/delete-run": "run.files_deleted",
	"POST /api/collab/invites": "share_link.created", "DELETE /api/collab/invites": "share_link.revoked", "POST /api/collab/join": "guest.joined",
	"POST /api/ai/analyze": "analysis.requested", "POST /api/ai/upload": "analysis.requested",

	"PUT /api/secrets/{name}": "secret.set", "DELETE /api/secrets/{name}": "secret.deleted",
	"POST /api/connections": "connection.created", "POST /api/connections/{id}/test": "connection.tested", "DELETE /api/connections/{id}": "connection.deleted",
	"POST /api/service-accounts": "service_account.created", "DELETE /api/service-accounts/{id}": "service_account.deleted",
	"POST /api/service-accounts/{id}/tokens": "token.created", "DELETE /api/service-accounts/{id}/tokens/{tokenId}": "token.revoked",
	"POST /api/service-accounts/{id}/tokens/{tokenId}/rotate": "token.rotated",
	"POST /auth/api-tokens":                                   "token.created", "POST /auth/api-tokens/{id}/rotate": "token.rotated", "DELETE /auth/api-tokens": "token.revoked",

	"POST /api/billing/topup": "topup.started", "POST /api/billing/checkout": "topup.started",
	"PUT /api/me/notifications": "account.notifications_chosen", "PUT /api/billing/budgets": "budgets.set", "POST /webhooks/stripe": "payment.reported", "POST /checkout/{secret}": "payment.reported",

	"POST /auth/sign-up": "account.created", "POST /sign-up": "account.created",
	"POST /auth/sign-in": "session.started", "POST /sign-in": "session.started", "POST /sign-in/code": "session.started",
	"GET /auth/oidc/{provider}/callback": "session.started",
	"POST /auth/sign-out":                "session.ended", "POST /sign-out": "session.ended", "DELETE /auth/sessions/{id}": "session.revoked",
	"DELETE /auth/apps/{id}": "app.revoked", "POST /oauth/authorize": "app.allowed", "POST /device": "app.allowed", "POST /oauth/revoke": "app.signed_out",
	"POST /auth/verify": "account.verification", "POST /verify/{token}": "account.verification",
	"POST /auth/reset/{token}": "account.password_reset", "POST /reset/{token}": "account.password_reset",
	"POST /auth/password": "account.password_changed", "POST /auth/second-factor": "account.second_factor_changed",
}

// uncounted are actions that count against no account's daily allowance of changes, and are
// never refused for it. Nothing is ended or deleted more often than it was begun; sign-ins,
// runs and what is reported of runs have limits of their own.
var uncounted = map[string]bool{
	"invitation.revoked": true, "member.left": true, "member.removed": true, "share_link.revoked": true,
	"result_link.revoked": true, "team.erased": true, "account.deleted": true, "workflow.deleted": true, "webhook.deleted": true,
	"schedule.deleted": true, "trigger.deleted": true, "secret.deleted": true, "connection.deleted": true,
	"service_account.deleted": true, "run.cancelled": true, "run.deleted": true, "run.files_deleted": true,
	"file.uploaded": true, "file.deleted": true, "token.revoked": true, "session.ended": true,
	"session.revoked": true, "app.revoked": true, "app.signed_out": true,

	"session.started": true, "account.verification": true, "account.password_reset": true, "account.password_changed": true,
	"account.second_factor_changed": true, "run.started": true, "sweep.started": true, "run.reported": true,
}
