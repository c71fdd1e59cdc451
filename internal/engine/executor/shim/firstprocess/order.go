// Package firstprocess is our program as the first process of a sandbox: what it
// is told to start, how it starts that, and what it reports.
package firstprocess

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

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

// The descriptors on which the first process is spoken to.
const (
	OrderFD  = 5 // what it is to start, then what became of it
	SocketFD = 7 // on which it reports that it waits, and how a command ended, and receives that there is an order
)

// What is said on the socket of a first process that serves one command after
// the other. The commands cannot speak there: they inherit no descriptor of it,
// and cannot look into this process.
const (
	Waiting = 'w' // the first process: there is nothing to do yet
	Go      = 'g' // the shim: there is an order, and here are the command's streams
	ended   = 'e' // the first process: its command has ended well, with what it used, and it waits again
	leaves  = 'l' // the first process: its command has ended, with what it used, and so will it
)

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
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES):
		kind, text = NoProgram, err.Error()
	case err != nil:
		kind, text = Failed, err.Error()
	}
	_ = unix.Ftruncate(OrderFD, 0)
	_, _ = unix.Pwrite(OrderFD, append([]byte{kind}, text...), 0)
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

// End is what a command has used that has ended.
type End struct {
	CPU    time.Duration
	MaxRSS int64 // bytes
	Waits  bool  // it has ended well, and the first process waits for the next
}

// Add counts another command in.
func (e *End) Add(one End) {
	e.CPU += one.CPU
	e.MaxRSS = max(e.MaxRSS, one.MaxRSS)
}

// EndLength is that of an End on the socket.
const EndLength = 1 + 8 + 8

func encodeEnd(word byte, used syscall.Rusage) []byte {
	text := binary.BigEndian.AppendUint64([]byte{word}, uint64(used.Utime.Nano()+used.Stime.Nano()))
	return binary.BigEndian.AppendUint64(text, uint64(used.Maxrss<<10))
}

// DecodeEnd reads an End from the socket.
func DecodeEnd(text []byte) (*End, error) {
	if len(text) != EndLength || text[0] != ended && text[0] != leaves {
		return nil, os.ErrInvalid
	}
	return &End{
		CPU: time.Duration(binary.BigEndian.Uint64(text[1:])), MaxRSS: int64(binary.BigEndian.Uint64(text[9:])), Waits: text[0] == ended,
	}, nil
}
