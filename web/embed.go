// Package web is the browser's side of the product, inside the binary.
package web

import _ "embed"

// Home is the page at the root.
//
//go:embed dist/index.html
var Home []byte
