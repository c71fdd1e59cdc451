// Command millrace-shim is the shim as a small program of its own, which takes
// a fraction of the server's memory and time to start. The build embeds it in
// the server.
package main

import (
	"os"

	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

func main() { os.Exit(job.Run(os.Args)) }
