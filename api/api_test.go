package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/api"
)

// routes is what the specification and the contract promise, written down
// apart from the document so that neither can lose a line unseen.
const routes = `
GET /api/me
GET DELETE /api/account/data
GET /api/billing/credits
GET /api/billing/usage
GET /api/dashboard/usage
POST /api/billing/estimate
GET /api/billing/invoices
GET /api/billing/quotas
GET POST /api/billing/topup
POST /api/billing/checkout
GET POST /api/workflows
GET PUT DELETE /api/workflows/{id}
GET POST /api/runs
GET /api/runs/compare
GET /api/runs/{id}/attempts
GET /api/runs/{id}/attempts/{nodeId}/{shard}/{attempt}/files
GET /api/runs/{id}/nodes/{nodeId}/environment
GET /api/runs/{id}/nodes/{nodeId}/recipe
GET /api/executors
GET POST /api/sweeps
GET /api/sweeps/{id}
GET /api/sweeps/{id}/table.csv
GET /api/runs/{id}/tasks.csv
GET POST DELETE /api/runs/{id}/links
POST /api/results
POST /api/results/copy
GET /api/audit
GET /api/audit/export
GET /api/secrets
PUT DELETE /api/secrets/{name}
GET POST /api/files/uploads
GET DELETE /api/files/uploads/{id}
POST /api/files/uploads/{id}/parts
POST /api/files/uploads/{id}/complete
POST /api/reported-runs
GET /api/reported-runs/{id}
POST /api/reported-runs/{id}/events
GET /api/reported-runs/{id}/tasks/{task}
POST /api/nextflow/trace/create
PUT /api/nextflow/trace/{id}/begin
PUT /api/nextflow/trace/{id}/progress
PUT /api/nextflow/trace/{id}/heartbeat
PUT /api/nextflow/trace/{id}/complete
GET /api/nextflow/user-info
GET /api/nextflow/user/{id}/workspaces
GET /api/nextflow/workflow/{id}
GET POST /api/connections
DELETE /api/connections/{id}
POST /api/connections/{id}/test
GET /api/connections/{id}/objects
GET POST /api/service-accounts
DELETE /api/service-accounts/{id}
POST /api/service-accounts/{id}/tokens
DELETE /api/service-accounts/{id}/tokens/{tokenId}
POST /api/service-accounts/{id}/tokens/{tokenId}/rotate
POST /auth/api-tokens/{id}/rotate
GET PATCH DELETE /api/runs/{id}
POST /api/runs/{id}/cancel
GET /api/runs/{id}/events
GET /api/runs/{id}/nodes/{nodeId}/shards
GET /api/runs/{id}/outputs
GET /api/runs/{id}/outputs.zip
GET /api/runs/{id}/crate
GET /api/runs/{id}/stream
GET /api/files
POST /api/files/presign
POST /api/files/delete
POST /api/files/delete-run
POST /api/ai/analyze
POST /api/ai/upload
GET /api/ai/status
POST /api/ai/proxy/v1/chat/completions
POST /api/team/invite
POST /api/team/invitations
DELETE /api/me
GET /api/operator/audit
GET /api/operator/users
DELETE /api/operator/users/{id}
POST /api/operator/users/{id}/suspend
POST /api/operator/users/{id}/resume
POST /api/operator/users/{id}/reset-second-factor
GET /api/team/retention
PUT /api/team/retention
GET POST DELETE /api/collab/invites
POST /api/collab/join
POST /api/collab/token
GET /api/health
GET /api/health/ready
GET /api/openapi.json
GET /docs
GET /api/workflows/{id}/revisions
GET /api/workflows/{id}/revisions/{n}
GET /api/workflows/{id}/source
POST /api/workflows/{id}/refresh
POST /api/workflows/{id}/detach
POST /api/workflows/{id}/revisions/{n}/restore
POST /api/workflows/{id}/revisions/{n}/confirm
GET PUT /api/billing/budgets
GET PUT /api/notifications
GET PUT /api/me/notifications
POST /api/operator/teams/{id}/grant
POST /api/operator/teams/{id}/plan
POST /api/operator/teams/{id}/suspend
POST /api/operator/workers/drain
POST /api/operator/runs/{id}/end
GET /api/operator/group-mapping
PUT /api/operator/group-mapping
POST /api/operator/mail/test
GET /api/notice
GET /api/operator/notice
PUT /api/operator/notice
GET /api/operator/maintenance
PUT /api/operator/maintenance
GET POST /api/me/filters
GET /api/favorites
PUT DELETE /api/favorites/{id}
GET /api/where/{id}
POST /api/workflows/rename-folder
GET /api/workflows/steps
GET /api/operator/workers
GET /api/operator/queue
GET /api/operator/disk
GET /api/operator/chores
GET /api/operator/teams
GET /api/operator/usage
GET /api/operator/teams/default
PATCH /api/operator/teams/default
PATCH /api/operator/teams/{id}
GET /api/operator/errors
GET /api/operator/version
DELETE /api/me/filters/{id}
GET POST /api/webhooks
POST /api/webhooks/preview
PATCH DELETE /api/webhooks/{id}
POST /api/webhooks/{id}/test
GET /api/webhooks/{id}/deliveries
POST /api/webhooks/{id}/deliveries/{deliveryId}/send
GET POST /api/workflows/{id}/schedules
PATCH DELETE /api/workflows/{id}/schedules/{scheduleId}
GET POST /api/workflows/{id}/triggers
DELETE /api/workflows/{id}/triggers/{triggerId}
POST /hooks/{token}
POST /api/workflows/validate
POST /api/runs/{id}/explain
POST /api/runs/{id}/retry
POST /api/runs/{id}/retry/preview
GET /api/runs/{id}/logs
GET /api/ai/analyses
GET /api/features
POST /auth/sign-up
POST /auth/sign-in
POST /auth/sign-out
POST /auth/token
GET /auth/sessions
DELETE /auth/sessions/{id}
GET /auth/apps
DELETE /auth/apps/{id}
GET POST /auth/teams
PATCH /auth/teams/{id}
POST /auth/teams/{id}/activate
POST /auth/teams/{id}/leave
GET /auth/teams/{id}/members
PATCH DELETE /auth/teams/{id}/members/{userId}
POST /auth/teams/{id}/invitations
POST /auth/teams/{id}/invitations/{invId}/resend
DELETE /auth/teams/{id}/invitations/{invId}
GET /auth/invitations/{token}
POST /auth/invitations/{token}/accept
POST /auth/verify
POST /auth/reset
POST /auth/reset/{token}
POST /auth/password
GET /auth/second-factor
POST /auth/second-factor
GET POST DELETE /auth/api-tokens
GET /auth/oidc/{provider}/start
GET /auth/oidc/{provider}/callback
GET /auth/jwks.json
GET /.well-known/oauth-authorization-server
GET POST /oauth/authorize
POST /oauth/register
GET /.well-known/oauth-protected-resource
GET /.well-known/oauth-protected-resource/mcp
POST /oauth/token
POST /oauth/revoke
POST /oauth/device_authorization
GET POST /device
POST /webhooks/stripe
GET POST /checkout/{secret}
GET /invoices/{secret}
GET /invoices/{secret}.pdf
GET /editor/{room}
GET /clients/index.json
`

