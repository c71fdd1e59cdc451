// Command listens opens the port 443 of an address of this machine, as a server does, and then
// runs a program.
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"

	"github.com/millrace/millrace/cmd/millrace/capabilities"
)

func main() {
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if err := capabilities.KeepToOurselves(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var all sync.WaitGroup
	for range 20 { // on several threads
		all.Go(func() {
			out, err := exec.Command(os.Args[2], os.Args[3:]...).CombinedOutput()
			fmt.Printf("%s%v\n", out, err)
		})
	}
	all.Wait()
	l.Close()
}
