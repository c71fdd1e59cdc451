// Package docs holds the documentation, so that the server can show it. The
// decisions are for those who read the code.
package docs

import "embed"

// Files are the pages, as Markdown.
//
//go:embed *.md operating/*.md
var Files embed.FS
