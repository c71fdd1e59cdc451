// Package relay runs a command in a sandbox without network and lets it speak to
// one socket outside, as if that were a server on its own machine.
package relay

import (
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
)

// Address is where the command reaches the socket.
const Address = "127.0.0.1:8000"

// failed is the status where the command could not be run.
const failed = 125

// Run runs a command, listens for it, and returns its status as a shell counts it.
func Run(socket string, argv []string) int {
	l, err := net.Listen("tcp", Address)
	if err != nil {
		return failed
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go forward(conn, socket)
		}
	}()
	command := exec.Command(argv[0], argv[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if _ = command.Run(); command.ProcessState == nil {
		return failed
	}
	if status := command.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return command.ProcessState.ExitCode()
}

// forward copies both ways until either side has ended.
func forward(from net.Conn, socket string) {
	defer from.Close()
	to, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer to.Close()
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}
