// Package web is the browser's side of the product, inside the binary.
package web

import (
	"embed"
	"io/fs"
)

// dist is empty in a fresh clone, but for the file that keeps it there: a Go
// build needs no Node.
//
//go:embed all:dist
var dist embed.FS

// Unbuilt is the page of a binary that was made without the app.
//
//go:embed unbuilt.html
var Unbuilt []byte

// App is what `make web` built.
func App() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil { // only a malformed name can fail
		panic(err)
	}
	return sub
}
