// Command millrace-shim is the shim as a small program of its own, because
// starting the whole server beside every task would take longer than most
// tasks. The build embeds it in the server.
package main

import (
	"os"

	"github.com/millrace/millrace/internal/engine/executor/shim"
)

func main() {
	if len(os.Args) != 2 {
		os.Exit(shim.Unusable)
	}
	os.Exit(shim.Main(os.Args))
}
