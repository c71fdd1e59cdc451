package access

import "github.com/millrace/millrace/internal/domain/ids"

// IdempotencyKey names a request that may arrive several times and must act
// only once. The same Scope and Key with another Fingerprint is a different
// request under a used name.
type IdempotencyKey struct {
	Scope       string   // who asked, on which route
	Team        ids.Team // whose storage the answer takes; empty: nobody's
	Key         string   // the caller's own name for this request
	Fingerprint string   // a hash of the body
}

// IdempotencyRecord is a request that was executed, with the answer to repeat.
type IdempotencyRecord struct {
	IdempotencyKey
	Status int
	Answer []byte
}
