package schedules

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// badEscape is a tilde that escapes nothing, which RFC 6901 has no meaning for.
var badEscape = regexp.MustCompile(`~([^01]|$)`)

// TriggerPrefix begins the token of every trigger.
const TriggerPrefix = "mrh_"

// Trigger is a secret address that starts runs of a workflow, or has it
// refreshed from Git.
type Trigger struct {
	ID            ids.Trigger
	Team          ids.Team
	Workflow      ids.Workflow
	TokenHash     string
	TokenHint     string
	Secret        string // its callers sign with; read where one calls
	Signed        bool   // whether they must
	Action        string
	Given         Given
	Map           map[string]string // parameters by pointers into the body; nil: the body is the parameters
	CreatedBy     ids.User
	CreatedByName string
	CreatedAt     time.Time
	LastUsedAt    time.Time
	LastRun       ids.Run
}

// What triggers do.
const (
	ActionRun     = "run"
	ActionRefresh = "refresh" // the workflow from Git
)

// TriggerStore keeps triggers.
type TriggerStore interface {
	InsertTrigger(ctx context.Context, t Trigger, most int, r *access.IdempotencyRecord) error
	Triggers(ctx context.Context, team ids.Team, workflow ids.Workflow) ([]Trigger, error)
	Trigger(ctx context.Context, team ids.Team, workflow ids.Workflow, id ids.Trigger) (Trigger, error)
	TriggersOfTeam(ctx context.Context, team ids.Team, before ids.Trigger, limit int) ([]Trigger, error)
	DeleteTrigger(ctx context.Context, team ids.Team, workflow ids.Workflow, id ids.Trigger) error
	// TriggerByHash finds a trigger of any team, with its secret.
	TriggerByHash(ctx context.Context, tokenHash string) (Trigger, error)
	// AskForRefresh has the trigger's workflow refreshed soon. One that follows
	// no repository is fault.KindConflict.
	AskForRefresh(ctx context.Context, t Trigger, r *access.IdempotencyRecord, now time.Time) error
}

// NewTrigger is what a trigger should be.
type NewTrigger struct {
	Action string // empty: run
	Given  Given
	Map    map[string]string
	Secret string // empty: calls are not signed
	Git    bool   // the workflow follows a repository

	// Once records the answer with the effect; nil without an idempotency key.
	Once func(t Trigger, token string) (*access.IdempotencyRecord, error)
}

const (
	minSecret  = 8
	maxSecret  = 255
	maxMapped  = 100
	maxPointer = 500
)

// CreateTrigger makes a trigger, in the caller's name. Its token is shown this
// once; we keep a hash.
func (s *Service) CreateTrigger(ctx context.Context, caller access.Caller, workflow ids.Workflow, in NewTrigger) (Trigger, string, error) {
	if err := caller.Must(access.ManageSchedules); err != nil {
		return Trigger{}, "", err
	}
	if err := s.full(ctx); err != nil {
		return Trigger{}, "", err
	}
	if in.Action == "" {
		in.Action = ActionRun
	}
	if in.Action == ActionRun {
		if err := mayHaveRun(caller); err != nil {
			return Trigger{}, "", err
		}
		given := in.Given
		given.Parameters = nil
		if err := s.checked(ctx, caller.Team, workflow, given, nil); err != nil && !onlyParameters(err) {
			return Trigger{}, "", err
		}
	}
	if wrong := in.problems(); len(wrong) > 0 {
		return Trigger{}, "", fault.Problems(wrong, "%s", wrong[0].Sentence())
	}
	if in.Action == ActionRefresh && !in.Git {
		return Trigger{}, "", fault.Conflict("this workflow does not come from Git, so there is nothing to refresh").WithCode("not_from_git")
	}
	token := newToken()
	t := Trigger{
		ID: ids.NewTrigger(), Team: caller.Team, Workflow: workflow, TokenHash: hashed(token), TokenHint: token[len(token)-4:],
		Secret: in.Secret, Signed: in.Secret != "", Action: in.Action, Given: in.Given, Map: in.Map,
		CreatedBy: caller.User, CreatedByName: caller.Name, CreatedAt: s.now(),
	}
	var record *access.IdempotencyRecord
	if in.Once != nil {
		var err error
		if record, err = in.Once(t, token); err != nil {
			return t, "", err
		}
	}
	return t, token, s.triggers.InsertTrigger(ctx, t, Most, record)
}

// onlyParameters reports whether all that is wrong is about parameters: those
// come with each call.
func onlyParameters(err error) bool {
	e, ok := err.(*fault.Error) //nolint:errorlint // as checked made it
	return ok && len(e.Details) > 0 && !slices.ContainsFunc(e.Details, func(d fault.Detail) bool { return !strings.HasPrefix(d.Path, "parameters") })
}

func (in NewTrigger) problems() (wrong []fault.Detail) {
	note := func(path, message string) { wrong = append(wrong, fault.Detail{Path: path, Message: message}) }
	switch {
	case in.Action != ActionRun && in.Action != ActionRefresh:
		note("action", "must be run or refresh")
	case in.Action == ActionRefresh && (in.Map != nil || in.Given.any()):
		note("action", "refresh starts no run: leave out what a run is given")
	}
	if n := len(in.Secret); n > 0 && (n < minSecret || n > maxSecret) || !utf8.ValidString(in.Secret) {
		note("secret", fmt.Sprintf("needs %d to %d bytes of text", minSecret, maxSecret))
	}
	if len(in.Map) > maxMapped {
		note("map", fmt.Sprintf("names more than %d parameters", maxMapped))
	}
	for _, name := range slices.Sorted(maps.Keys(in.Map)) {
		if p := in.Map[name]; len(p) > maxPointer || p != "" && p[0] != '/' || badEscape.MatchString(p) {
			note("map."+name, "must be a JSON pointer, such as /release/tag_name")
		}
		if len(wrong) > maxMapped {
			break
		}
	}
	return wrong
}

