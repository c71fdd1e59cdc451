package main

import (
	"encoding/pem"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// authorities are the certificates that Mozilla trusts, of the version that go.mod
// names, so that an image does not depend on the machine that builds it. Those that
// are trusted in part only cannot be said in such a file, and are left out.
func authorities() string {
	var b strings.Builder
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.String()
}
