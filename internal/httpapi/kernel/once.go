package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
)

// onlyOnce lets a request with an Idempotency-Key act once, and repeats its
// answer when it comes again.
func (x *Exchange) onlyOnce(handle Handler) (Answer, error) {
	values, given := x.Request.Header["Idempotency-Key"]
	if !x.Route.Once || !given {
		return handle(x)
	}
	who := x.Caller.Subject() + " " + string(x.Caller.Team)
	if x.Route.Who == Operator {
		who = string(x.Presence.User.ID)
	}
	return x.OnceFor(who, "Idempotency-Key", values[0], handle)
}

// OnceFor lets a request act once for a key that a header of somebody gave, and
// repeats its answer.
func (x *Exchange) OnceFor(who, header, key string, handle Handler) (Answer, error) {
	if !visible(key) || len(key) > 255 {
		return Answer{}, fault.Invalid("%s needs 1 to 255 visible ASCII characters", header)
	}
	x.key = &access.IdempotencyKey{Scope: who + " " + x.Route.Pattern, Team: x.Caller.Team, Key: key, Fingerprint: x.fingerprint()}
	release, free := x.server.inFlight.enter(*x.key)
	if !free {
		return Answer{}, fault.Conflict("the same request is being carried out; try again").WithCode("idempotency_in_progress")
	}
	defer release()
	if ans, err := x.replayed(); !fault.Is(err, fault.KindNotFound) {
		return ans, err
	}
	ans, err := handle(x)
	if fault.Is(err, fault.KindConflict) {
		// Another server may have carried it out in this moment.
		if again, err := x.replayed(); !fault.Is(err, fault.KindNotFound) {
			return again, err
		}
	}
	return ans, err
}

// withPath marks a fingerprint that has the path in it. Those of earlier versions have
// none, and their answers are repeated until they are forgotten.
const withPath = "path:"

// fingerprint tells requests of a route apart. What they are sent to is part of
// it: the same words to another run, or another team, are another request.
func (x *Exchange) fingerprint() string {
	if x.Request.PathValue("id") == "" {
		return hexSum(x.Body)
	}
	return withPath + hexSum([]byte(x.Request.URL.Path+"\n"), x.Body)
}

// sameRequest reports whether a recorded fingerprint is of this request.
func (x *Exchange) sameRequest(recorded string) bool {
	return recorded == x.key.Fingerprint || recorded == hexSum(x.Body) // with a mark it is never a bare sum
}

func hexSum(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// visible reports whether text is there and all visible ASCII.
func visible(text string) bool {
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return text != ""
}

func (x *Exchange) replayed() (Answer, error) {
	r, err := x.server.Answers.Answer(x.Context(), *x.key, x.server.Now())
	if err != nil {
		return Answer{}, err
	}
	if !x.sameRequest(r.Fingerprint) {
		return Answer{}, fault.Conflict("this Idempotency-Key was used for another request: use a fresh one").WithCode("idempotency_conflict")
	}
	return Answer{Status: r.Status, Media: JSONMedia, Raw: r.Answer}.With("Idempotent-Replayed", "true"), nil
}

// Record is the answer as it will be repeated, made before the effect so that
// both are stored together. It is nil when the request has no key.
func (x *Exchange) Record(a Answer) (*access.IdempotencyRecord, error) {
	if x.key == nil {
		return nil, nil //nolint:nilnil // no key, nothing to keep
	}
	_, body, err := a.encoded()
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	return &access.IdempotencyRecord{IdempotencyKey: *x.key, Status: a.Status, Answer: body}, err
}

// inFlight are the keyed requests that this server is carrying out.
type inFlight struct {
	mu   sync.Mutex
	keys map[[2]string]bool
}

func (f *inFlight) enter(k access.IdempotencyKey) (release func(), free bool) {
	name := [2]string{k.Scope, k.Key}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys[name] {
		return nil, false
	}
	if f.keys == nil {
		f.keys = map[[2]string]bool{}
	}
	f.keys[name] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.keys, name)
	}, true
}
