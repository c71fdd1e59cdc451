// Command millrace-attempt is the shim of a task on a machine that shares no folder
// with the server, such as a pod of Kubernetes. It is a program of its own, since it
// speaks HTTP, which the shim of local tasks has no use for.
package main

import (
	"os"

	"github.com/millrace/millrace/internal/engine/executor/shim/remote"
)

func main() { os.Exit(remote.Main(os.Args)) }