// Triggers lists those of a workflow, newest first.
func (s *Service) Triggers(ctx context.Context, caller access.Caller, workflow ids.Workflow) ([]Trigger, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	return s.triggers.Triggers(ctx, caller.Team, workflow)
}

// AllTriggers lists those of all the team's workflows before one of them.
func (s *Service) AllTriggers(ctx context.Context, caller access.Caller, before ids.Trigger, limit int) ([]Trigger, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	return s.triggers.TriggersOfTeam(ctx, caller.Team, before, limit)
}

// DeleteTrigger ends a trigger at once. Members delete those that they made.
func (s *Service) DeleteTrigger(ctx context.Context, caller access.Caller, workflow ids.Workflow, id ids.Trigger) error {
	if err := caller.Must(access.ManageSchedules); err != nil {
		return err
	}
	t, err := s.triggers.Trigger(ctx, caller.Team, workflow, id)
	if err != nil {
		return err
	}
	if t.CreatedBy != caller.User && !caller.May(access.ManageAnySchedule) {
		return fault.Forbidden("only admins and owners can delete someone else's trigger")
	}
	return s.triggers.DeleteTrigger(ctx, caller.Team, workflow, id)
}

// Called is the trigger that a token belongs to, for whoever holds it.
func (s *Service) Called(ctx context.Context, token string) (Trigger, error) {
	hash := hashed(token)
	t, err := s.triggers.TriggerByHash(ctx, hash)
	if err != nil {
		return Trigger{}, err
	}
	if subtle.ConstantTimeCompare([]byte(t.TokenHash), []byte(hash)) != 1 {
		return Trigger{}, fault.NotFound("no such trigger")
	}
	return t, nil
}

// Verify checks the signature of a call, `sha256=` and hex, where the trigger
// wants one.
func (t Trigger) Verify(body []byte, signature string) error {
	if !t.Signed {
		return nil
	}
	h := hmac.New(sha256.New, []byte(t.Secret))
	h.Write(body)
	got, err := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	if err != nil || !strings.HasPrefix(signature, "sha256=") || !hmac.Equal(got, h.Sum(nil)) {
		return fault.Unauthenticated("the header X-Hub-Signature-256 does not sign this body with the trigger's secret").WithCode("invalid_signature")
	}
	return nil
}

// Refresh has the trigger's workflow refreshed from Git, once a minute at most,
// apart from the call: hosts do not wait.
func (s *Service) Refresh(ctx context.Context, t Trigger, r *access.IdempotencyRecord) error {
	return s.triggers.AskForRefresh(ctx, t, r, s.now())
}

// Fire starts a run by a trigger, with what the body says.
func (s *Service) Fire(ctx context.Context, t Trigger, body []byte, record func(runs.Run) (*access.IdempotencyRecord, error)) (runs.Run, error) {
	in := t.Given.of(t.Workflow)
	var err error
	if in.Parameters, err = t.parameters(body); err != nil {
		return runs.Run{}, err
	}
	in.Once = record
	return s.runs.SubmitAutomatic(ctx, t.Team, in, runs.Automatic{
		Starter: runs.Starter{Type: runs.ByTrigger, ID: string(t.ID), Name: t.CreatedByName}, For: t.CreatedBy, Trigger: t.ID,
	})
}

// parameters are the trigger's own, and over them those of the body.
func (t Trigger) parameters(body []byte) (json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	if len(t.Given.Parameters) > 0 {
		if err := json.Unmarshal(t.Given.Parameters, &values); err != nil {
			return nil, err
		}
	}
	if len(body) > 0 && !json.Valid(body) {
		return nil, fault.Invalid("the body is not valid JSON")
	}
	if t.Map == nil && len(body) > 0 {
		var sent map[string]json.RawMessage
		if err := json.Unmarshal(body, &sent); err != nil || sent == nil {
			return nil, fault.Invalid("the body must be a JSON object: its members are the run's parameters")
		}
		maps.Copy(values, sent)
	}
	for name, pointer := range t.Map {
		if value, ok := at(body, pointer); ok {
			values[name] = value
		}
	}
	return json.Marshal(values)
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// at is what a JSON pointer points to in a document.
func at(document json.RawMessage, pointer string) (json.RawMessage, bool) {
	if pointer == "" {
		return document, len(document) > 0
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		token = unescape.Replace(token)
		var object map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case json.Unmarshal(document, &object) == nil:
			value, ok := object[token]
			if !ok {
				return nil, false
			}
			document = value
		case json.Unmarshal(document, &list) == nil:
			i, ok := index(token, len(list))
			if !ok {
				return nil, false
			}
			document = list[i]
		default:
			return nil, false
		}
	}
	return document, true
}

// index reads the place of a member in a list, which has no leading zeros.
func index(token string, n int) (int, bool) {
	i := 0
	for _, c := range []byte(token) {
		if c < '0' || c > '9' || i >= n {
			return 0, false
		}
		i = i*10 + int(c-'0')
	}
	return i, token != "" && i < n && (token == "0" || token[0] != '0')
}

func newToken() string {
	secret := make([]byte, 32)
	rand.Read(secret)
	return TriggerPrefix + new(big.Int).SetBytes(append([]byte{1}, secret...)).Text(62)
}

// hashed is how a token is kept: enough to recognise it, useless to a thief.
func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
