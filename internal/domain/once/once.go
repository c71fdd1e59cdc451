// Package once describes a request that may arrive several times and must act
// only once: what names it, and the answer that was given.
package once

// Key names a request. The same Scope and Key with another Fingerprint is a
// different request under a used name.
type Key struct {
	Scope       string // who asked, on which route
	Key         string // the caller's own word for this request
	Fingerprint string // a hash of the body
}

// Record is a request that was carried out, with the answer to repeat.
type Record struct {
	Key
	Status int
	Answer []byte
}