func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.JSON)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// operations calls check once for each operation, as a test of its own.
func operations(t *testing.T, check func(t *testing.T, doc *openapi3.T, op *openapi3.Operation)) {
	doc := document(t)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			t.Run(method+" "+path, func(t *testing.T) { check(t, doc, op) })
		}
	}
}

func TestTheDocumentIsValid(t *testing.T) {
	if err := document(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

func TestEveryPromisedRouteIsDescribedAndNoOther(t *testing.T) {
	var want, have []string
	for line := range strings.Lines(strings.TrimSpace(routes)) {
		words := strings.Fields(line)
		for _, method := range words[:len(words)-1] {
			want = append(want, method+" "+words[len(words)-1])
		}
	}
	for path, item := range document(t).Paths.Map() {
		for method := range item.Operations() {
			have = append(have, method+" "+path)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("promised (-) and described (+) differ:\n%s", diff)
	}
}

func TestEveryOperationSaysWhatItIs(t *testing.T) {
	doc := document(t)
	seen := map[string]bool{}
	operations(t, func(t *testing.T, _ *openapi3.T, op *openapi3.Operation) {
		if op.OperationID == "" || seen[op.OperationID] {
			t.Errorf("operationId %q is empty or taken", op.OperationID)
		}
		seen[op.OperationID] = true
		if len(op.Tags) != 1 || doc.Tags.Get(op.Tags[0]) == nil {
			t.Errorf("tags %v: want one of the document's", op.Tags)
		}
		if op.Summary == "" || op.Description == "" {
			t.Error("no summary or description")
		}
		if op.Extensions["x-access"] == nil {
			t.Error("does not say who may call it")
		}
	})
}

func TestEveryRequestIsClosedAndHasAnExample(t *testing.T) {
	operations(t, func(t *testing.T, _ *openapi3.T, op *openapi3.Operation) {
		if op.RequestBody == nil {
			return
		}
		for kind, media := range op.RequestBody.Value.Content {
			if media.Example == nil && kind != "multipart/form-data" {
				t.Errorf("%s has no example", kind)
			}
			// Chat, payment events, what calls a trigger, RFC 7591 and Nextflow's frames are other people's formats.
			if slices.Contains([]string{"completeChat", "receiveStripeEvent", "callTrigger", "registerClient"}, op.OperationID) || strings.HasPrefix(op.OperationID, "nextflow") {
				continue
			}
			if extra := media.Schema.Value.AdditionalProperties.Has; kind == "application/json" && (extra == nil || *extra) {
				t.Error("takes fields that nobody described")
			}
		}
	})
}

func TestEverySuccessHasAnExample(t *testing.T) {
	operations(t, func(t *testing.T, _ *openapi3.T, op *openapi3.Operation) {
		succeeds := false
		for status, response := range op.Responses.Map() {
			if status >= "400" {
				continue
			}
			succeeds = true
			for kind, media := range response.Value.Content {
				if media.Example == nil && len(media.Examples) == 0 {
					t.Errorf("%s %s has no example", status, kind)
				}
			}
		}
		if !succeeds {
			t.Error("never succeeds")
		}
	})
}

func TestEveryAnswerNamesItsRequest(t *testing.T) {
	operations(t, func(t *testing.T, _ *openapi3.T, op *openapi3.Operation) {
		for status, response := range op.Responses.Map() {
			if response.Value.Headers["X-Request-Id"] == nil {
				t.Errorf("%s has no X-Request-Id", status)
			}
		}
	})
}

func TestEveryFailureHasTheSharedShape(t *testing.T) {
	// Whoever speaks another protocol fails in its words; readiness adds what
	// it found.
	foreign := []string{"#/components/schemas/ChatFailure", "#/components/schemas/OAuthFailure", "#/components/schemas/NotReadyAnswer"}
	operations(t, func(t *testing.T, _ *openapi3.T, op *openapi3.Operation) {
		fails := false
		for status, response := range op.Responses.Map() {
			if status < "400" {
				continue
			}
			fails = true
			shape := response.Value.Content["application/json"].Schema.Ref
			if shape != "#/components/schemas/Failure" && !slices.Contains(foreign, shape) {
				t.Errorf("%s answers %q", status, shape)
			}
		}
		if !fails {
			t.Error("never fails")
		}
	})
}

func TestEveryCodeBelongsToADescribedFailure(t *testing.T) {
	operations(t, func(t *testing.T, _ *openapi3.T, op *openapi3.Operation) {
		codes, _ := op.Extensions["x-codes"].(map[string]any)
		for status := range codes {
			if op.Responses.Value(status) == nil {
				t.Errorf("has codes for %s but no such answer", status)
			}
		}
	})
}

func TestEveryExampleFitsItsSchema(t *testing.T) {
	operations(t, func(t *testing.T, doc *openapi3.T, op *openapi3.Operation) {
		contents := []openapi3.Content{}
		if op.RequestBody != nil {
			contents = append(contents, op.RequestBody.Value.Content)
		}
		for _, response := range op.Responses.Map() {
			contents = append(contents, response.Value.Content)
		}
		for _, content := range contents {
			for kind, media := range content {
				for _, example := range examplesOf(media) {
					if err := doc.ValidateSchemaJSON(media.Schema.Value, example, openapi3.EnableJSONSchema2020()); err != nil {
						t.Errorf("%s: %v", kind, err)
					}
				}
			}
		}
	})
}

func examplesOf(media *openapi3.MediaType) []any {
	var all []any
	if media.Example != nil {
		all = append(all, media.Example)
	}
	for _, example := range media.Examples {
		all = append(all, example.Value.Value)
	}
	return all
}

// TestASchemaRefusesWhatItShould keeps the test above honest: it would pass
// with a validator that takes anything.
func TestASchemaRefusesWhatItShould(t *testing.T) {
	doc := document(t)
	for name, tt := range map[string]struct{ schema, value string }{
		"null where none is allowed":  {"Person", `{"id": "user_1", "name": null}`},
		"a constant of another value": {"Deleted", `{"deleted": false, "id": "wf_1"}`},
		"a field nobody described":    {"NewTeam", `{"name": "Red", "colour": "red"}`},
		"a node with a bad id":        {"Definition", `{"version": 1, "nodes": [{"id": "a b", "type": "task"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			var value any
			if err := json.Unmarshal([]byte(tt.value), &value); err != nil {
				t.Fatal(err)
			}
			if doc.ValidateSchemaJSON(doc.Components.Schemas[tt.schema].Value, value, openapi3.EnableJSONSchema2020()) == nil {
				t.Error("passed")
			}
		})
	}
}

func TestTheJSONIsTheYAML(t *testing.T) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var written, want, have any
	if err := yaml.Unmarshal(text, &written); err != nil {
		t.Fatal(err)
	}
	fromYAML, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(fromYAML, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(api.JSON, &have); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("run make gen; openapi.yaml (-) and openapi.gen.json (+) differ:\n%s", diff)
	}
}

func TestOnlyTheNamedRoutesAreBare(t *testing.T) {
	bare := []string{"getCredits", "estimateCost", "getRun", "completeChat", "getOpenAPI", "getJWKS", "getOAuthMetadata", "getResourceMetadata", "getMcpResourceMetadata", "registerClient", "exchangeToken", "authorizeDevice"}
	operations(t, func(t *testing.T, _ *openapi3.T, op *openapi3.Operation) {
		for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusAccepted} {
			response := op.Responses.Status(status)
			if response == nil || response.Value.Content["application/json"] == nil {
				continue
			}
			enveloped := response.Value.Content["application/json"].Schema.Value.Properties["success"] != nil
			if enveloped == (slices.Contains(bare, op.OperationID) || strings.HasPrefix(op.OperationID, "nextflow")) {
				t.Errorf("%d: enveloped is %v", status, enveloped)
			}
		}
	})
}
