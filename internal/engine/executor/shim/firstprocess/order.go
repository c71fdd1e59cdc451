// Package firstprocess is our program as the first process of a sandbox: what it
// is told to start, how it starts that, and what it reports.
package firstprocess

import (
	"encoding/binary"
	"errors"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Order is a command to start. It travels as data, with lengths, so that
// whatever it holds cannot be read as an option.
type Order struct {
	Command []string `json:"command"` // the first is looked for in the command's own PATH
	Env     []string `json:"env,omitempty"`
	Script  string   `json:"script,omitempty"` // what the command finds at ScriptPath; nothing if empty
}

// WorkPath is the working folder in a sandbox, and ScriptPath where a command
// is that has to be a file.
const (
	WorkPath   = "/work"
	ScriptPath = "/run/millrace/command"
)

// OrderFD is the descriptor on which the first process is told what to start, and
// says what became of it.
const OrderFD = 5

// The statuses of the first process itself.
const (
	CannotStart  = 127 // that of a shell whose command is not there
	badArguments = 64
)

// MaxProcesses is how many processes and threads a command may have.
const MaxProcesses = 4096

// Encode puts a command and its environment into bytes.
func (o Order) Encode() []byte {
	var text []byte
	for _, list := range [][]string{o.Command, o.Env, {o.Script}} {
		text = binary.BigEndian.AppendUint32(text, uint32(len(list)))
		for _, one := range list {
			text = binary.BigEndian.AppendUint32(text, uint32(len(one)))
			text = append(text, one...)
		}
	}
	return text
}

var errOrder = errors.New("the order is not whole")

// decode is the opposite of Encode.
func decode(text []byte) (o Order, err error) {
	number := func() int {
		if len(text) < 4 {
			err = errOrder
			return 0
		}
		n := binary.BigEndian.Uint32(text)
		text = text[4:]
		return int(n)
	}
	var script []string
	for _, list := range []*[]string{&o.Command, &o.Env, &script} {
		for left := number(); left > 0 && err == nil; left-- {
			n := number()
			if n > len(text) {
				err = errOrder
			}
			if err == nil {
				*list = append(*list, string(text[:n]))
				text = text[n:]
			}
		}
	}
	o.Script = strings.Join(script, "")
	if err == nil && len(o.Command) == 0 {
		err = errOrder
	}
	return o, err
}

// The first byte of what the first process says about its command; a reason
// follows where it did not start.
const (
	Started   = 's'
	Failed    = 'f'
	NoProgram = 'n'
)

// writeStartResult leaves word about the command for the shim, in place of the order.
func writeStartResult(err error) {
	kind, text := byte(Started), ""
	switch {
	case IsNoProgram(err):
		kind, text = NoProgram, err.Error()
	case err != nil:
		kind, text = Failed, err.Error()
	}
	_ = unix.Ftruncate(OrderFD, 0)
	_, _ = unix.Pwrite(OrderFD, append([]byte{kind}, text...), 0)
}

// IsNoProgram reports whether a command did not start because its program is not there.
func IsNoProgram(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES)
}

// ReadStartResult reads what the first process of a sandbox has said.
func ReadStartResult(order int) (kind byte, reason string) {
	text := make([]byte, 512)
	n, _ := unix.Pread(order, text, 0)
	if n < 1 {
		return 0, ""
	}
	switch text[0] {
	case Started, Failed, NoProgram:
		return text[0], string(text[1:n])
	}
	return 0, "" // the order itself: nobody has read it
}
