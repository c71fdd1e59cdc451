// Package api is the API's description and the wire types generated from it.
// openapi.yaml is written by hand and is the truth; everything whose name
// ends in .gen.go, .gen.json or .gen.ts is derived from it. Serving the
// operations is left to others.
package api

import _ "embed"

// JSON is the description as compact JSON, as the server publishes it.
// Callers must not change it.
//
//go:embed openapi.gen.json
var JSON []byte
